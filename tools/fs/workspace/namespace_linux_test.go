package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside names the test that runs in a namespace of its own.
const inside = "TOOLD_TEST_INSIDE"

// inNamespace runs the whole test again in a process that may mount file systems which nobody else sees, and that gets
// files from descriptor 3 on. It reports true in that process. In the first one it has the test end as the other did.
func inNamespace(t *testing.T, files ...*os.File) bool {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inside+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	again.ExtraFiles = files
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		again.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := again.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &ended):
		t.Skipf("no namespace can be made here: %v", err)
	case err != nil:
		t.Errorf("in its namespace: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("the test did not run:\n%s", out)
	}
	return false
}

// mount puts a file system onto a directory, which it makes, until the test ends. What the kernel does not have here
// skips the test.
func mount(t *testing.T, dir, kind, options string) {
	t.Helper()
	mkdir(t, dir)
	if err := unix.Mount(kind, dir, kind, 0, options); err != nil {
		t.Skipf("no file system %s with %q can be mounted here: %v", kind, options, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
