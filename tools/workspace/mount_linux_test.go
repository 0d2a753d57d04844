package workspace_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Tests on file systems of their own. They need the right to mount.

// A file system of one page is full at once. Atomic or in place, the old content stays.
func TestFullDisk(t *testing.T) {
	s := newSite(t)
	disk := s.root + "/disk"
	mkdir(t, disk)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	defer func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	big := strings.Repeat("x", 100<<10)
	put(t, disk+"/file", "old")
	for range 2 {
		for _, name := range []string{"file", "new"} {
			if _, err := s.view().Change(t.Context(), "disk/"+name, become(big)); code(err) != "disk_full" {
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

// Where upper and lower case are one, every spelling comes to what the directory holds.
func TestSpellingIsTheDirectorys(t *testing.T) {
	s := newSite(t)
	dir := s.root + "/folded"
	mkdir(t, dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "casefold"); err != nil {
		t.Skipf("no file system that folds case can be mounted here: %v", err)
	}
	defer unix.Unmount(dir, 0)
	mkdir(t, dir+"/d")
	if out, err := exec.Command("chattr", "+F", dir+"/d").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	put(t, dir+"/d/.Env", "x")
	for _, name := range []string{".Env", ".env", ".ENV"} {
		if p, err := s.ws.Resolve(dir+"/d", name); err != nil || p.Real != dir+"/d/.Env" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		f, err := s.view().Open(dir + "/d/" + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.Close()
	}
}
