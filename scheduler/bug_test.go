package scheduler

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestBugEndsTheProcess: a plan that panics is never used again, even if the caller recovers.
func TestBugEndsTheProcess(t *testing.T) {
	const name = "TOOLD_TEST_BUG"
	if os.Getenv(name) != "" {
		defer func() { _ = recover() }()
		New(1).do(func() { panic("a mistake") })
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestBugEndsTheProcess$")
	cmd.Env = append(os.Environ(), name+"=1")
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "panic: a mistake") {
		t.Errorf("%v, want that it ends by the panic:\n%s", err, output)
	}
}
