package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/daemon/settings"
)

// texts returns the rules with their lists.
func texts(s *settings.Settings) string {
	var out []string
	for _, r := range s.Rules {
		out = append(out, r.List.String()+" "+r.Text)
	}
	return strings.Join(out, "; ")
}

func denying(rules ...string) string {
	return fmt.Sprintf(`{"permissions": {"deny": ["%s"]}}`, strings.Join(rules, `", "`))
}

// TestSavedFileIsInForce goes through what happens to files while sessions are open. After each step the next Load sees
// it, and the one after that gives the same pointer.
func TestSavedFileIsInForce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	step := func(what string, do func(), want string, changed bool) {
		t.Helper()
		before := h.load("w")
		do()
		got := h.load("w")
		if texts(got) != want {
			t.Errorf("%s: rules %q, want %q (%q)", what, texts(got), want, got.WarningTexts())
		}
		if (got != before) != changed {
			t.Errorf("%s: new settings %v, want %v", what, got != before, changed)
		}
		if again := h.load("w"); again != got {
			t.Errorf("%s: other settings though nothing is different", what)
		}
	}
	user := h.path("home/settings.json")
	step("made", func() { h.write("home/settings.json", denying("Bash(a)")) }, "deny Bash(a)", true)
	for i := range 50 { // the size, and mostly the time, stay what they were
		name := string(rune('b' + i%2))
		step("written over", func() { h.write("home/settings.json", denying("Bash("+name+")")) }, "deny Bash("+name+")", true)
	}
	step("written again", func() { h.write("home/settings.json", denying("Bash(c)")) }, "deny Bash(c)", false)
	step("replaced by the same", func() {
		h.write("home/new", denying("Bash(c)"))
		if err := os.Rename(h.path("home/new"), user); err != nil {
			t.Fatal(err)
		}
	}, "deny Bash(c)", true)
	step("managed directory", func() { h.write("etc/settings.d/a.json", denying("Bash(m)")) }, "deny Bash(m); deny Bash(c)", true)
	step("one more there", func() { h.write("etc/settings.d/0.json", denying("Bash(l)")) }, "deny Bash(l); deny Bash(m); deny Bash(c)", true)
	step("both gone", func() { os.RemoveAll(h.path("etc")) }, "deny Bash(c)", true)
	step("workspace", func() { h.write("w/.toold/settings.json", denying("Bash(w)")) }, "deny Bash(w); deny Bash(c)", true)
	step("not looked at", func() { h.write("claude/settings.json", denying("Bash(d)")) }, "deny Bash(w); deny Bash(c)", false)
	step("broken", func() { h.write("w/.toold/settings.json", `{"permissions"`) }, "deny Bash(w); deny Bash(c)", true)
	step("empty", func() { h.write("w/.toold/settings.json", "") }, "deny Bash(w); deny Bash(c)", true)
	step("fixed", func() { h.write("w/.toold/settings.json", denying("Bash(x)")) }, "deny Bash(x); deny Bash(c)", true)
	step("too large", func() { h.write("w/.toold/settings.json", strings.Repeat(" ", 2<<20)+"{}") }, "deny Bash(x); deny Bash(c)", true)
	step("a pipe", func() {
		os.Remove(h.path("w/.toold/settings.json"))
		if err := syscall.Mkfifo(h.path("w/.toold/settings.json"), 0o600); err != nil {
			t.Fatal(err)
		}
	}, "deny Bash(x); deny Bash(c)", true)
	step("gone", func() { os.RemoveAll(h.path("w")) }, "deny Bash(c)", true)
	step("a link", func() {
		h.write("elsewhere", denying("Bash(e)"))
		if err := os.MkdirAll(h.path("w/.toold"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(h.path("elsewhere"), h.path("w/.toold/settings.json")); err != nil {
			t.Fatal(err)
		}
	}, "deny Bash(e); deny Bash(c)", true)
	step("behind the link", func() { h.write("elsewhere", denying("Bash(f)")) }, "deny Bash(f); deny Bash(c)", true)
}

func TestBrokenFileKeepsItsLastContent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", denying("Bash(a)"))
	h.load("w")
	h.write("home/settings.json", "{\n,")
	got := h.store.Load(settings.Scope{Roots: []string{h.path("other")}}) // a scope that never saw it whole
	want := h.path("home/settings.json") + ":2:1: "
	if texts(got) != "deny Bash(a)" || len(got.Warnings) != 1 || !strings.HasPrefix(got.WarningTexts()[0], want) ||
		!strings.Contains(got.WarningTexts()[0], "stays in force") || len(got.Broken) > 0 {
		t.Errorf("%q, warnings %q, broken %v; want the rule of before and one warning for line 2", texts(got), got.WarningTexts(), got.Broken)
	}
	fresh := h.open().Load(settings.Scope{})
	if len(fresh.Broken) != 1 || len(fresh.Warnings) != 1 || !strings.Contains(fresh.Warnings[0].Text, "Nothing of it is in force") {
		t.Errorf("warnings %q, broken %v; want one of each", fresh.WarningTexts(), fresh.Broken)
	}
}

