package workspace_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// This file is what somebody may do to paths who can write in a root: a test for each. What only Linux has is in
// attack_linux_test.go, and everything at once in race_linux_test.go.

// doors are all ways by which a view opens what a name comes to.
var doors = map[string]func(t *testing.T, v *workspace.View, name string) error{
	"Open": func(_ *testing.T, v *workspace.View, name string) error {
		f, err := v.Open(name)
		if err == nil {
			f.Close()
		}
		return err
	},
	"Look": func(_ *testing.T, v *workspace.View, name string) error { _, err := v.Look(name); return err },
	"Change": func(t *testing.T, v *workspace.View, name string) error {
		_, err := v.Change(t.Context(), name, become("new"))
		return err
	},
	"OpenDir": func(_ *testing.T, v *workspace.View, name string) error {
		dir, err := v.OpenDir(name)
		if err == nil {
			dir.Close()
		}
		return err
	},
	"Tree": func(_ *testing.T, v *workspace.View, name string) error {
		tree, err := v.Tree(name)
		if err == nil {
			tree.Close()
		}
		return err
	},
}

// refused tries every door on a name.
func refused(t *testing.T, v *workspace.View, name, want string) {
	t.Helper()
	for door, try := range doors {
		if err := try(t, v, name); code(err) != want {
			t.Errorf("%s(%q): %v, want %s", door, name, err, want)
		}
	}
}

// A link to what does not exist is taken for its target: nothing is made outside.
func TestDanglingLinkOutside(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link(t, s.outside+"/none", s.root+"/absolute")
	link(t, "../outside/none", s.root+"/relative")
	link(t, "relative", s.root+"/second")
	for _, name := range []string{"absolute", "relative", "second", "absolute/deep/file", "relative/file"} {
		refused(t, s.view(), name, "undeclared")
	}
	alone(t, s.outside, 0)
	alone(t, s.root, 3)
}

// A hard link in a root to a file outside. No path tells where a file's other names are, so what holds is: it reads like
// any file, a change of it asks first, and without that is refused, whether the link was there all the time or was put
// in the place of another file after the check.
func TestHardLinkPlantedInRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.outside+"/file", "old")
	put(t, s.root+"/file", "old")
	if err := os.Link(s.outside+"/file", s.root+"/planted"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.view().Change(t.Context(), "planted", never(t)); code(err) != "stale_file" {
		t.Errorf("changed without a look: %v", err)
	}
	v := s.view()
	if c, err := v.Look("file"); err != nil || c.OtherNames() != "" {
		t.Errorf("%v: a file of one name asks %q", err, c.OtherNames())
	}
	if err := os.Rename(s.root+"/planted", s.root+"/file"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Change(t.Context(), "file", never(t)); code(err) != "stale_file" || !strings.Contains(err.Error(), "2 hard links") {
		t.Errorf("planted after the look: %v", err)
	}
	holds(t, s.outside+"/file", "old")
	c, err := v.Look("file")
	if err != nil || !strings.Contains(c.OtherNames(), "2 hard links") {
		t.Fatalf("%v: asks %q", err, c.OtherNames())
	}
	if w := change(t, v, "file", "new"); w.OtherNames != c.OtherNames() {
		t.Errorf("after it was asked about, the change reports %q", w.OtherNames)
	}
	holds(t, s.outside+"/file", "new")
}

// A directory on the way is swapped for a link after the call was permitted.
func TestDirectorySwappedForLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/dir/file", "ours")
	put(t, s.outside+"/file", "theirs")
	put(t, s.root+"/other/file", "another")
	exactly := []workspace.Grantee{{Real: s.root + "/dir/file"}, {Real: s.root + "/dir/new/deep"}}
	for _, target := range []string{s.outside, "../outside", "other"} {
		v := s.ws.View(workspace.Grant{Dir: s.root, Reads: exactly, Writes: exactly}, s.memory)
		s.swap(t, target)
		refused(t, v, "dir/file", "undeclared")
		refused(t, v, "dir/new/deep", "undeclared")
		s.swapBack(t)
	}
	alone(t, s.outside, 1)
	alone(t, s.root+"/other", 1)
}

// swap puts a link to target in the place of the directory "dir".
func (s *site) swap(t *testing.T, target string) {
	t.Helper()
	if err := os.Rename(s.root+"/dir", s.root+"/aside"); err != nil {
		t.Fatal(err)
	}
	link(t, target, s.root+"/dir")
}

func (s *site) swapBack(t *testing.T) {
	t.Helper()
	if err := os.Remove(s.root + "/dir"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.root+"/aside", s.root+"/dir"); err != nil {
		t.Fatal(err)
	}
}

// The same while the new content is being worked out: between the opening and the writing.
func TestDirectorySwappedWhileChanging(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/dir/file", "ours")
	put(t, s.outside+"/file", "theirs")
	put(t, s.root+"/other/file", "another")
	for _, target := range []string{s.outside, "../outside", "other"} {
		for _, name := range []string{"dir/file", "dir/fresh", "dir/new/deep"} {
			_, err := s.view().Change(t.Context(), name, func(*workspace.Content) (workspace.Update, error) {
				s.swap(t, target)
				return workspace.Update{Data: []byte("changed")}, nil
			})
			if c := code(err); c != "undeclared" && c != "not_a_directory" && c != "permission_denied" {
				t.Errorf("%s, swapped for a link to %s: %v", name, target, err)
			}
			s.swapBack(t)
		}
	}
	holds(t, s.root+"/dir/file", "ours")
	holds(t, s.outside+"/file", "theirs")
	holds(t, s.root+"/other/file", "another")
	alone(t, s.root+"/dir", 1)
	alone(t, s.outside, 1)
	alone(t, s.root+"/other", 1)
}

