package settings_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/daemon/settings"
)

const allowing = `{"permissions": {"allow": ["Bash(make *)"]}}`

func (h *house) standing(root string) string {
	h.t.Helper()
	s, err := h.store.Trusted(h.path(root))
	switch {
	case err != nil:
		return err.Error()
	case s.Trusted:
		return "trusted"
	case len(s.Changed) == 0:
		return "never"
	}
	return strings.Join(s.Changed, " ")
}

func (h *house) mkdir(name string) {
	h.t.Helper()
	if err := os.MkdirAll(h.path(name), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", allowing)
	h.mkdir("bare")
	check := func(when, root, want string, counts bool) {
		t.Helper()
		if got := h.standing(root); got != want {
			t.Errorf("%s: standing %q, want %q", when, got, want)
		}
		if got := texts(h.load(root)) != ""; got != counts {
			t.Errorf("%s: the allow rule counts %v, want %v", when, got, counts)
		}
	}
	check("at first", "w", "never", false)
	check("at first", "bare", "never", false)
	files, err := h.trusting("w")
	if want := []string{h.path("w/.toold/settings.json")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("trusted %q, %v, want %q", files, err, want)
	}
	h.trust("bare")
	check("trusted", "w", "trusted", true)
	check("trusted", "bare", "trusted", false)
	if info, err := os.Stat(h.path("home/trust.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("trust file %v, %v; want mode 0600", info, err)
	}
	h.write("w/.toold/settings.local.json", "{}")
	check("one more file", "w", ".toold/settings.local.json", false)
	os.Remove(h.path("w/.toold/settings.local.json"))
	check("as it was", "w", "trusted", true)
	h.write("w/.toold/settings.json", allowing+" ")
	check("a blank more", "w", ".toold/settings.json", false)
	os.Remove(h.path("w/.toold/settings.json"))
	check("one file less", "w", ".toold/settings.json", false)
	h.write("bare/.toold/settings.local.json", allowing)
	check("a first file", "bare", ".toold/settings.local.json", false)
	h.trust("bare")
	check("trusted again", "bare", "trusted", true)
	if err := h.store.Distrust(h.path("bare")); err != nil {
		t.Fatal(err)
	}
	check("no longer trusted", "bare", "never", false)
	check("the other", "w", ".toold/settings.json", false)
}

// Claude Code's files are part of what is trusted only while they count: who turns them on is asked about them.
func TestTrustInClaudesFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.claude/settings.json", `{"permissions": {"allow": ["Bash(rake *)"]}}`)
	h.write("w/.toold/settings.json", allowing)
	check := func(when, standing, rules string) {
		t.Helper()
		if got := texts(h.load("w")); h.standing("w") != standing || got != rules {
			t.Errorf("%s: standing %q with the rules %q, want %q with %q", when, h.standing("w"), got, standing, rules)
		}
	}
	const imports = `{"importClaudeSettings": true}`
	files, err := h.trusting("w")
	if want := []string{h.path("w/.toold/settings.json")}; err != nil || !slices.Equal(files, want) {
		t.Errorf("trusted %q, %v, want %q", files, err, want)
	}
	h.write("home/settings.json", imports)
	check("imported since", ".claude/settings.json", "")
	h.trust("w")
	check("trusted with it", "trusted", "allow Bash(make *); allow Bash(rake *)")
	h.write("w/.claude/settings.json", `{"permissions": {"allow": ["Bash"]}}`)
	check("changed", ".claude/settings.json", "")
	h.write("home/settings.json", "{}")
	check("not imported any more", "trusted", "allow Bash(make *)")
	h.write("home/settings.json", imports)
	check("imported again", ".claude/settings.json", "")
}

// Trust belongs to the directory, whatever way leads there.
func TestTrustThroughALink(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", allowing)
	h.write("x/.toold/settings.json", allowing)
	if err := os.Symlink("w", h.path("link")); err != nil {
		t.Fatal(err)
	}
	h.trust("link")
	if h.standing("w") != "trusted" || h.standing("link") != "trusted" || texts(h.load("link")) == "" {
		t.Error("trust in a link is no trust in where it leads")
	}
	if h.standing("x") != "never" {
		t.Error("another directory with the same files is trusted too")
	}
	os.Remove(h.path("link"))
	os.Symlink("x", h.path("link"))
	if h.standing("link") != "never" || texts(h.load("link")) != "" {
		t.Error("a link that leads elsewhere now is still trusted")
	}
}

// What nobody was shown is not trusted, even if the files are what they were as soon as one looks again.
func TestTrustInWhatWasShown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const file = "w/.toold/settings.json"
	h.write(file, allowing)
	shown := h.load("w")
	check := func(what, changed string) {
		t.Helper()
		files, err := h.store.Trust(h.path("w"), shown)
		if err == nil || len(files) > 0 || !strings.Contains(err.Error(), changed+" changed. Look at them again: toold trust "+h.path("w")+" --show") {
			t.Errorf("%s: files %q, error %v, want one that names %s", what, files, err, changed)
		}
		if got := h.standing("w"); got != "never" || texts(h.load("w")) != "" {
			t.Errorf("%s: standing %q, rules %q, want none", what, got, texts(h.load("w")))
		}
	}
	h.write(file, `{"permissions": {"allow": ["Bash"]}}`)
	check("another content", ".toold/settings.json")
	os.Remove(h.path(file))
	check("gone", ".toold/settings.json")
	h.write(file, allowing)
	h.write("w/.toold/settings.local.json", "{}")
	check("one more", ".toold/settings.local.json")
	os.Remove(h.path("w/.toold/settings.local.json"))
	if _, err := h.store.Trust(h.path("w"), shown); err != nil || h.standing("w") != "trusted" {
		t.Errorf("as shown: %v, standing %q", err, h.standing("w"))
	}
	if _, err := h.store.Trust(h.path("w"), h.load("x")); err == nil {
		t.Error("trusted after another workspace was shown")
	}
}

