package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the command line as a person would, against real daemons. Each script has a home, a runtime
// directory and a state of its own; whatever daemon it leaves is ended.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":         cmdCode,
			"nothing-runs": cmdNothingRuns,
			"nothing-in":   cmdNothingIn,
		},
	})
}

// raceAtExit takes away the second that each process of a race build waits at its end.
const raceAtExit = "atexit_sleep_ms=0"

// withoutManagers is a PATH without what language managers put below the home of the user who runs the tests: scripts are about the
// system's programs.
func withoutManagers(list string) string {
	home, err := os.UserHomeDir()
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return err == nil && strings.HasPrefix(dir, home+"/.")
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

func setUpScript(env *testscript.Env) error {
	for name, dir := range map[string]string{
		"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "HOME": "home", "TMPDIR": "tmp",
	} {
		path := filepath.Join(env.WorkDir, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		env.Setenv(name, path)
	}
	env.Setenv("GORACE", raceAtExit)
	env.Setenv("PATH", withoutManagers(env.Getenv("PATH")))
	environ := env.Vars
	env.Defer(func() {
		self, err := exec.LookPath("toold")
		if err != nil {
			panic(err)
		}
		stop := exec.Command(self, "stop", "--now")
		stop.Env = environ
		_ = stop.Run() // most scripts have ended their daemon themselves
	})
	return nil
}

// cmdCode runs a command and wants its exit code: code N command...
func cmdCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d; its output is above", got, want)
	}
}

// cmdNothingRuns wants that no process of this script is alive. Every process that a script starts, and all that come
// of it, carry the script's directory in their environment or on their command line.
func cmdNothingRuns(ts *testscript.TestScript, _ bool, _ []string) {
	if left := processesOf(ts.Getenv("WORK")); len(left) > 0 {
		ts.Fatalf("still running:\n%s", strings.Join(left, "\n"))
	}
}

func processesOf(mark string) (left []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, _ := os.ReadFile(file)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.Contains(environ, []byte(mark)) || bytes.Contains(line, []byte(mark)) {
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}

// cmdNothingIn wants an empty directory.
func cmdNothingIn(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, entry := range entries {
		ts.Fatalf("%s holds %s", args[0], entry.Name())
	}
}
