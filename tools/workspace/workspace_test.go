package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/workspace"
)

// A site is a directory tree with a root in it and a place beside it.
type site struct {
	root, outside string
	ws            *workspace.Workspace
	memory        *workspace.Memory
}

func newSite(t *testing.T) *site {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{root: filepath.Join(top, "root"), outside: filepath.Join(top, "outside"), memory: workspace.NewMemory()}
	mkdir(t, s.root)
	mkdir(t, s.outside)
	if s.ws, err = workspace.Open([]string{s.root}, workspace.NewLocks()); err != nil {
		t.Fatal(err)
	}
	return s
}

// view may reach the whole root.
func (s *site) view() *workspace.View {
	all := []workspace.Grantee{{Real: s.root, Tree: true}}
	return s.ws.View(workspace.Grant{Dir: s.root, Reads: all, Writes: all}, s.memory)
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

func TestResolve(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/dir/file", "x")
	put(t, s.outside+"/secret", "x")
	link(t, "dir", s.root+"/inside")
	link(t, s.root+"/dir/file", s.root+"/absolute")
	link(t, s.outside, s.root+"/out")
	link(t, s.outside+"/none/yet", s.root+"/dangling")
	link(t, "loop", s.root+"/loop")
	for _, c := range []struct {
		name, real string
		exists     bool
		code       string
	}{
		{name: "dir/file", real: s.root + "/dir/file", exists: true},
		{name: s.root + "/dir//./file", real: s.root + "/dir/file", exists: true},
		{name: "inside/file", real: s.root + "/dir/file", exists: true},
		{name: "absolute", real: s.root + "/dir/file", exists: true},
		{name: "out/secret", real: s.outside + "/secret", exists: true},
		{name: "out/../root/dir", real: s.root + "/dir", exists: true}, // up from where the link led
		{name: "../outside/secret", real: s.outside + "/secret", exists: true},
		{name: "dangling", real: s.outside + "/none/yet"},
		{name: "inside/new/deep", real: s.root + "/dir/new/deep"},
		{name: "none/../dir/file", real: s.root + "/dir/file", exists: true},
		{name: "none/../out/secret", real: s.outside + "/secret", exists: true},
		{name: "dir/file/below", real: s.root + "/dir/file/below"},
		{name: "base64:ZGlyL2ZpbGU=", real: s.root + "/dir/file", exists: true},
		{name: "/../../..", real: "/", exists: true},
		{name: "loop", code: "link_loop"},
		{name: "", code: "invalid_input"},
		{name: "a\x00b", code: "invalid_input"},
		{name: "base64:!", code: "invalid_input"},
		{name: "/proc/self/root/etc/passwd", code: "magic_link"},
		{name: "/proc/self/cwd", code: "magic_link"},
		{name: "/dev/fd/0", code: "magic_link"},
		{name: string(make([]byte, 300)) + "x", code: "invalid_input"},
	} {
		got, err := s.ws.Resolve(s.root, c.name)
		if code(err) != c.code {
			t.Errorf("Resolve(%q): %v, want code %q", c.name, err, c.code)
		}
		if err == nil && (got.Real != c.real || got.Exists != c.exists) {
			t.Errorf("Resolve(%q) = %+v, want %s, exists %v", c.name, got, c.real, c.exists)
		}
	}
}

func TestPlace(t *testing.T) {
	s := newSite(t)
	mkdir(t, s.root+"-not")
	spill, state, public := s.outside+"/state/spill", s.outside+"/state", s.outside+"/public"
	put(t, spill+"/x", "x")
	put(t, public+"/open", "x")
	put(t, public+"/closed", "x")
	put(t, public+"/shut/open", "x")
	for name, mode := range map[string]os.FileMode{"closed": 0o640, "shut": 0o700} {
		if err := os.Chmod(filepath.Join(public, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ws.Admit(workspace.Places{Public: []string{public, "/no/such"}, Readable: []string{spill}, Hidden: []string{state}}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]workspace.Place{
		s.root:                workspace.InRoot,
		s.root + "/a/b":       workspace.InRoot,
		s.root + "-not":       workspace.Outside,
		s.root + "-not/a":     workspace.Outside,
		s.outside:             workspace.Outside,
		spill + "/x":          workspace.Readable,
		state + "/token":      workspace.Hidden,
		public:                workspace.Public,
		public + "/open":      workspace.Public,
		public + "/closed":    workspace.Outside,
		public + "/shut/open": workspace.Outside,
		"/":                   workspace.Outside,
	} {
		if got := s.ws.Place(path); got != want {
			t.Errorf("Place(%s) = %d, want %d", path, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/main.go", "x")
	mkdir(t, s.root+"/dir")
	if err := syscall.Mkfifo(s.root+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, s.outside+"/secret", "x")
	link(t, s.outside+"/secret", s.root+"/escape")
	link(t, s.outside+"/none", s.root+"/dangling")
	for name, want := range map[string]string{
		"main.go":             "",
		"Main.go":             "file_not_found",
		"dir":                 "is_directory",
		"pipe":                "not_regular",
		"escape":              "undeclared",
		"dangling":            "undeclared",
		s.outside + "/secret": "undeclared",
		"main.go/x":           "file_not_found",
	} {
		f, err := s.view().Open(name)
		if code(err) != want {
			t.Errorf("Open(%q): %v, want %q", name, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
	dev := s.ws.View(workspace.Grant{Dir: s.root, Reads: []workspace.Grantee{{Real: "/dev/zero"}}}, s.memory)
	if _, err := dev.Open("/dev/zero"); code(err) != "not_regular" {
		t.Errorf("a device: %v", err)
	}
}

func TestNotFoundNamesWhatIsSimilar(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"handler.go", "Handler.go", "handler.ts", "hander.go", "unrelated.md"} {
		put(t, s.root+"/"+name, "x")
	}
	_, err := s.view().Open("handlr.go")
	details, ok := fault.From(err).Details.(workspace.NotFound)
	if !ok || len(details.Similar) != 3 || details.Similar[0] != s.root+"/Handler.go" || details.WorkingDirectory != s.root {
		t.Errorf("details = %+v", details)
	}
	_, err = s.view().Open("none/at/all.go")
	if details, _ := fault.From(err).Details.(workspace.NotFound); details.Parent != s.root {
		t.Errorf("parent = %+v", details)
	}
}

// A directory on the way is swapped for a link after the call was permitted.
func TestSwappedDirectory(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/dir/file", "ours")
	put(t, s.outside+"/file", "theirs")
	put(t, s.root+"/other/file", "another")
	exactly := []workspace.Grantee{{Real: s.root + "/dir/file"}}
	for _, target := range []string{s.outside, "other"} {
		v := s.ws.View(workspace.Grant{Dir: s.root, Reads: exactly, Writes: exactly}, s.memory)
		if err := os.Rename(s.root+"/dir", s.root+"/aside"); err != nil {
			t.Fatal(err)
		}
		link(t, target, s.root+"/dir")
		if _, err := v.Open("dir/file"); code(err) != "undeclared" {
			t.Errorf("Open through a link to %s: %v", target, err)
		}
		if _, err := v.Change(t.Context(), "dir/file", never(t)); code(err) != "undeclared" {
			t.Errorf("Change through a link to %s: %v", target, err)
		}
		if err := os.Remove(s.root + "/dir"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(s.root+"/aside", s.root+"/dir"); err != nil {
			t.Fatal(err)
		}
	}
}

func never(t *testing.T) func(*workspace.Content) (workspace.Update, error) {
	return func(*workspace.Content) (workspace.Update, error) {
		t.Helper()
		t.Error("a content was shown that must not be reached")
		return workspace.Update{}, nil
	}
}

// An attacker swaps the directory for a link and back while files are opened. Whatever is opened must be ours.
func TestRacingAttacker(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/dir/file", "ours")
	put(t, s.outside+"/file", "theirs")
	exactly := []workspace.Grantee{{Real: s.root + "/dir/file"}}
	v := s.ws.View(workspace.Grant{Dir: s.root, Reads: exactly, Writes: exactly}, s.memory)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(s.root+"/dir", s.root+"/aside")
			_ = os.Symlink(s.outside, s.root+"/dir")
			_ = os.Remove(s.root + "/dir")
			_ = os.Rename(s.root+"/aside", s.root+"/dir")
		}
	}()
	for range 2000 {
		if c, err := v.Look("dir/file"); err == nil && c.Path.Exists && string(c.Data) != "ours" {
			t.Errorf("read %q", c.Data)
		}
		_, err := v.Change(t.Context(), "dir/file", func(*workspace.Content) (workspace.Update, error) {
			return workspace.Update{Data: []byte("ours")}, nil
		})
		if c := code(err); c == "internal" {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	if got, err := os.ReadFile(s.outside + "/file"); err != nil || string(got) != "theirs" {
		t.Errorf("outside: %q, %v", got, err)
	}
	if list, _ := os.ReadDir(s.outside); len(list) != 1 {
		t.Errorf("outside holds %v", list)
	}
}

func TestTree(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/dir/file", "x")
	link(t, s.root+"/dir", s.root+"/link")
	if err := syscall.Mkfifo(s.root+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ real, single, code string }{
		"fifo":      {code: "not_regular"},
		"dir":       {real: s.root + "/dir"},
		".":         {real: s.root},
		"link":      {real: s.root + "/dir"},
		"link/file": {real: s.root + "/dir", single: "file"},
		"none":      {code: "path_not_found"},
		"..":        {code: "undeclared"},
	} {
		tree, err := s.view().Tree(name)
		if code(err) != want.code {
			t.Errorf("Tree(%q): %v, want %q", name, err, want.code)
		}
		if err != nil {
			continue
		}
		if tree.Real != want.real || tree.Single != want.single {
			t.Errorf("Tree(%q) = %s, %q", name, tree.Real, tree.Single)
		}
		tree.Close()
	}
}

// TestClaimedSize: a sparse file claims more than the machine has; nothing is taken for it.
func TestClaimedSize(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/sparse", "")
	if err := os.Truncate(s.root+"/sparse", 8<<40); err != nil {
		t.Skipf("needs a file system with sparse files of 8 TiB: %v", err)
	}
	if _, err := s.view().Look("sparse"); code(err) != "file_too_large" {
		t.Errorf("%v, want file_too_large", err)
	}
}

func TestHiddenIsNeverOpened(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/a/state/token", "x")
	put(t, s.root+"/a/state/spill/out", "x")
	spill := s.root + "/a/state/spill"
	if err := s.ws.Admit(workspace.Places{Hidden: []string{s.root + "/a/state"}, Readable: []string{spill}}); err != nil {
		t.Fatal(err)
	}
	for _, walk := range []struct{ tree, path string }{{".", "a/state"}, {"a", "state"}} {
		tree, err := s.view().Tree(walk.tree)
		if err != nil {
			t.Fatal(err)
		}
		if !tree.Barred(walk.path) || tree.Barred("a") || tree.Barred(".") {
			t.Errorf("from %s: barred %v, want %s alone", walk.tree, tree, walk.path)
		}
		tree.Close()
	}
	if _, err := s.view().Tree("a/state"); code(err) != "hidden_path" {
		t.Errorf("walk: %v", err)
	}
	tree, err := s.view().Tree(spill)
	if err != nil || tree.Barred(".") || tree.Barred("out") {
		t.Fatalf("a readable place in a hidden one: %+v, %v", tree, err)
	}
	tree.Close()
	if _, err := s.view().Open("a/state/token"); code(err) != "hidden_path" {
		t.Errorf("read: %v", err)
	}
	if _, err := s.view().Change(t.Context(), "a/state/new", never(t)); code(err) != "hidden_path" {
		t.Errorf("write: %v", err)
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

func TestNameOf(t *testing.T) {
	for path, want := range map[string]string{"/a b/ö": "/a b/ö", "/a\nb": "base64:L2EKYg==", "/\xff": "base64:L/8=", "/a\x1b[1m": "base64:L2EbWzFt"} {
		if got := workspace.NameOf(path); got != want {
			t.Errorf("NameOf(%q) = %q, want %q", path, got, want)
		}
	}
}

// On a case-sensitive file system two spellings are two files, even of one content.
func TestSpelling(t *testing.T) {
	s := newSite(t)
	put(t, s.root+"/Name", "x")
	if err := os.Link(s.root+"/Name", s.root+"/nAME"); err != nil {
		t.Skipf("upper and lower case are one here: %v", err)
	}
	for _, name := range []string{"Name", "nAME"} {
		if p, err := s.ws.Resolve(s.root, name); err != nil || p.Real != s.root+"/"+name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}
