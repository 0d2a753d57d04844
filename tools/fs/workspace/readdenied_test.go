package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// barring may reach the whole root, less what a rule denies.
func (s *site) barring(paths ...string) *workspace.View {
	all := []workspace.Grantee{{Real: s.root, Tree: true}}
	return s.ws.View(workspace.Grant{Dir: s.root, Reads: all, Writes: all, ReadDenied: bars(paths...)}, s.memory)
}

// bars is a rule about paths and what lies below them.
func bars(paths ...string) func(string) string {
	return func(real string) string {
		for _, path := range paths {
			if pathname.Within(path, real) {
				return tooltest.Rule
			}
		}
		return ""
	}
}

// A rule about a file, a directory or a link holds at every door and whatever was granted, existing or not.
func TestDeniedIsNotReached(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/sub/.env", "x")
	put(t, s.root+"/sub/secret/key", "x")
	put(t, s.root+"/sub/secretly", "x")
	put(t, s.root+"/free", "x")
	for name, target := range map[string]string{
		"to-env": "sub/.env", "second": "to-env", "by-name": "sub", "absolute": s.root + "/sub/secret", "dangling": "sub/secret/none", "linked": "free", "again": "linked",
	} {
		link(t, target, s.root+"/"+name)
	}
	tooltest.Unopened(t, s.root+"/sub/.env", s.root+"/sub/secret")
	v := s.barring(s.root+"/sub/.env", s.root+"/sub/secret", s.root+"/linked")
	for _, name := range []string{
		"sub/.env", "sub/secret", "sub/secret/key", "sub/secret/new/deep", "sub/.env/below", // itself and below
		"to-env", "second", "by-name/.env", "absolute", "absolute/key", "dangling", "by-name/../sub/.env", // by a link
		"linked", "again", // rules about a link
	} {
		refused(t, v, name, "rule_denied")
		_, err := v.Open(name)
		if f := fault.From(err); f.Kind != fault.Denied || !strings.Contains(f.Message, tooltest.Rule) || !strings.Contains(f.Message, name) && !strings.Contains(name, "..") {
			t.Errorf("%s: the fault says %q", name, f.Message)
		}
	}
	for _, name := range []string{"sub/secretly", "free"} {
		change(t, v, name, "new")
	}
	granted := s.ws.View(workspace.Grant{Dir: s.root, ReadDenied: bars(s.outside)}, s.memory)
	refused(t, granted, s.outside+"/file", "rule_denied")
}

// What a rule keeps from being read is no name that somebody may have meant.
func TestDeniedIsNotSuggested(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i := range 8 {
		put(t, fmt.Sprintf("%s/handler%d.go", s.root, i), "x")
	}
	link(t, "handler0.go", s.root+"/handlers.go")
	_, err := s.barring(s.root+"/handler0.go", s.root+"/handler1.go").Open("handler.go")
	found, _ := fault.From(err).Details.(workspace.NotFound)
	for _, path := range found.Similar {
		if strings.Contains(path, "handler0") || strings.Contains(path, "handler1") || strings.Contains(path, "handlers") {
			t.Errorf("%s is suggested", path)
		}
	}
	if len(found.Similar) != 5 {
		t.Errorf("suggested are %v, want five others", found.Similar)
	}
}

func TestTreeBars(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/dir/sub/.env", "x")
	put(t, s.root+"/dir/secret/key", "x")
	link(t, "sub/.env", s.root+"/dir/to-env")
	link(t, "nothing", s.root+"/dir/dangling")
	link(t, "dir", s.root+"/name")
	for path, guarded := range map[string]bool{"dir": true, "name": true, ".": true} {
		tree, err := s.barring(s.root+"/dir/sub/.env", s.root+"/dir/secret").Tree(path)
		if err != nil {
			t.Fatal(err)
		}
		below := map[bool]string{true: "dir/"}[path == "."]
		for name, want := range map[string]struct {
			kind   os.FileMode
			denied bool
		}{
			"sub": {os.ModeDir, false}, "sub/.env": {0, true}, "secret": {os.ModeDir, true}, "secret/key": {0, true},
			"to-env": {os.ModeSymlink, true}, "dangling": {os.ModeSymlink, false},
		} {
			if got := tree.ReadDenied(below+name, want.kind); got != want.denied {
				t.Errorf("in %s: %s denied %v, want %v", path, name, got, want.denied)
			}
		}
		if tree.Guarded() != guarded {
			t.Errorf("in %s: guarded %v", path, tree.Guarded())
		}
		tree.Close()
	}
	free, err := s.view().Tree(".")
	if err != nil || free.Guarded() || free.ReadDenied("dir/secret", os.ModeDir) {
		t.Errorf("%v: without rules something is denied", err)
	}
	free.Close()
}

func TestFindReadDenied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/a/b/c/.env", "x")
	put(t, s.root+"/many/one", "x")
	put(t, s.root+"/z/.env", "x")
	put(t, s.root+"/state/.env", "x")
	put(t, s.outside+"/key", "x")
	mkdir(t, s.root+"/links/deeper")
	link(t, "../../z/.env", s.root+"/links/deeper/to-env")
	link(t, s.outside, s.root+"/away")
	s.admit(t, workspace.Places{Hidden: []string{s.root + "/state"}})
	named := func(name string) func(string) string {
		return func(real string) string {
			if strings.HasSuffix(real, name) {
				return tooltest.Rule
			}
			return ""
		}
	}
	for _, c := range []struct {
		dir, name, want string
	}{
		{"", "/.env", "z/.env"}, // nearer than the other
		{"links", "/.env", "links/deeper/to-env"},
		{"a", "/.env", "a/b/c/.env"},
		{"a/b/c", "b/c", "a/b/c"},
		{"many", "/.env", ""},
		{"", "/none", ""},
		{"", "/key", ""}, // below a link
		{"", "state/.env", ""},
	} {
		path, why, sure := s.ws.FindReadDenied(t.Context(), filepath.Join(s.root, c.dir), named(c.name))
		if !sure || strings.TrimPrefix(path, s.root+"/") != c.want || (why == tooltest.Rule) != (c.want != "") {
			t.Errorf("%s in %q: %s (%q), sure %v; want %s", c.name, c.dir, path, why, sure, c.want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if path, _, sure := s.ws.FindReadDenied(gone, s.root, named("/.env")); path != "" || sure {
		t.Errorf("after the end of its context: %s, sure %v", path, sure)
	}
}

// Of more entries than it looks at it does not say that there is nothing.
func TestFindReadDeniedInTooMany(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/dir/0", "x")
	for i := 1; i < 19_999; i++ { // hard links, since they are made in no time; with dir itself 20,000
		if err := os.Link(s.root+"/dir/0", fmt.Sprintf("%s/dir/%d", s.root, i)); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(string) string { return "" }
	if path, _, sure := s.ws.FindReadDenied(t.Context(), s.root, nothing); path != "" || !sure {
		t.Errorf("found %q, sure %v", path, sure)
	}
	put(t, s.root+"/dir/more", "x")
	if path, _, sure := s.ws.FindReadDenied(t.Context(), s.root, nothing); path != "" || sure {
		t.Errorf("found %q, sure %v of one more", path, sure)
	}
}