// A workspace can be the directory that holds the user's own files.
func TestRootOfTheUsersFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", `{"importClaudeSettings": true}`)
	h.write("claude/settings.json", `{"permissions": {"allow": ["Bash(make *)"]}}`)
	if err := os.MkdirAll(h.path("w"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.path("claude"), h.path("w/.claude")); err != nil {
		t.Fatal(err)
	}
	got := h.load("w")
	if texts(got) != "allow Bash(make *)" || len(got.Warnings) > 0 || got.Rules[0].Origin.File != h.path("claude/settings.json") {
		t.Errorf("%q from %v, warnings %q; want the user's rule once, and nothing of trust", texts(got), got.Rules, got.WarningTexts())
	}
}

func TestScopesAreTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", `{"permissions": {"allow": ["Bash(make *)"]}}`)
	root := []string{h.path("w")}
	plain := h.store.Load(settings.Scope{Roots: root})
	trusted := h.store.Load(settings.Scope{Roots: root, Trusted: true})
	spoken := h.store.Load(settings.Scope{Roots: root, Session: denying("Bash(x)")})
	twice := h.store.Load(settings.Scope{Roots: []string{root[0], root[0] + "/"}})
	for i, want := range []string{"", "allow Bash(make *)", "deny Bash(x)", ""} {
		if got := texts([]*settings.Settings{plain, trusted, spoken, twice}[i]); got != want {
			t.Errorf("scope %d: %q, want %q", i, got, want)
		}
	}
	if len(twice.Warnings) != 1 {
		t.Errorf("a root that is named twice warns %q, want one warning", twice.WarningTexts())
	}
}

// Files change while many load: everybody sees a whole file, and in the end all see the last.
func TestConcurrentLoads(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", denying("Bash(0)", "Bash(0)x"))
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for n := range 200 {
				got := h.load(fmt.Sprint("w", (n+i)%3))
				if len(got.Broken) > 0 {
					t.Errorf("a half-written file: %v", got.Broken)
				}
			}
		})
	}
	for n := range 100 {
		h.write("home/next", denying(fmt.Sprintf("Bash(%d)", n)))
		if err := os.Rename(h.path("home/next"), h.path("home/settings.json")); err != nil {
			t.Fatal(err)
		}
		if got, want := texts(h.load("w0")), fmt.Sprintf("deny Bash(%d)", n); got != want {
			t.Errorf("%q after saving, want %q", got, want)
		}
	}
	readers.Wait()
}

// More scopes than are kept still get what is theirs.
func TestManyScopes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", denying("Bash(u)"))
	for i := range 1500 {
		session := denying(fmt.Sprintf("Bash(%d)", i))
		scope := settings.Scope{Roots: []string{h.path(fmt.Sprint("w", i))}, Session: session}
		if got, want := texts(h.store.Load(scope)), fmt.Sprintf("deny Bash(%d); deny Bash(u)", i); got != want {
			t.Fatalf("scope %d: %q, want %q", i, got, want)
		}
	}
}