func TestLinkLoop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/chain0", "x")
	for i := range 41 {
		link(t, fmt.Sprintf("chain%d", i), fmt.Sprintf("%s/chain%d", s.root, i+1))
	}
	link(t, "self", s.root+"/self")
	link(t, "pong", s.root+"/ping")
	link(t, "ping", s.root+"/pong")
	link(t, "deeper/x", s.root+"/deeper")
	for _, name := range []string{"self", "ping", "ping/file", "deeper", "chain41"} {
		refused(t, s.view(), name, "link_loop")
	}
	f, err := s.view().Open("chain40")
	if err != nil {
		t.Fatalf("forty links: %v", err)
	}
	f.Close()
}

// An absolute link that stays inside is followed, also through a second name of the root.
func TestAbsoluteLinkInsideRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/dir/file", "old")
	link(t, s.root, s.outside+"/name")
	for name, target := range map[string]string{"file": s.root + "/dir/file", "dir2": s.root + "/dir", "around": s.outside + "/name/dir"} {
		link(t, target, s.root+"/"+name)
	}
	for _, name := range []string{"file", "dir2/file", "around/file", s.outside + "/name/file"} {
		if w := change(t, s.view(), name, name); w.Path.Real != s.root+"/dir/file" {
			t.Errorf("%s came to %s", name, w.Path.Real)
		}
		holds(t, s.root+"/dir/file", name)
	}
}

// ".." goes up from where a link led to, not from where it lies.
func TestUpAfterLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/file", "ours")
	put(t, s.root+"/a/file", "deeper")
	put(t, s.outside+"/file", "theirs")
	mkdir(t, s.outside+"/dir")
	mkdir(t, s.root+"/a/dir")
	link(t, s.outside+"/dir", s.root+"/out")
	link(t, "a/dir", s.root+"/in")
	for _, name := range []string{"out/../file", "out/./../file", "none/../out/../file", "../outside/file"} {
		refused(t, s.view(), name, "undeclared")
	}
	for name, want := range map[string]string{"in/../file": "deeper", "in/../../file": "ours", "out/../../root/file": "ours"} {
		if c, err := s.view().Look(name); err != nil || string(c.Data) != want {
			t.Errorf("%s: %v, holds %q, want %q", name, err, c.Data, want)
		}
	}
}

// What could block is not opened, under whatever name; a test that hangs here has failed.
func TestPipesAndSockets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := syscall.Mkfifo(s.root+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", s.root+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	link(t, "pipe", s.root+"/link")
	for _, name := range []string{"pipe", "link", "socket"} {
		refused(t, s.view(), name, "not_regular")
	}
	put(t, s.root+"/file", "x")
	_, err = s.view().Change(t.Context(), "file", func(*workspace.Content) (workspace.Update, error) {
		return workspace.Update{Data: []byte("new")}, os.Rename(s.root+"/pipe", s.root+"/file")
	})
	if code(err) != "stale_file" {
		t.Errorf("a pipe in the place of the file: %v", err)
	}
}

func never(t *testing.T) func(*workspace.Content) (workspace.Update, error) {
	return func(*workspace.Content) (workspace.Update, error) {
		t.Helper()
		t.Error("a content was shown that must not be reached")
		return workspace.Update{}, nil
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"a\x00b", "\x00", "dir/\x00/../file", "base64:AA==", "base64:", "base64:?", ""} {
		refused(t, s.view(), name, "invalid_input")
	}
	refused(t, s.view(), strings.Repeat("n", 256), "name_too_long")
	for _, name := range []string{"line\nbreak", "carriage\rreturn", "\x1b[2Jescape", " ", "-rf", "~", "$HOME", "*", "caf\xe9", "base64:eA==", "a\u202eb"} {
		put(t, filepath.Join(s.root, name), "old")
		named := workspace.NameOf(filepath.Join(s.root, name))
		w := change(t, s.view(), named, "new")
		if w.Path.Named != filepath.Join(s.root, name) || w.Path.Name() != named {
			t.Errorf("%q: named %q, called %q", name, w.Path.Named, w.Path.Name())
		}
		holds(t, filepath.Join(s.root, name), "new")
		_, err := s.view().Tree(named + "/below")
		if said := fault.From(err).Message; strings.ContainsAny(said, "\n\r\x1b") || !utf8.ValidString(said) {
			t.Errorf("%q is shown raw: %q", name, said)
		}
	}
}

// What a name holds that is no text is escaped where it is shown, and can be named back.
func TestNamesThatAreNoText(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/caf\xe9", "x")
	p, err := s.ws.Resolve(s.root, "caf\xe9")
	if err != nil || p.Shown() != s.root+`/caf\xe9` {
		t.Errorf("%v: shown as %s", err, p.Shown())
	}
	f, err := s.view().Open(p.Name())
	if err != nil {
		t.Fatalf("%s: %v", p.Name(), err)
	}
	f.Close()
	_, err = s.view().Open("caf\xe8")
	if details, _ := fault.From(err).Details.(workspace.NotFound); !utf8.ValidString(err.Error()+strings.Join(details.Similar, "")) || len(details.Similar) != 1 {
		t.Errorf("%+q %+q", err.Error(), details)
	}
}
