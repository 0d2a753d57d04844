package connect

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// listenAs listens on a socket as another user, on a thread that ends with its goroutine.
func listenAs(t *testing.T, path string, uid int) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread is not to be used again
		done <- listenOnThread(t, path, uid)
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func listenOnThread(t *testing.T, path string, uid int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	// The raw call changes this thread alone.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
		return errno
	}
	return unix.Listen(fd, 1)
}

func TestStrangersAreNotTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can pretend to be somebody else")
	}
	dir, err := os.MkdirTemp("", "toold-peer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "t.sock")
	listenAs(t, socket, nobody)
	if _, err := open(t.Context(), socket); err == nil || !strings.Contains(err.Error(), "held by user 65534 and not by you (0)") {
		t.Errorf("a stranger's socket gave %v", err)
	}
	if err := os.Chown(dir, nobody, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), socket); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("a stranger's folder gave %v", err)
	}
}
