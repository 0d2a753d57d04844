package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

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
// they start. With TOOLD_RACE set it is the test binary. Upgrades are tried between test binaries, always.
type asBuilt struct{ m *testing.M }

// Run returns the exit code of the tests.
func (b asBuilt) Run() int {
	if !underRace() || os.Getenv("TOOLD_RACE") != "" {
		return b.m.Run()
	}
	dir, err := os.MkdirTemp("", "toold-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("go", "build", "-race=false", "-o", filepath.Join(dir, "toold"), ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "toold cannot be built: %v\n%s", err, out)
		return 2
	}
	path := dir + string(filepath.ListSeparator) + os.Getenv("PATH")
	if err := os.Setenv("PATH", path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return b.m.Run()
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
