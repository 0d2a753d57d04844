package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/clients/clienttest"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/media/pdf"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	if code, is := pdf.Main(os.Args); is {
		syscall.Exit(code) // os.Exit takes a second under the race detector
	}
	testscript.Main(asBuilt{m}, map[string]func(){"toold": main, "kit": kit, "counted": countedMain})
}

// asBuilt runs the tests with toold on PATH as users build it, without the race detector: most of what they take is the programs that
// they start. With TOOLD_RACE set it is the test binary.
type asBuilt struct{ m *testing.M }

// laidScenes are the directories with the repositories that scripts have made, by the script, for all tests of this process. Only tests
// that are not parallel have them made.
var laidScenes = map[string]string{}

// Run returns the exit code of the tests.
func (b asBuilt) Run() int {
	defer func() {
		for _, dir := range laidScenes {
			_ = os.RemoveAll(dir)
		}
	}()
	if !underRace() || os.Getenv("TOOLD_RACE") != "" {
		return b.m.Run()
	}
	dir := os.Getenv(builtIn)
	if dir == "" {
		var err error
		if dir, err = buildToold(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		defer os.RemoveAll(dir)
	}
	for name, value := range map[string]string{builtIn: dir, "PATH": dir + string(filepath.ListSeparator) + os.Getenv("PATH")} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	return b.m.Run()
}

// builtIn is the variable with the directory of the program that was built, for tests that run tests as another user.
const builtIn = "TOOLD_TEST_PROGRAM"

// buildToold builds the program in a directory of its own, which every user can read.
func buildToold() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "toold-built-"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users run what is there
		return "", err
	}
	return dir, clienttest.Build(filepath.Join(dir, "toold"))
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
