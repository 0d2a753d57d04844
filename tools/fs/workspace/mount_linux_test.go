package workspace_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Tests on file systems of their own.

// A file system of some pages is full at once. Atomic or in place, the old content stays.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	s := newSite(t)
	disk := s.root + "/disk"
	mount(t, disk, "tmpfs", "size=64k")
	big := strings.Repeat("x", 100<<10)
	put(t, disk+"/file", "old")
	for range 2 {
		v := s.view()
		if _, err := v.Look("disk/file"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"file", "new"} {
			if _, err := v.Change(t.Context(), "disk/"+name, become(big)); code(err) != "disk_full" {
				t.Errorf("%s: %v", name, err)
			}
		}
		holds(t, disk+"/file", "old")
		if _, err := os.Stat(disk + "/new"); !os.IsNotExist(err) {
			t.Errorf("half a file was left: %v", err)
		}
		if err := os.Link(disk+"/file", disk+"/hard"); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	alone(t, disk, 2)
}

// Where the kernel itself takes upper and lower case for one, every spelling comes to what the directory holds.
func TestFoldingDirectory(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	s := newSite(t)
	disk := s.root + "/folded"
	mount(t, disk, "tmpfs", "casefold")
	mkdir(t, disk+"/d")
	d, err := os.Open(disk + "/d")
	if err != nil {
		t.Fatal(err)
	}
	const casefold = 0x40000000 // FS_CASEFOLD_FL
	err = unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, casefold)
	d.Close()
	if err != nil {
		t.Skipf("a directory cannot be made to fold case: %v", err)
	}
	put(t, disk+"/d/.Env", "x")
	put(t, disk+"/d/U\u0308ni", "x")
	for name, want := range map[string]string{".Env": ".Env", ".env": ".Env", ".ENV": ".Env", "\u00fcNI": "U\u0308ni", "U\u0308ni": "U\u0308ni"} {
		s.spells(t, disk+"/d/"+name, disk+"/d/"+want)
	}
}

// A procfs may be mounted anywhere, in part too; its links are as magic there.
func TestProcessesMountedElsewhere(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	s := newSite(t)
	mkdir(t, s.root+"/p")
	if err := unix.Mount("/proc", s.root+"/p", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		t.Skipf("/proc cannot be mounted a second time: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.root+"/p", unix.MNT_DETACH) })
	put(t, s.outside+"/file", "theirs")
	for _, name := range []string{"p/self/root" + s.outside + "/file", "p/self/cwd/x", "p/thread-self/root/etc/passwd"} {
		refused(t, s.view(), name, "magic_link")
	}
	mkdir(t, s.root+"/one")
	if err := unix.Mount("/proc/self", s.root+"/one", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.root+"/one", unix.MNT_DETACH) })
	// Here the kernel does not say that the directory is a process's. The link is then taken by its text.
	for door, try := range doors {
		if err := try(t, s.view(), "one/root"+s.outside+"/file"); code(err) != "undeclared" && code(err) != "magic_link" {
			t.Errorf("%s through a part of /proc: %v", door, err)
		}
	}
}
