package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// settingsFiles are places of settings files, and directories the places where they lie or could.
var (
	settingsFiles = []string{
		"etc/settings.json", "etc/settings.d/a.json", "home/settings.json", "claude/settings.json", "home/trust.json",
		"w/.toold/settings.json", "w/.toold/settings.local.json", "w/.claude/settings.json", "w/.mcp.json",
	}
	directories = []string{"etc", "etc/settings.d", "home", "claude", "w", "w/.toold", "w/.claude"}
)

// A changer changes files at random, as editors, users and installers do. What goes wrong has no effect.
type changer struct {
	*house
	*rapid.T
	count int
}

func (c *changer) text() string {
	c.count++
	switch rapid.IntRange(0, 9).Draw(c.T, "kind") {
	case 0:
		return "{ broken"
	case 1:
		return fmt.Sprintf(`{"importClaudeSettings": true, "permissions": {"deny": ["Bash(n%d)"]}}`, c.count)
	}
	return denying(fmt.Sprintf("Bash(n%d)", c.count%90+10)) // often of the size of the one before
}

func (c *changer) file() string { return c.path(rapid.SampledFrom(settingsFiles).Draw(c.T, "file")) }
func (c *changer) dir() string  { return c.path(rapid.SampledFrom(directories).Draw(c.T, "dir")) }
func (c *changer) aside() string {
	c.count++
	return c.path(fmt.Sprint("aside", c.count))
}

func (c *changer) made(path string) string {
	_ = os.MkdirAll(filepath.Dir(path), 0o755)
	return path
}

// swap exchanges two names.
func swap(a, b string) {
	_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

func (c *changer) changes() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write":      func(*rapid.T) { _ = os.WriteFile(c.made(c.file()), []byte(c.text()), 0o600) },
		"write only": func(*rapid.T) { _ = os.WriteFile(c.file(), []byte(c.text()), 0o600) },
		"rename over": func(*rapid.T) {
			next := c.aside()
			_ = os.WriteFile(next, []byte(c.text()), 0o600)
			_ = os.Rename(next, c.made(c.file()))
		},
		"link a file in": func(*rapid.T) {
			next := c.aside()
			_ = os.WriteFile(next, []byte(c.text()), 0o600)
			_ = os.Link(next, c.made(c.file()))
			_ = os.WriteFile(next, []byte(c.text()), 0o600) // under the other name
		},
		"symlink": func(*rapid.T) {
			file, target := c.file(), c.aside()
			_ = os.RemoveAll(file)
			_ = os.Symlink(target, c.made(file)) // to where something may come
			if rapid.Bool().Draw(c.T, "leads somewhere") {
				_ = os.WriteFile(target, []byte(c.text()), 0o600)
			}
		},
		"behind symlinks": func(*rapid.T) {
			file := c.file()
			if target, err := os.Readlink(file); err == nil && filepath.IsAbs(target) { // never a file beside the tests
				_ = os.WriteFile(target, []byte(c.text()), 0o600)
			}
		},
		"directory behind a symlink": func(*rapid.T) {
			dir, target := c.dir(), c.aside()
			_ = os.Rename(dir, target)
			_ = os.Symlink(rapid.SampledFrom([]string{target, "../" + filepath.Base(target), filepath.Base(target)}).Draw(c.T, "target"), dir)
		},
		"remove": func(*rapid.T) { _ = os.Remove(c.file()) },
		"remove all": func(*rapid.T) {
			dir := c.dir()
			_ = os.RemoveAll(dir)
			if rapid.Bool().Draw(c.T, "again") {
				_ = os.MkdirAll(dir, 0o755)
			}
		},
		"move away": func(*rapid.T) { _ = os.Rename(c.dir(), c.aside()) },
		"move back": func(*rapid.T) {
			if asides, _ := filepath.Glob(c.path("aside*")); len(asides) > 0 {
				_ = os.Rename(rapid.SampledFrom(asides).Draw(c.T, "aside"), c.made(rapid.SampledFrom([]string{c.dir(), c.file()}).Draw(c.T, "to")))
			}
		},
		"swap directories": func(*rapid.T) { swap(c.dir(), c.dir()) },
		"swap files":       func(*rapid.T) { swap(c.file(), c.file()) },
		"a file for a directory": func(*rapid.T) {
			dir := c.dir()
			_ = os.Rename(dir, c.aside())
			_ = os.WriteFile(dir, []byte(c.text()), 0o600)
		},
		"modes": func(*rapid.T) {
			path := rapid.SampledFrom([]string{c.dir(), c.file()}).Draw(c.T, "path")
			_ = os.Chmod(path, rapid.SampledFrom([]os.FileMode{0, 0o100, 0o400, 0o700}).Draw(c.T, "mode"))
		},
		"trust": func(*rapid.T) { _, _ = c.trusting("w") },
		"noise": func(*rapid.T) { _ = os.WriteFile(filepath.Join(c.dir(), c.T.Name()), nil, 0o600) },
	}
}

// summary is what counts of settings, as text.
func summary(s *settings.Settings) string {
	return fmt.Sprint(texts(s), s.WarningTexts(), s.Untrusted, s.Broken)
}

