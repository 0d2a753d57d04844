package workspace_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// A site is a directory tree with a root in it and a place beside it.
type site struct {
	root, outside string
	ws            *workspace.Workspace
	memory        *workspace.ReadState
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteIn(t, t.TempDir())
}

func newSiteIn(t *testing.T, dir string) *site {
	t.Helper()
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{root: filepath.Join(top, "root"), outside: filepath.Join(top, "outside"), memory: workspace.NewReadState()}
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

// admit replaces the places of the site's workspace.
func (s *site) admit(t *testing.T, p workspace.Places) {
	t.Helper()
	var err error
	if s.ws, err = s.ws.Admit(p); err != nil {
		t.Fatal(err)
	}
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
		missing    int
		code       string
	}{
		{name: "dir/file", real: s.root + "/dir/file", exists: true},
		{name: s.root + "/dir//./file", real: s.root + "/dir/file", exists: true},
		{name: "inside/file", real: s.root + "/dir/file", exists: true},
		{name: "absolute", real: s.root + "/dir/file", exists: true},
		{name: "out/secret", real: s.outside + "/secret", exists: true},
		{name: "out/../root/dir", real: s.root + "/dir", exists: true}, // up from where the link led
		{name: "../outside/secret", real: s.outside + "/secret", exists: true},
		{name: "dangling", real: s.outside + "/none/yet", missing: 2},
		{name: "dangling/more", real: s.outside + "/none/yet/more", missing: 3},
		{name: "inside/new/deep", real: s.root + "/dir/new/deep", missing: 2},
		{name: "inside/new/deep/..", real: s.root + "/dir/new", missing: 1},
		{name: "none/../dir/file", real: s.root + "/dir/file", exists: true},
		{name: "none/../out/secret", real: s.outside + "/secret", exists: true},
		{name: "dir/file/below", real: s.root + "/dir/file/below", missing: 1},
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
		if err == nil && (got.Real != c.real || got.Exists != c.exists || got.Missing != c.missing) {
			t.Errorf("Resolve(%q) = %+v, want %s, exists %v, %d missing", c.name, got, c.real, c.exists, c.missing)
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
	s.admit(t, workspace.Places{Public: []string{public, s.outside + "/absent"}, Readable: []string{spill}, Hidden: []string{state}})
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

// Other places make another workspace; who holds the one before keeps what it had.
func TestAdmit(t *testing.T) {
	s := newSite(t)
	state, added := s.outside+"/state", s.outside+"/added"
	mkdir(t, state)
	mkdir(t, added)
	link(t, "added", s.outside+"/name")
	before, err := s.ws.Admit(workspace.Places{Public: []string{}, Hidden: []string{state}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.outside+"/file", "x")
	after, err := before.Admit(workspace.Places{Readable: []string{s.outside + "/name", s.outside + "/none", s.outside + "/file"}, Hidden: []string{state}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]workspace.Place{
		added + "/x":          {workspace.Outside, workspace.Readable},
		state:                 {workspace.Hidden, workspace.Hidden},
		s.root:                {workspace.InRoot, workspace.InRoot},
		"/usr":                {workspace.Outside, workspace.Public},
		s.outside + "/none/x": {workspace.Outside, workspace.Outside},
	} {
		if got := [2]workspace.Place{before.Place(path), after.Place(path)}; got != want {
			t.Errorf("Place(%s) = %d before and after, want %d", path, got, want)
		}
	}
	if _, err := s.ws.Admit(workspace.Places{Hidden: []string{s.outside + "/none"}}); err == nil {
		t.Error("a hidden directory that does not exist was taken")
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
	for name, want := range map[string]string{
		"fifo": "not_regular", "dir": "", ".": "", "link": "", "link/file": "not_a_directory", "none": "path_not_found", "none/none": "path_not_found", "..": "undeclared",
	} {
		dir, err := s.view().OpenDir(name)
		if code(err) != want {
			t.Errorf("OpenDir(%q): %v, want %q", name, err, want)
		}
		if err == nil {
			dir.Close()
		}
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
	s.admit(t, workspace.Places{Hidden: []string{s.root + "/a/state"}, Readable: []string{spill}})
	for _, walk := range []struct{ tree, path string }{{".", "a/state"}, {"a", "state"}} {
		tree, err := s.view().Tree(walk.tree)
		if err != nil {
			t.Fatal(err)
		}
		if !tree.Hidden(walk.path) || tree.Hidden("a") || tree.Hidden(".") {
			t.Errorf("from %s: hidden %v, want %s alone", walk.tree, tree, walk.path)
		}
		tree.Close()
	}
	if _, err := s.view().Tree("a/state"); code(err) != "hidden_path" {
		t.Errorf("walk: %v", err)
	}
	tree, err := s.view().Tree(spill)
	if err != nil || tree.Hidden(".") || tree.Hidden("out") {
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
