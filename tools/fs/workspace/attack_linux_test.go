package workspace_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/workspace"
)

// Links that the kernel makes lead to what is open, or to another process's view, whatever their text says. They are
// refused, by whatever way a name comes to them, also where everything was granted.
func TestMagicLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.outside+"/file", "theirs")
	held, err := os.Open(s.outside + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	dir, err := os.Open(s.outside)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	link(t, "/proc/self", s.root+"/self")
	link(t, fmt.Sprintf("/proc/self/fd/%d", held.Fd()), s.root+"/held")
	everything := []workspace.Grantee{{Real: "/", Tree: true}}
	v := s.ws.View(workspace.Grant{Dir: s.root, Reads: everything, Writes: everything}, s.memory)
	for _, name := range []string{
		"/proc/self/root" + s.outside + "/file", "/proc/1/root/etc/hostname", "/proc/self/cwd/file", "/proc/self/exe",
		fmt.Sprintf("/proc/self/fd/%d", held.Fd()), fmt.Sprintf("/proc/self/fd/%d/file", dir.Fd()), fmt.Sprintf("/proc/thread-self/fd/%d", held.Fd()),
		fmt.Sprintf("/proc/self/task/%d/root/etc/hostname", os.Getpid()), "/dev/fd/0", "/dev/stdin",
		"held", "self/root/etc/hostname", fmt.Sprintf("self/fd/%d", held.Fd()), "/proc/../proc/self/./cwd",
	} {
		refused(t, v, name, "magic_link")
	}
	holds(t, s.outside+"/file", "theirs")
}

// A device is not opened, since that alone may do something; nor is one in the place of a file.
func TestDeviceNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link(t, "/dev/zero", s.root+"/endless")
	devices := []workspace.Grantee{{Real: "/dev", Tree: true}, {Real: s.root, Tree: true}}
	v := s.ws.View(workspace.Grant{Dir: s.root, Reads: devices, Writes: devices}, s.memory)
	for _, name := range []string{"/dev/null", "/dev/zero", "endless"} {
		refused(t, v, name, "not_regular")
	}
	if err := unix.Mknod(s.root+"/node", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Skipf("a device cannot be made here: %v", err)
	}
	refused(t, v, "node", "not_regular")
	put(t, s.root+"/file", "x")
	_, err := v.Change(t.Context(), "file", func(*workspace.Content) (workspace.Update, error) {
		return workspace.Update{Data: []byte("new")}, os.Rename(s.root+"/node", s.root+"/file")
	})
	if code(err) != "stale_file" {
		t.Errorf("a device in the place of the file: %v", err)
	}
}