// TestNoticesEveryChange: a store that has the kernel note what comes returns, after whatever was done to the files, the same
// as one that looks at all of them each time.
func TestNoticesEveryChange(t *testing.T) {
	t.Parallel()
	noticed, loads := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		h := newHouse(t)
		defer h.store.Close()
		defer restoreModes(h.dir)
		looking := h.open()
		looking.Close()
		scope := settings.Scope{Roots: []string{h.path("w")}}
		c := changer{house: h, T: rt}
		changes := c.changes()
		changes[""] = func(rt *rapid.T) {
			want := summary(looking.Load(scope))
			for range rapid.IntRange(1, 3).Draw(rt, "loads") {
				if got := summary(h.store.Load(scope)); got != want {
					rt.Fatalf("settings %s, want %s", got, want)
				}
			}
			loads++
			if h.store.AllNoticed(scope) {
				noticed++
			}
		}
		rt.Repeat(changes)
	})
	if h := newHouse(t); isLocal(h.dir) && noticed*2 < loads {
		t.Errorf("of %d states, %d could be noticed; want most", loads, noticed)
	}
}

func restoreModes(dir string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		_ = os.Chmod(path, 0o700) //nolint:gosec // a directory of the test
		return nil
	})
}

// isLocal reports whether the kernel sees every change there.
func isLocal(dir string) bool {
	var system unix.Statfs_t
	return unix.Statfs(dir, &system) == nil && slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}, int64(system.Type))
}

// rested returns a house whose store has the kernel note what comes. It skips the test where the kernel cannot.
func rested(t *testing.T) (*house, settings.Scope) {
	h := newHouse(t)
	if !isLocal(h.dir) {
		t.Skip("the temporary directory may be changed unseen by the kernel")
	}
	scope := settings.Scope{Roots: []string{h.path("w")}}
	h.store.Load(scope)
	h.store.Load(scope)
	if !h.store.AllNoticed(scope) {
		t.Fatal("it is not noticed what comes")
	}
	return h, scope
}

// TestNoticesMounts: what a file system brings that is mounted where nothing was.
func TestNoticesMounts(t *testing.T) {
	if !ownspace.Again(t, syscall.CLONE_NEWNS, nil) {
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	if err := unix.Mount("mounted", h.dir, "tmpfs", 0, ""); err != nil {
		ownspace.Lacks(t, "run this where users may mount tmpfs: %v", err)
	}
	defer func() { _ = unix.Unmount(h.dir, unix.MNT_DETACH) }()
	h.write("other/.toold/settings.json", denying("Bash(m)"))
	if err := os.Mkdir(h.path("w"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.load("w")
	}
	if !h.store.AllNoticed(settings.Scope{Roots: []string{h.path("w")}}) {
		t.Fatal("it is not noticed what comes")
	}
	for range 2 {
		if err := unix.Mount(h.path("other"), h.path("w"), "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		if got := texts(h.load("w")); got != "deny Bash(m)" {
			t.Errorf("mounted: %q, want the rule", got)
		}
		if err := unix.Unmount(h.path("w"), 0); err != nil {
			t.Fatal(err)
		}
		if got := texts(h.load("w")); got != "" {
			t.Errorf("unmounted: %q, want nothing", got)
		}
	}
}

// TestLostEvents: more has happened than the kernel keeps.
func TestLostEvents(t *testing.T) {
	t.Parallel()
	h, scope := rested(t)
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip(err)
	}
	most := 0
	if _, err := fmt.Sscan(strings.TrimSpace(string(limit)), &most); err != nil || most > 100_000 {
		t.Skipf("%d events are kept", most)
	}
	a, b := h.path("a"), h.path("b")
	h.write("a", "")
	for n := 0; n <= most; n += 2 { // a rename is two events
		if err := os.Rename(a, b); err != nil {
			t.Fatal(err)
		}
		a, b = b, a
	}
	h.write("home/settings.json", denying("Bash(a)"))
	if got := texts(h.store.Load(scope)); got != "deny Bash(a)" {
		t.Errorf("%q, want the rule that was saved last", got)
	}
}

// TestFilesThatNeverRest: a file that cannot be read, and a path that cannot be followed, are looked at each time.
func TestFilesThatNeverRest(t *testing.T) {
	t.Parallel()
	h, scope := rested(t)
	if err := os.MkdirAll(h.path("w"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".toold", h.path("w/.toold")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.store.Load(scope)
	}
	if err := os.Remove(h.path("w/.toold")); err != nil {
		t.Fatal(err)
	}
	h.write("w/.toold/settings.json", denying("Bash(a)"))
	if got := texts(h.store.Load(scope)); got != "deny Bash(a)" {
		t.Errorf("%q, want the rule behind what was a loop", got)
	}
}

// TestMappedFile: a change through a mapping of a file, which the kernel notes no event of.
func TestMappedFile(t *testing.T) {
	t.Parallel()
	h, scope := rested(t)
	h.write("home/settings.json", denying("Bash(a)"))
	f, err := os.OpenFile(h.path("home/settings.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, len(denying("Bash(a)")), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(data) }()
	h.store.Load(scope)
	copy(data, denying("Bash(b)"))
	if err := unix.Msync(data, unix.MS_SYNC); err != nil {
		t.Fatal(err)
	}
	if got := texts(h.store.Load(scope)); got != "deny Bash(b)" {
		t.Errorf("%q, want the rule that was saved last", got)
	}
}

// TestNoiseIsNoChange: what else happens in the directories on the way costs no look.
func TestNoiseIsNoChange(t *testing.T) {
	h, scope := rested(t)
	before := h.store.Generation()
	h.write("unknown", "")
	h.write("etc.d/settings.json", "{}")
	if after := h.store.Generation(); after != before {
		t.Error("a file that is no settings file counts as one")
	}
	h.write("w/x", "")
	if after := h.store.Generation(); after == before {
		t.Error("the root came unnoticed")
	}
	h.store.Load(scope)
	if allocated := testing.AllocsPerRun(100, func() { h.store.Load(scope) }); allocated > 8 {
		t.Errorf("a Load with nothing different allocates %v times", allocated)
	}
}