// What stays in force of a broken file must not become trusted with it.
func TestTrustInABrokenFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", allowing)
	h.load("w")
	h.write("w/.toold/settings.json", "{")
	_, err := h.trusting("w")
	var wrong *settings.FileError
	if !errors.As(err, &wrong) || wrong.Line != 1 {
		t.Errorf("error %v, want a FileError of line 1", err)
	}
	if got := texts(h.load("w")); got != "" {
		t.Errorf("%q counts", got)
	}
	h.write("w/.toold/settings.json", allowing)
	h.trust("w")
	h.load("w")
	h.write("w/.toold/settings.json", "{")
	if got := h.standing("w"); got != ".toold/settings.json" || texts(h.load("w")) != "" {
		t.Errorf("standing %q, rules %q; a file that broke since is not what was trusted", got, texts(h.load("w")))
	}
}

// A file that cannot be read is not a file that is not there.
func TestTrustInAnUnusableFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.mkdir("w")
	h.trust("w")
	h.write("w/.toold/settings.json", allowing)
	h.load("w")
	h.write("w/.toold/settings.json", strings.Repeat(" ", 3<<20)) // so that what it said before stays in force
	if got := texts(h.load("w")); got != "" || h.standing("w") == "trusted" {
		t.Errorf("%q counts, standing %s", got, h.standing("w"))
	}
}

func TestTrustErrors(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.mkdir("w")
	h.write("file", "")
	for root, want := range map[string]string{"none": "cannot be found", "file": "not a directory"} {
		if _, err := h.trusting(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", root, err, want)
		}
		if _, err := h.store.Trusted(h.path(root)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", root, err, want)
		}
	}
	if err := h.store.Distrust(h.path("none")); err != nil {
		t.Errorf("a directory that is gone cannot be distrusted: %v", err)
	}
	if _, err := settings.Open(settings.Sources{}).Trust(h.path("w"), h.load("w")); err == nil || !strings.Contains(err.Error(), "no file to remember") {
		t.Errorf("without a trust file: error %v", err)
	}
	h.write("home/trust.json", "")
	if _, err := h.trusting("w"); err == nil || !strings.Contains(err.Error(), "trust.json") {
		t.Errorf("with an empty trust file: error %v", err)
	}
	h.write("home/trust.json", "{\n\"roots\": 1}")
	if _, err := h.trusting("w"); err == nil || !strings.Contains(err.Error(), "trust.json") {
		t.Errorf("with a broken trust file: error %v", err)
	}
	if got := h.read("home/trust.json"); got != "{\n\"roots\": 1}" {
		t.Errorf("a broken trust file was written over: %q", got)
	}
	h.write("w/.toold/settings.json", allowing)
	if got := h.load("w"); texts(got) != "" || len(got.Warnings) != 2 {
		t.Errorf("with a broken trust file %q counts, warnings %q; want nothing, and two warnings", texts(got), got.WarningTexts())
	}
}

// Two processes trust at the same time: neither forgets what the other said.
func TestTrustSideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	stores := []*settings.Store{h.open(), h.open()}
	var all sync.WaitGroup
	for i := range 20 {
		root := string(rune('a' + i))
		h.mkdir(root)
		all.Go(func() {
			if _, err := stores[i%2].Trust(h.path(root), h.load(root)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 20 {
		if root := string(rune('a' + i)); h.standing(root) != "trusted" {
			t.Errorf("%s is %s", root, h.standing(root))
		}
	}
}

// FuzzTrustFile: no bytes make reading the trust file panic, and none but the right hash makes a workspace trusted, or a server
// approved.
func FuzzTrustFile(f *testing.F) {
	h := newHouse(f)
	h.write("w/.toold/settings.json", allowing)
	h.write("w/.mcp.json", `{"mcpServers": {"db": {"command": "x"}}}`)
	h.mkdir("home")
	vouched := settings.Scope{Roots: []string{h.path("w")}, Trusted: true}
	digest := h.store.Load(vouched).MCPServers[0].Digest
	for _, text := range []string{
		`{"servers": {"DIR/w": {"db": "` + digest + `"}}}`, `{"servers": {"DIR/w": {"db": 3}}}`, `{"servers": {"DIR/w": null}}`, `{"roots": {"DIR/w": null}, "servers": []}`,
		"", "{}", "[]", `{"roots": null}`, `{"roots": {"DIR/w": {}}}`, `{"roots": {"DIR/w": {"files": {".toold/settings.json": "unusable"}}}}`,
	} {
		f.Add(text)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(allowing)))
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "DIR", h.dir)
		if err := os.WriteFile(h.path("home/trust.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := texts(h.store.Load(settings.Scope{Roots: []string{h.path("w")}})); got != "" && !strings.Contains(text, sum) {
			t.Errorf("%q makes %q count", text, got)
		}
		if got := h.store.Load(vouched).MCPServers[0]; got.Approved && !strings.Contains(text, digest) {
			t.Errorf("%q approves %+v", text, got)
		}
	})
}
