package workspace_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/fs/workspace"
)

// TestOpenAgain opens a file, closes it, and opens it again after something has happened to it.
func TestOpenAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, file string)
		want   string // the content, or the code of the fault
	}{
		{"nothing", func(*testing.T, string) {}, "before"},
		{"written", func(t *testing.T, file string) { put(t, file, "after, and longer") }, "after, and longer"},
		{"replaced", func(t *testing.T, file string) {
			put(t, file+".new", "after")
			rename(t, file+".new", file)
		}, "after"},
		{"removed", func(t *testing.T, file string) { remove(t, file) }, "file_not_found"},
		{"a pipe in its place", func(t *testing.T, file string) {
			remove(t, file)
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not_regular"},
		{"a link in its place", func(t *testing.T, file string) {
			rename(t, file, file+".old")
			link(t, "/etc/hostname", file)
		}, "undeclared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			file := filepath.Join(s.root, "file")
			put(t, file, "before")
			v := s.view()
			defer v.Release()
			if got := contentOf(v, file); got != "before" {
				t.Fatalf("it holds %q", got)
			}
			c.change(t, file)
			if got := contentOf(v, file); got != c.want {
				t.Errorf("it holds %q, want %q", got, c.want)
			}
		})
	}
}

// TestKeptContent keeps a content, and opens the file again after something has happened to it.
func TestKeptContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, v *workspace.View, file string)
		kept   bool
	}{
		{"nothing", func(*testing.T, *workspace.View, string) {}, true},
		{"written", func(t *testing.T, _ *workspace.View, file string) { put(t, file, "behind") }, false},
		{"written, with its time put back", func(t *testing.T, _ *workspace.View, file string) {
			info, err := os.Stat(file)
			put(t, file, "behind")
			if err == nil {
				err = os.Chtimes(file, info.ModTime(), info.ModTime())
			}
			if err != nil {
				t.Error(err)
			}
		}, false},
		{"replaced", func(t *testing.T, _ *workspace.View, file string) {
			put(t, file+".new", "behind")
			rename(t, file+".new", file)
		}, false},
		{"the call has waited", func(_ *testing.T, v *workspace.View, _ string) { v.Release() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			file := filepath.Join(s.root, "file")
			put(t, file, "before")
			v := s.view()
			defer v.Release()
			open := func() *workspace.File {
				f, err := v.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			kept := func() bool {
				f := open()
				defer f.Close()
				if f.Kept() != nil {
					return true
				}
				content, err := io.ReadAll(f)
				if err != nil || len(content) != len("before") {
					t.Fatalf("%q, %v", content, err)
				}
				f.Keep(content)
				return false
			}
			for !kept() && t.Context().Err() == nil { // until the file has not been changed for a while
			}
			c.change(t, v, file)
			f := open()
			defer f.Close()
			if f.Kept() != nil {
				if !c.kept || string(f.Kept()) != "before" {
					t.Errorf("%q is kept", f.Kept())
				}
				return
			}
			content, err := io.ReadAll(f)
			if want := map[bool]string{true: "kept", false: "behind"}[c.kept]; err != nil || string(content) != want && c.name != "the call has waited" {
				t.Errorf("%q, %v, want %q", content, err, want)
			}
		})
	}
}

// TestOpensWhatWasJudged exchanges the link that was judged: its old target is opened.
func TestOpensWhatWasJudged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	put(t, s.root+"/judged", "judged")
	put(t, s.root+"/other", "other")
	link(t, s.root+"/judged", s.root+"/name")
	p, err := s.ws.Resolve(s.root, "name")
	if err != nil {
		t.Fatal(err)
	}
	v := s.ws.View(workspace.Grant{Dir: s.root, Reads: []workspace.Grantee{{Real: p.Real, Name: "name", Path: p}}}, s.memory)
	defer v.Release()
	remove(t, s.root+"/name")
	link(t, s.root+"/other", s.root+"/name")
	for _, open := range []struct{ name, want string }{{"name", "judged"}, {s.root + "/name", "undeclared"}, {"other", "undeclared"}} {
		if got := contentOf(v, open.name); got != open.want {
			t.Errorf("%s holds %q, want %q", open.name, got, open.want)
		}
	}
}

// TestOpensNoLink exchanges a directory on the way to what was judged.
func TestOpensNoLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	mkdir(t, s.root+"/dir")
	mkdir(t, s.root+"/secret")
	put(t, s.root+"/dir/file", "judged")
	put(t, s.root+"/secret/file", "secret")
	p, err := s.ws.Resolve(s.root, "dir/file")
	if err != nil {
		t.Fatal(err)
	}
	v := s.ws.View(workspace.Grant{Dir: s.root, Reads: []workspace.Grantee{{Real: p.Real, Name: "dir/file", Path: p}}}, s.memory)
	rename(t, s.root+"/dir", s.root+"/old")
	link(t, "secret", s.root+"/dir")
	if got := contentOf(v, "dir/file"); got != "undeclared" {
		t.Errorf("it holds %q", got)
	}
}

// TestReleaseClosesWhatIsKept counts descriptors of the file.
func TestReleaseClosesWhatIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := s.root + "/file"
	put(t, file, "content")
	v := s.view()
	contentOf(v, file)
	contentOf(v, file)
	if got := descriptorsOf(t, file); got != 1 {
		t.Errorf("%d descriptors are kept, want 1", got)
	}
	v.Release()
	if got := descriptorsOf(t, file); got != 0 {
		t.Errorf("%d descriptors are left", got)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// contentOf returns what the file holds, or the code of the fault.
func contentOf(v *workspace.View, name string) string {
	f, err := v.Open(name)
	if err != nil {
		return code(err)
	}
	data, err := io.ReadAll(f)
	if int64(len(data)) != f.Info.Size() || err != nil {
		return fmt.Sprintf("%q of %d bytes (%v)", data, f.Info.Size(), err)
	}
	if err := f.Close(); err != nil {
		return err.Error()
	}
	if f.Close() == nil {
		return "closed twice"
	}
	return string(data)
}

// descriptorsOf counts this process's descriptors of a file.
func descriptorsOf(t *testing.T, file string) (count int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == file {
			count++
		}
	}
	return count
}
