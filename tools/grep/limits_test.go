package grep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/grep/selection"
	"github.com/toold/toold/tools/tooltest"
)

// This file is about what does not go well: bad patterns, long lines, unreadable files, an end before the end.

// eachEngine runs a test on both.
func eachEngine(t *testing.T, test func(t *testing.T, tool tools.Tool, env *tools.Env, dir string)) {
	t.Run("own", func(t *testing.T) {
		dir := t.TempDir()
		test(t, own(), newEnv(t, dir), dir)
	})
	t.Run("rg", func(t *testing.T) {
		tool, runner := onlyRipgrep(t)
		dir := t.TempDir()
		env := newEnv(t, dir)
		env.Box = &sandbox.Box{Runner: runner}
		test(t, tool, env, dir)
	})
}

func TestBadPatterns(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, _ string) {
		for _, pattern := range []string{"(", "[a", "a{", "interface{}", "*a", "a**(", `\`, `\p{Nope}`, `(?=x)`, `(?<!x)y`, `(a)\1`, "[z-a]", `a\nb`, "x{2,1}", `\Zx`, "{2}", "a\x00b"} {
			input, err := json.Marshal(Input{Pattern: pattern})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = call(context.Background(), tool, env, string(input))
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != "bad_pattern" || f.Kind != fault.Invalid || f.Field != "/pattern" {
				t.Errorf("%q: got %v, want bad_pattern at /pattern", pattern, err)
			}
		}
	})
}

// TestOwnReading covers patterns where Go's syntax and rg's part.
func TestOwnReading(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		matches       bool
	}{
		{`^\w+$`, "naïve_1", true},
		{`^\w+$`, "a b", false},
		{`^\d$`, "٣", true},
		{`^\D$`, "٣", false},
		{`^\s$`, "\u2003", true},
		{`^\S$`, "\u2003", false},
		{`^\W$`, "é", false},
		{`^[\w.]+$`, "é.a", true},
		{`^.$`, "é", true},
		{`^.$`, "\xe9", false},
		{`^[^a]$`, "\xe9", false},
		{`^[^a]$`, "b", true},
		{`a\/b`, "a/b", true},
		{`\{x\}`, "{x}", true},
		{`a}`, "a}", true},
		{"[]x]", "]", true},
		{"[^]x]", "]", false},
		{`[\]\[]`, "[", true},
		{`(?i)STRASSE`, "strasse", true},
		{`(?i)k`, "\u212a", true},
		{`(?i)ſ`, "S", true},
		{`x{2}`, "axxb", true},
		{`[[:digit:]]`, "7", true},
		{`\x{e9}`, "é", true},
		{`(?P<n>a)(?<m>b)`, "ab", true},
		{"a|", "zzz", true},
		{`\bfoo\b`, "a foo b", true},
	} {
		e, err := compile(Input{Pattern: c.pattern})
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		found, err := newScanner(&query{expr: e, mode: modeCount}).scan(strings.NewReader(c.text))
		if err != nil || (found.matches > 0) != c.matches {
			t.Errorf("%s on %q: %d matches, error %v; want a match: %v", c.pattern, c.text, found.matches, err, c.matches)
		}
	}
	for _, pattern := range []string{`[a-z&&[^b]]`, `[a[bc]]`, `[a--b]`, `\<word`, `\Afoo`, `foo\z`, `\Qa\E`, `a\`} {
		if _, err := compile(Input{Pattern: pattern}); !isFault(err, "bad_pattern") {
			t.Errorf("%s: got %v, want bad_pattern", pattern, err)
		}
	}
}

// TestParts: a file that lacks one of the lists has no match.
func TestParts(t *testing.T) {
	for pattern, want := range map[string]string{
		`func New[A-Z]\w+Reader`: "[[func New] [Reader]]", "foo.*(bar|baz)x": "[[foo] [ba] [x]]", "foo.*(bar|qux)x": "[[foo] [bar qux] [x]]", "(?i)ab.*(CD)+": "[[ab] [cd]]", "a(bc)?d": "[[a] [d]]", "[ab]": "[]",
		"(a.*b|c)d": "[[a c] [d]]",
	} {
		e, err := compile(Input{Pattern: pattern})
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		if got := fmt.Sprint(e.parts); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func TestNeedles(t *testing.T) {
	for pattern, want := range map[string]string{
		"foo": "[foo] literal", "foo.*barbaz": "[barbaz]", "a+": "[a]", "(foo|barbaz)x": "[foo barbaz]", "x?": "[]", "foo|": "[]", "(?i)Kissed": "[i ed] fold",
		"(?i)FooBar": "[foobar] fold", "(abc){2,}": "[abc]", "a(b|c)d": "[a]", "[xyz]": "[]", "aé(?i:b)": "[a] fold", "(?i)ſk": "[] fold", "func (walk|read)": "[func ]",
	} {
		e, err := compile(Input{Pattern: pattern})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		got := fmt.Sprint(e.needles)
		if e.literal {
			got += " literal"
		}
		if e.fold {
			got += " fold"
		}
		if got != want && !(pattern == "(?i)Kissed" && got == "[ed] fold") {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func TestLongLines(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		long := strings.Repeat("é", 5_000) + "needle" + strings.Repeat("y", 90_000)
		plant(t, dir, []section{{"head", "needle" + strings.Repeat("x", 3_000) + "\n"}, {"middle", long + "\nafter\n"}})
		text, _, err := call(context.Background(), tool, env, `{"pattern": "needle", "output_mode": "content", "-A": 1}`)
		if err != nil {
			t.Fatal(err)
		}
		want := dir + "/head:1:needle" + strings.Repeat("x", 1_994) + " [... 1006 more bytes]\n--\n" +
			dir + "/middle:1:[9800 bytes ...] " + strings.Repeat("é", 100) + "needle" + strings.Repeat("y", 1_794) + " [... 88206 more bytes]\n" +
			dir + "/middle-2-after"
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	})
}

// TestWindows puts matches around the edges of what is read at once, with every kind of reader.
func TestWindows(t *testing.T) {
	e, err := compile(Input{Pattern: "needle|other"})
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []int{window - 8, window - 7, window - 6, window - 1, window, window + 1, 3*window - 3} {
		var text bytes.Buffer
		for text.Len() < before-1 {
			text.WriteString(strings.Repeat("z", min(70, before-2-text.Len())) + "\n")
		}
		head := strings.Count(text.String(), "\n")
		text.WriteString("needle\nplain\n" + strings.Repeat("w", 2*window) + "\nother needle")
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(text.Bytes()), "in pieces": &pieces{text.Bytes(), 1_000}} {
			found, err := newScanner(&query{expr: e, mode: modeContent, before: 1}).scan(r)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range found.lines {
				got = append(got, fmt.Sprintf("%d %v %.2s", l.number-int64(head), l.context, l.text))
			}
			want := []string{"0 true zz", "1 false ne", "3 true ww", "4 false ot"}
			if diff := cmp.Diff(want, got); diff != "" || found.matches != 2 {
				t.Errorf("match at %d, %s: %d matches; want (-), got (+):\n%s", before, name, found.matches, diff)
			}
		}
	}
}

// pieces returns its data in pieces of n bytes.
type pieces struct {
	data []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data[:min(p.n, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

func TestEndlessLineIsCutAndSaidSo(t *testing.T) {
	dir := t.TempDir()
	big := "needle" + strings.Repeat("x", 3*longest) + "needle\nother\nneedle\n"
	if err := os.WriteFile(filepath.Join(dir, "big"), []byte(big), 0o644); err != nil {
		t.Fatal(err)
	}
	text, found, err := call(context.Background(), own(), newEnv(t, dir), `{"pattern": "needle", "output_mode": "count"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := dir + "/big:2\n\nTogether 2 in 1 file.\nIncomplete: big: a line of more than 16 MiB was searched in part."
	if diff := cmp.Diff(want, text); diff != "" || !found.Incomplete {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestUnreadableFilesMakeItIncomplete(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		plant(t, dir, []section{{"a.go", "needle\n"}, {"b", "needle\n"}, {"shut/c", "needle\n"}, {"open", "nothing\n"}})
		for _, name := range []string{"a.go", "b", "shut"} {
			if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, parent := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(parent, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		tooltest.Unprivileged(t)
		text, found, err := call(context.Background(), tool, env, `{"pattern": "needle"}`)
		if err != nil {
			t.Fatal(err)
		}
		want := "Nothing found so far, but the search is incomplete.\n" +
			"Incomplete: could not read shut: permission denied; could not read a.go: permission denied; could not read b: permission denied."
		if diff := cmp.Diff(want, text); diff != "" || !found.Incomplete || len(found.Reasons) != 3 {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	})
}

func TestEndOfContext(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		plant(t, dir, []section{{"a", "needle\n"}})
		cause := errors.New("the user broke in")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		text, found, err := call(ctx, tool, env, `{"pattern": "needle"}`)
		if !errors.Is(err, cause) || !found.Incomplete || strings.Contains(text, "No matches found") || !strings.Contains(text, "the user broke in") {
			t.Errorf("error %v, incomplete %v, text %q; want the cause, true, and the cause in words", err, found.Incomplete, text)
		}
	})
}

// TestEndWhileReading ends the context while a file is read that would never end.
func TestEndWhileReading(t *testing.T) {
	e, err := compile(Input{Pattern: "needle"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	endless := readerFunc(func(b []byte) (int, error) {
		cancel()
		return copy(b, "needle\n"), nil
	})
	found, err := newScanner(&query{expr: e, mode: modeCount}).scan(workspace.Patient(ctx, endless))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, %d matches; want the end of the context", err, found.matches)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestEndStopsRipgrep(t *testing.T) {
	_, runner := onlyRipgrep(t)
	dir := t.TempDir()
	env := newEnv(t, dir)
	env.Box = &sandbox.Box{Runner: runner}
	pipe := filepath.Join(dir, "never")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	held := make(chan *os.File, 1)
	go func() {
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once rg reads
		if err != nil {
			t.Errorf("opening the pipe: %v", err)
		}
		held <- w
		cancel()
	}()
	exit, err := findRipgrep().start(ctx, env, sandbox.Command{Dir: dir, Args: []string{"x", "never"}, Stdout: io.Discard, Stderr: io.Discard})
	if err != nil || !exit.Stopped {
		t.Errorf("error %v, exit %+v; want it stopped while it waits for a pipe", err, exit)
	}
	(<-held).Close()
}

func TestTooMuchEndsInAPart(t *testing.T) {
	eachEngine(t, func(t *testing.T, tool tools.Tool, env *tools.Env, dir string) {
		for i := range 3 {
			text := bytes.Repeat([]byte("needle"+strings.Repeat("x", 1_000)+"\n"), 15_000)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, found, err := call(context.Background(), tool, env, `{"pattern": "needle", "output_mode": "content", "head_limit": 0}`)
		want := []string{"stopped before the end: " + errTooMuch.Error()}
		if err != nil || !found.Incomplete || !slices.Equal(found.Reasons, want) || found.Shown == 0 {
			t.Errorf("error %v, incomplete %v, %d lines, reasons %q; want some lines and %q", err, found.Incomplete, found.Shown, found.Reasons, want)
		}
	})
}

func TestOnlyThePageIsHeld(t *testing.T) {
	g := newGathering(3, func() { t.Error("stopped, though only three lines are wanted") })
	for i := 40; i > 0; i-- {
		g.add(&hits{path: fmt.Sprintf("f%02d", i), entries: 1, matches: 1, lines: []line{{int64(i), strings.Repeat("x", 1<<20), false}}})
	}
	if g.held > maxHeld {
		t.Errorf("%d bytes are held", g.held)
	}
	page := g.page(byPath, 1, 2)
	if len(page) != 2 || page[0].lines[0].number != 2 || page[1].lines[0].number != 3 {
		t.Errorf("page %+v; want the lines of f02 and f03", page)
	}
	if files, entries, matches := g.totals(); files != 40 || entries != 40 || matches != 40 {
		t.Errorf("totals %d %d %d, want 40 each", files, entries, matches)
	}
}

func TestInputs(t *testing.T) {
	_, _, err := call(context.Background(), own(), nil, `{"pattern": "x", "output_mode": "lines", "-A": -1, "offset": -2, "head_limit": 5000000000}`)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "invalid_input" {
		t.Fatalf("got %v, want invalid_input", err)
	}
	var fields []string
	for _, v := range f.Details.(tools.Violations).Violations {
		fields = append(fields, v.Field)
	}
	if diff := cmp.Diff([]string{"/-A", "/head_limit", "/offset", "/output_mode"}, fields); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	for path, code := range map[string]string{"nowhere": "path_not_found", "/etc": "undeclared"} {
		if _, _, err := call(context.Background(), own(), newEnv(t, t.TempDir()), fmt.Sprintf(`{"pattern": "x", "path": %q}`, path)); !isFault(err, code) {
			t.Errorf("path %s: got %v, want %s", path, err, code)
		}
	}
}

// TestTypesAreRipgreps: every type of the table is one that rg has.
func TestTypesAreRipgreps(t *testing.T) {
	_, runner := onlyRipgrep(t)
	var list bytes.Buffer
	env := newEnv(t, t.TempDir())
	env.Box = &sandbox.Box{Runner: runner}
	if _, err := findRipgrep().start(context.Background(), env, sandbox.Command{Dir: "/", Args: []string{"--no-config", "--type-list"}, Stdout: &list, Stderr: io.Discard}); err != nil {
		t.Fatal(err)
	}
	for name := range selection.Types {
		if !strings.Contains("\n"+list.String(), "\n"+name+": ") {
			t.Errorf("rg has no type %s", name)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`(?i)[^\w-]{2,3}\x{e9}|\bé`, "Né-é")
	f.Add(`[[:alpha:]]+?$`, "a\xffb\n\n")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		for _, in := range []Input{{Pattern: pattern}, {Pattern: pattern, IgnoreCase: true}, {Pattern: pattern, Multiline: true}} {
			e, err := compile(in)
			if err != nil {
				if !isFault(err, "bad_pattern") {
					t.Fatalf("%q: %v", pattern, err)
				}
				continue
			}
			// What the needles let through must be all that matches.
			with, _ := newScanner(&query{expr: e, mode: modeCount, multiline: in.Multiline}).scan(strings.NewReader(text))
			plain := *e
			plain.needles, plain.literal = nil, false
			without, _ := newScanner(&query{expr: &plain, mode: modeCount, multiline: in.Multiline}).scan(strings.NewReader(text))
			if with.matches != without.matches {
				t.Fatalf("%q on %q: %d matches with needles %q, %d without", pattern, text, with.matches, e.needles, without.matches)
			}
		}
	})
}
