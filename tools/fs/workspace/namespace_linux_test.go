package workspace_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/tooltest/ownspace"
)

// inNamespace runs the whole test again in a process that may mount file systems which nobody else sees, and that gets
// files from descriptor 3 on, as ownspace.Again does.
func inNamespace(t *testing.T, files ...*os.File) bool {
	t.Helper()
	return ownspace.Again(t, unix.CLONE_NEWNS, nil, files...)
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
