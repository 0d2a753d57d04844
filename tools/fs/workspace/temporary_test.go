package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/workspace"
)

// TestTemporary: below the name of a directory for temporary files a name stands for the file in the session's own, unless
// only the machine has it. MACHINE is the machine's directory, OWN the session's, STATE what is the daemon's around it.
func TestTemporary(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	places := strings.NewReplacer("MACHINE", filepath.Join(base, "machine"), "OWN", filepath.Join(base, "state/own"), "STATE", filepath.Join(base, "state"), "BASE", base)
	for _, dir := range []string{"MACHINE/both", "MACHINE/theirs/sub", "MACHINE/root", "OWN/both", "OWN/mine", "STATE/other"} {
		check(t, os.MkdirAll(places.Replace(dir), 0o700))
	}
	for _, file := range []string{"MACHINE/both/theirs", "MACHINE/theirs/sub/f", "MACHINE/root/f", "MACHINE/same", "OWN/same", "OWN/mine/f", "STATE/other/f", "BASE/outside", "MACHINE/shown", "OWN/point"} {
		check(t, os.WriteFile(places.Replace(file), []byte(file), 0o600))
	}
	check(t, os.WriteFile(places.Replace("MACHINE/point"), nil, 0o600))
	check(t, os.Chmod(places.Replace("OWN/point"), os.ModeSticky))
	for name, to := range map[string]string{"OWN/up": "../outside", "OWN/state": "STATE", "OWN/here": "MACHINE/mine/f", "OWN/shown": "MACHINE/root/f", "OWN/hop": "STATE/own/../other/f", "MACHINE/link": "MACHINE/same", "BASE/tolink": "MACHINE/here", "OWN/loop": "MACHINE/loop"} {
		check(t, os.Symlink(places.Replace(to), places.Replace(name)))
	}
	w, err := workspace.Open([]string{places.Replace("MACHINE/root")}, nil)
	check(t, err)
	w, err = w.Admit(workspace.Places{
		Hidden:    []string{places.Replace("STATE")},
		Temporary: []workspace.Temporary{{Name: places.Replace("MACHINE"), Dir: places.Replace("OWN")}}, Opened: []string{places.Replace("MACHINE/shown")},
	})
	check(t, err)
	for _, tt := range []struct {
		name, real string // empty: it leads nowhere
		place      workspace.Place
	}{
		{"MACHINE", "OWN", workspace.Scratch},
		{"MACHINE/new", "OWN/new", workspace.Scratch},
		{"MACHINE/same", "OWN/same", workspace.Scratch},
		{"MACHINE/mine/f", "OWN/mine/f", workspace.Scratch},
		{"MACHINE/mine/../same", "OWN/same", workspace.Scratch},
		{"MACHINE/both", "OWN/both", workspace.Scratch},
		{"MACHINE/both/new", "OWN/both/new", workspace.Scratch},
		{"MACHINE/both/theirs", "MACHINE/both/theirs", workspace.Outside},
		{"MACHINE/theirs/sub/f", "MACHINE/theirs/sub/f", workspace.Outside},
		{"MACHINE/theirs/new", "MACHINE/theirs/new", workspace.Outside},
		{"MACHINE/root/f", "MACHINE/root/f", workspace.InRoot},
		{"MACHINE/root/new", "MACHINE/root/new", workspace.InRoot},
		{"MACHINE/shown", "MACHINE/shown", workspace.Outside},
		{"MACHINE/point", "MACHINE/point", workspace.Outside},
		{"MACHINE/link", "OWN/same", workspace.Scratch},
		{"MACHINE/here", "OWN/mine/f", workspace.Scratch},
		{"BASE/tolink", "OWN/mine/f", workspace.Scratch},
		{"MACHINE/up", "BASE/outside", workspace.Outside},
		{"MACHINE/state/other/f", "STATE/other/f", workspace.Hidden},
		{"MACHINE/state/own/mine/f", "OWN/mine/f", workspace.Scratch},
		{"MACHINE/hop", "STATE/other/f", workspace.Hidden},
		{"OWN/../other/f", "STATE/other/f", workspace.Hidden},
		{"OWN/mine/f", "OWN/mine/f", workspace.Scratch},
		{"MACHINE/../outside", "BASE/outside", workspace.Outside},
		{"MACHINE/loop", "", 0},
	} {
		p, err := w.Resolve("/", places.Replace(tt.name))
		if (err != nil) != (tt.real == "") || err == nil && (p.Real != places.Replace(tt.real) || w.Place(p.Real) != tt.place) {
			t.Errorf("%s leads to %s, place %v, %v; want %s, place %v", tt.name, p.Real, w.Place(p.Real), err, tt.real, tt.place)
		}
		if err == nil && p.Mapped != (p.Real == places.Replace(tt.real) && strings.HasPrefix(tt.real, "OWN") && !strings.HasPrefix(tt.name, "OWN") && !strings.Contains(tt.name, "/state/")) {
			t.Errorf("%s is mapped: %t", tt.name, p.Mapped)
		}
		if err == nil && p.Exists != exists(p.Real) {
			t.Errorf("%s exists: %t", tt.name, p.Exists)
		}
		if m, err := w.Machine().Resolve("/", places.Replace(tt.name)); err == nil && m.Mapped {
			t.Errorf("outside of the sandbox %s leads to %s", tt.name, m.Real)
		}
	}
	if got := w.Seen(places.Replace("OWN/a/b")); got != places.Replace("MACHINE/a/b") {
		t.Errorf("calls know it as %s", got)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
