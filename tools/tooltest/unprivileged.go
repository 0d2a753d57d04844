// A test process that is root, as another user: file modes do not apply to root.

package tooltest

import (
	"os"
	"syscall"
	"testing"
)

// nobody is the user whom Linux systems keep for those who own nothing.
const nobody = 65534

// Unprivileged makes the process one that file modes apply to, until the test ends; where that cannot be, the test is
// skipped. Tests that run beside it run as that user too.
func Unprivileged(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if err := syscall.Seteuid(nobody); err != nil {
		t.Skipf("file modes do not apply to root, and the test cannot run as another user: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Seteuid(0); err != nil {
			t.Fatalf("becoming root again: %v", err)
		}
	})
}
