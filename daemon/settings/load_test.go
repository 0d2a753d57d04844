package settings_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/daemon/settings"
)

var update = flag.Bool("update", false, "write what is printed into the scripts of testdata/load")

// TestLoadScripts goes through testdata/load. A script's comment has a line for each word:
//
//	roots a b    the roots, directories of the script
//	trusted      the client says that they are
//	trust a      somebody has trusted a before, as it is without the files of the section "then"
//
// Its files are laid out in a directory, etc for the managed ones, home/settings.json for the user's, claude for Claude
// Code's, "session" for the session's own text; "want" is what is printed, DIR for the directory. Files below then/ are
// written after the trusting, over the others.
func TestLoadScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/load/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(script)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, archive)
			at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if *update {
				archive.Files[at].Data = []byte(got)
				if err := os.WriteFile(script, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if want := string(archive.Files[at].Data); got != want {
				t.Errorf("printed:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func play(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	h := newHouse(t)
	scope := settings.Scope{}
	var trust []string
	for line := range strings.Lines(string(archive.Comment)) {
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case words[0] == "roots":
			for _, root := range words[1:] {
				scope.Roots = append(scope.Roots, filepath.Join(h.dir, root))
			}
		case words[0] == "trusted":
			scope.Trusted = true
		case words[0] == "trust":
			trust = append(trust, words[1:]...)
		}
	}
	later := map[string]string{}
	for _, f := range archive.Files {
		name, isLater := strings.CutPrefix(f.Name, "then/")
		switch {
		case name == "want":
		case name == "session":
			scope.Session = strings.TrimSpace(string(f.Data))
		case isLater:
			later[name] = string(f.Data)
		default:
			h.write(name, string(f.Data))
		}
	}
	for _, root := range trust {
		h.trust(root)
	}
	for name, text := range later {
		h.write(name, text)
	}
	var out bytes.Buffer
	if err := h.store.Load(scope).Print(&out); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(out.String(), h.dir, "DIR")) {
		lines.WriteString(line)
	}
	return lines.String()
}

// A house is a directory with all the places of a store.
type house struct {
	t     testing.TB
	dir   string
	store *settings.Store
}

func newHouse(t testing.TB) *house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: dir}
	h.store = h.open()
	t.Cleanup(h.store.Close)
	return h
}

// open returns one more store of the same places, as another process has it.
func (h *house) open() *settings.Store { return settings.Open(h.sources()) }

func (h *house) sources() settings.Sources {
	return settings.Sources{
		ManagedDir: h.path("etc"), User: h.path("home/settings.json"), TrustFile: h.path("home/trust.json"),
		Home: h.path("home"), ClaudeDir: h.path("claude"),
	}
}

func (h *house) path(name string) string { return filepath.Join(h.dir, name) }

func (h *house) write(name, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.path(name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) read(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

func (h *house) trust(root string) {
	h.t.Helper()
	if _, err := h.trusting(root); err != nil {
		h.t.Fatal(err)
	}
}

// trusting is what somebody does who looks and trusts at once.
func (h *house) trusting(root string) (files []string, err error) {
	return h.store.Trust(h.path(root), h.load(root))
}

// load returns the settings for one root.
func (h *house) load(root string) *settings.Settings {
	return h.store.Load(settings.Scope{Roots: []string{h.path(root)}})
}
