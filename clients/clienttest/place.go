// Package clienttest is for tests that run a client in another language against the real daemon.
package clienttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience bounds one program that a test runs. Ours.
const patience = 2 * time.Minute

// Place builds toold and returns an environment in which it is found first in PATH, and has its socket, state and settings
// apart from the user's. The daemon that runs there, if one does, is ended with the test, and the place removed. The
// test's own PATH becomes the same, so t must not be parallel.
func Place(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toold") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := filepath.Join(dir, "bin")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TOOLD_") })
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")) // exec.Command looks there too
	env = append(env, "PATH="+os.Getenv("PATH"))
	for variable, name := range map[string]string{
		"HOME": "home", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data",
		"XDG_CACHE_HOME": "cache", "TMPDIR": "tmp",
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+filepath.Join(dir, name))
	}
	if err := errors.Join(os.Mkdir(bin, 0o700), Build(filepath.Join(bin, "toold"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Run(t, env, bin+"/toold", "stop", "--now") })
	return env
}

// Build writes toold to path, without the race detector: a copy of the program that the variable TOOLD_BUILT names, with which
// "make test" links it once for all tests, or else one that it builds.
func Build(path string) error {
	built := os.Getenv("TOOLD_BUILT")
	if built == "" {
		if out, err := exec.Command("go", "build", "-race=false", "-o", path, "github.com/toold/toold/cmd/toold").CombinedOutput(); err != nil {
			return fmt.Errorf("toold cannot be built: %w\n%s", err, out)
		}
		return nil
	}
	program, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	return os.WriteFile(path, program, 0o755) //nolint:gosec // other users run it
}

// Run runs a program for at most two minutes, and fails the test with what it printed if it fails.
func Run(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = 20 * time.Second // for what it has printed, on a busy machine
	cmd.Env = env
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, output)
	}
}

// Lacking skips a test for want of something, or fails it where CI has promised that everything is there.
func Lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}