// A list of managed files that cannot be read may hide what the administrator forbids.
func TestUnreadableManagedDirectory(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	before := h.load("w")
	h.write("etc/settings.d", "no directory")
	got := h.load("w")
	if len(got.Broken) != 1 || len(got.Warnings) != 1 || !strings.Contains(got.WarningTexts()[0], h.path("etc/settings.d")) || got == before {
		t.Errorf("broken %v, warnings %q; want the directory in both", got.Broken, got.WarningTexts())
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for depth, broken := range map[int]bool{98: false, 99: true} { // beside the object and its list
		text := "{\n" + `"permissions": {"allow": ` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}}"
		got := settings.Open(settings.Sources{}).Load(settings.Scope{Session: text})
		if (len(got.Broken) > 0) != broken {
			t.Errorf("depth %d: broken %v, want %v", depth, got.Broken, broken)
		}
		if broken && got.Broken[0].Error() != "options.settings_json:2: it is nested deeper than 100 lists and objects" {
			t.Errorf("error %v", got.Broken[0])
		}
	}
}

// What a huge file has to say is cut, and costs no more than it is worth.
func TestManyWarnings(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, `"permissionz%d": 1, `, i)
	}
	rule := strings.Repeat("x", 20_000)
	got := settings.Open(settings.Sources{}).Load(settings.Scope{Session: `{"permissions": {"allow": ["` + rule + `"]}, ` + text.String() + `"env": {"A": "b"}}`})
	if n := len(got.Warnings); n != 51 || !strings.Contains(got.WarningTexts()[50], "50001 in all") {
		t.Errorf("%d warnings, the last %q; want 50 and one that counts them", n, got.WarningTexts()[n-1])
	}
	if len(got.Rules) != 0 || len(got.Env) != 1 {
		t.Errorf("rules %v, variables %v; want only the variable", got.Rules, got.Env)
	}
}

// FuzzLoad: no bytes make Load panic, and bytes that are no settings change nothing.
func FuzzLoad(f *testing.F) {
	scripts, _ := filepath.Glob("testdata/load/*.txt")
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "-- ") {
			if _, body, ok := strings.Cut(part, " --\n"); ok && strings.HasPrefix(body, "{") {
				f.Add(body)
			}
		}
	}
	f.Add(`{"limits": {"drain": 1e400}}`)
	f.Add("\ufeff{}")
	f.Add(strings.Repeat("[", 200) + strings.Repeat("]", 200))
	store := settings.Open(settings.Sources{})
	nothing := store.Load(settings.Scope{})
	absent := filepath.Join(f.TempDir(), "absent")
	f.Fuzz(func(t *testing.T, text string) {
		got := store.Load(settings.Scope{Roots: []string{absent}, Session: text})
		if text != "" && len(got.Broken) > 0 && (len(got.Lines()) > 0 || got.Limits != nothing.Limits) {
			t.Errorf("%v is in force of a text that is no settings", got.Lines())
		}
		lines := strings.Count(text, "\n") + 1
		for _, line := range got.Lines() {
			if line.Origin.Line < 1 || line.Origin.Line > lines {
				t.Errorf("%+v: the text has %d lines", line, lines)
			}
		}
		var out strings.Builder
		if err := got.Print(&out); err != nil || strings.ContainsAny(out.String(), "\x00\x1b\u202e") {
			t.Errorf("printed %q, %v", &out, err)
		}
	})
}

// BenchmarkLoad is what every call pays when no file is different.
func BenchmarkLoad(b *testing.B) {
	h := newHouse(b)
	h.write("etc/settings.json", denying("Bash(rm *)"))
	h.write("home/settings.json", `{"importClaudeSettings": true}`)
	h.write("claude/settings.json", denying("Bash(rm -rf *)"))
	h.write("w/.toold/settings.json", denying("Read(.env)"))
	h.trust("w")
	scope := settings.Scope{Roots: []string{h.path("w")}}
	// Shortly after a change the content is read too, since a file's time may not show another one.
	store := settings.OpenAt(h.sources(), time.Now().Add(time.Minute))
	want := store.Load(scope)
	b.ReportAllocs()
	for b.Loop() {
		if store.Load(scope) != want {
			b.Fatal("other settings")
		}
	}
}
