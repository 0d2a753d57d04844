package read_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
	"pgregory.net/rapid"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/tooltest"
)

type session struct {
	*tooltest.Files
	chars int
}

func newSession(t testing.TB) *session {
	t.Helper()
	return &session{Files: tooltest.NewFiles(t, t.TempDir())}
}

type call struct {
	FilePath string `json:"file_path"`
	Offset   int    `json:"offset,omitempty"`
	Limit    int    `json:"limit,omitempty"`
	Pages    string `json:"pages,omitempty"`
	As       string `json:"as,omitempty"`
}

func (s *session) env() *tools.Env {
	env := s.Env()
	env.MaxChars, env.Files = s.chars, s.View("/")
	return env
}

func (s *session) read(ctx context.Context, t testing.TB, in call) (string, read.Structured, error) {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	action, err := read.Tool().Parse(data)
	if err != nil {
		return "", read.Structured{}, err
	}
	env := s.env()
	if _, err := action.Check(ctx, env); err != nil {
		return "", read.Structured{}, err
	}
	result, err := action.Run(ctx, env)
	if err != nil {
		return "", read.Structured{}, err
	}
	s.Learn(env.Files)
	return result.Content[0].Text, result.Structured.(read.Structured), nil
}

// lines returns n lines that name their own number.
func lines(n int, end string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d%s", i+1, end)
	}
	return b.String()
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, file    string
		offset, limit int
		want          string
		total         int
		first, last   int
		next          int
		ending        string
	}{
		{name: "numbers", file: "a\nb\n", want: "     1\ta\n     2\tb\n", total: 2, first: 1, last: 2, ending: "lf"},
		{name: "no last newline", file: "a\nb", want: "     1\ta\n     2\tb\n", total: 2, first: 1, last: 2, ending: "lf"},
		{name: "one line", file: "a", want: "     1\ta\n", total: 1, first: 1, last: 1, ending: "none"},
		{name: "empty lines", file: "\n\n", want: "     1\t\n     2\t\n", total: 2, first: 1, last: 2, ending: "lf"},
		{name: "empty", file: "", want: "The file is empty.", ending: "none"},
		{name: "CRLF", file: "a\r\n\r\nb\r\n", want: "     1\ta\n     2\t\n     3\tb\n", total: 3, first: 1, last: 3, ending: "crlf"},
		{name: "mixed", file: "a\r\nb\n", want: "     1\ta\n     2\tb\n", total: 2, first: 1, last: 2, ending: "mixed"},
		{
			name: "from the middle", file: "a\nb\nc\nd\n", offset: 2, limit: 2, total: 4, first: 2, last: 3, next: 4, ending: "lf",
			want: "     2\tb\n     3\tc\n(lines 2 to 3 of 4 are shown; continue with offset=4)",
		},
		{name: "past the end of one line", file: "a\n", offset: 2, want: "The file has 1 line; line 2 is past its end.", total: 1, ending: "lf"},
		{name: "to the end", file: "a\nb\nc", offset: 2, limit: 2, want: "     2\tb\n     3\tc\n", total: 3, first: 2, last: 3, ending: "lf"},
		{name: "exactly all", file: "a\nb\n", limit: 2, want: "     1\ta\n     2\tb\n", total: 2, first: 1, last: 2, ending: "lf"},
		{name: "past the end", file: "a\nb\n", offset: 3, want: "The file has 2 lines; line 3 is past its end.", total: 2, ending: "lf"},
		{name: "last line without newline", file: "a\nb", offset: 2, want: "     2\tb\n", total: 2, first: 2, last: 2, ending: "lf"},
		{
			name: "a last part that is not shown", file: "a\nb", limit: 1, total: 2, first: 1, last: 1, next: 2, ending: "lf",
			want: "     1\ta\n(line 1 of 2 is shown; continue with offset=2)",
		},
		{name: "byte order mark", file: "\ufeffa\n", want: "     1\ta\n", total: 1, first: 1, last: 1, ending: "lf"},
		{name: "lone CR", file: "a\rb\n", want: "     1\ta\rb\n", total: 1, first: 1, last: 1, ending: "lf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			text, out, err := s.read(t.Context(), t, call{FilePath: s.Put("f", c.file), Offset: c.offset, Limit: c.limit})
			if err != nil || text != c.want {
				t.Errorf("%v\ngot  %q\nwant %q", err, text, c.want)
			}
			if out.TotalLines == nil || *out.TotalLines != c.total || out.FirstLine != c.first || out.LastLine != c.last || out.NextOffset != c.next || out.LineEnding != c.ending {
				t.Errorf("structured %+v, total %v", out, out.TotalLines)
			}
		})
	}
}

func TestFirstTwoThousandLines(t *testing.T) {
	s := newSession(t)
	text, out, err := s.read(t.Context(), t, call{FilePath: s.Put("f.go", lines(2500, "\n"))})
	if err != nil || out.LastLine != 2000 || *out.TotalLines != 2500 || out.NextOffset != 2001 || out.Language != "go" {
		t.Fatalf("%v %+v", err, out)
	}
	if !strings.HasSuffix(text, "  2000\tline 2000\n(lines 1 to 2000 of 2500 are shown; continue with offset=2001)") {
		t.Errorf("ends in %q", text[len(text)-100:])
	}
}

func TestLongLines(t *testing.T) {
	s := newSession(t)
	for name, c := range map[string]struct{ line, want string }{
		"at the limit":       {strings.Repeat("x", 2000), strings.Repeat("x", 2000)},
		"ASCII":              {strings.Repeat("x", 2010), strings.Repeat("x", 2000) + "... [10 characters left out]"},
		"characters":         {strings.Repeat("é", 2001), strings.Repeat("é", 2000) + "... [1 characters left out]"},
		"beyond a piece":     {strings.Repeat("日", 300_000), strings.Repeat("日", 2000) + "... [298000 characters left out]"},
		"beyond, and CRLF":   {strings.Repeat("😀", 50_000) + "\r", strings.Repeat("😀", 2000) + "... [48000 characters left out]"},
		"CRLF, at the limit": {strings.Repeat("x", 2000) + "\r", strings.Repeat("x", 2000)},
	} {
		text, _, err := s.read(t.Context(), t, call{FilePath: s.Put("f", "a\n"+c.line+"\nb\n")})
		if want := "     1\ta\n     2\t" + c.want + "\n     3\tb\n"; err != nil || text != want {
			t.Errorf("%s: %v, got ...%q", name, err, text[max(0, len(text)-60):])
		}
	}
}

func TestResultIsPagedNotCut(t *testing.T) {
	s := newSession(t)
	path := s.Put("f", strings.Repeat(strings.Repeat("x", 99)+"\n", 3000))
	var all strings.Builder
	for next := 1; next != 0; {
		text, out, err := s.read(t.Context(), t, call{FilePath: path, Offset: next})
		if err != nil || len(text) > 100_000 {
			t.Fatalf("%v, %d characters", err, len(text))
		}
		shown, _, _ := strings.Cut(text, "(line")
		all.WriteString(shown)
		next = out.NextOffset
	}
	if n := strings.Count(all.String(), "\n"); n != 3000 {
		t.Errorf("%d lines came in all", n)
	}
	s.chars = 300
	text, out, err := s.read(t.Context(), t, call{FilePath: path})
	if err != nil || len(text) > 300 || out.NextOffset != 2 {
		t.Errorf("%v: %d characters, next %d", err, len(text), out.NextOffset)
	}
}

func TestEncodings(t *testing.T) {
	const japanese = "これは設定ファイルです\r\nつぎの行\r\n"
	for name, content := range map[string]string{
		"utf-8": japanese, "shift_jis": japanese, "euc-jp": japanese, "utf-16le": japanese, "utf-16be": japanese,
	} {
		enc, err := htmlindex.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := enc.NewEncoder().String(content)
		if err != nil {
			t.Fatal(err)
		}
		raw = map[string]string{"utf-16le": "\xff\xfe", "utf-16be": "\xfe\xff"}[name] + raw
		s := newSession(t)
		text, out, err := s.read(t.Context(), t, call{FilePath: s.Put("f", raw)})
		if err != nil || text != "     1\tこれは設定ファイルです\n     2\tつぎの行\n" || out.Encoding != name || out.LineEnding != "crlf" {
			t.Errorf("%s: %v %q %+v", name, err, text, out)
		}
	}
	s := newSession(t)
	text, out, err := s.read(t.Context(), t, call{FilePath: s.Put("f", "größer äöü\xff\n")})
	if err != nil || text != "     1\tgrößer äöü\ufffd\n" || out.Replaced != 1 {
		t.Errorf("%v: %q, %+v", err, text, out)
	}
}

func TestRefused(t *testing.T) {
	s := newSession(t)
	if err := os.Mkdir(s.Root+"/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.Root+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in                 call
		code, field, words string
	}{
		{in: call{FilePath: "rel/f"}, code: "invalid_input", field: "/file_path", words: s.Root + "/rel/f"},
		{in: call{FilePath: s.Root + "/none"}, code: "file_not_found", field: "/file_path", words: s.Root},
		{in: call{FilePath: s.Root + "/dir"}, code: "is_directory", field: "/file_path", words: "LS"},
		{in: call{FilePath: s.Root + "/pipe"}, code: "not_regular", field: "/file_path", words: "named pipe"},
		{in: call{FilePath: "/dev/zero"}, code: "not_regular", field: "/file_path", words: "device"},
		{in: call{FilePath: "/proc/self/pagemap"}, code: "not_regular", field: "/file_path", words: "longer than"},
		{in: call{FilePath: s.Put("a.out", "\x7fELF\x02\x00")}, code: "binary_file", field: "/file_path", words: "6 bytes"},
		{in: call{FilePath: s.Put("a.png", "\x89PNG\r\n\x1a\n\x00")}, code: "damaged_file", field: "/file_path", words: "image/png"},
		{in: call{FilePath: s.Put("a.pdf", "%PDF-1.7\n"), Offset: 2}, code: "invalid_input", field: "/offset", words: "pages"},
		{in: call{FilePath: s.Put("b.png", "\x89PNG\r\n\x1a\n\x00"), Offset: 2}, code: "invalid_input", field: "/offset", words: "image"},
		{in: call{FilePath: s.Root + "/a.pdf", Pages: "5-1"}, code: "invalid_input", field: "/pages", words: "5-1"},
		{in: call{FilePath: s.Put("a.txt", "text"), Pages: "1"}, code: "invalid_input", field: "/pages"},
		{in: call{FilePath: s.Root + "/a.txt", Offset: -1}, code: "invalid_input", field: "/offset"},
		{in: call{FilePath: s.Root + "/a.txt", Limit: -1}, code: "invalid_input", field: "/limit"},
	} {
		_, _, err := s.read(t.Context(), t, c.in)
		if f := fault.From(err); err == nil || f.Code != c.code || f.Field != c.field || !strings.Contains(f.Message, c.words) {
			t.Errorf("%+v: %v at %q", c.in, err, f.Field)
		}
	}
}

func TestKernelFiles(t *testing.T) {
	s := newSession(t)
	text, out, err := s.read(t.Context(), t, call{FilePath: "/proc/version"})
	if err != nil || !strings.Contains(text, "Linux") || out.Size == 0 {
		t.Errorf("%v: %q %+v", err, text, out)
	}
}

func TestReadState(t *testing.T) {
	s := newSession(t)
	path := s.Put("f", lines(100, "\n"))
	for _, c := range []struct{ offset, limit, unseen int }{{1, 10, 90}, {91, 10, 80}, {5, 20, 66}, {0, 0, 0}} {
		if _, _, err := s.read(t.Context(), t, call{FilePath: path, Offset: c.offset, Limit: c.limit}); err != nil {
			t.Fatal(err)
		}
		got, ok := s.Known(path)
		content, _ := os.ReadFile(path)
		if !ok || got.Unseen() != c.unseen || got.Hash != workspace.Hash(content) || got.Lines != 100 || string(got.Text) != string(content) {
			t.Errorf("after %+v: unseen %d, lines %d, seen %v", c, got.Unseen(), got.Lines, got.Seen)
		}
	}
	if got, _ := s.Known(path); !got.Whole || !slices.Equal(got.Seen, []workspace.Range{{First: 1, Last: 100}}) {
		t.Errorf("%+v", got)
	}
}

// A sparse file of ten gigabytes costs what its first lines cost: the rest is not read, which would take minutes, and
// would be found to be no text.
func TestHugeFile(t *testing.T) {
	s := newSession(t)
	path := s.Put("huge", lines(20_000, "\n"))
	if err := os.Truncate(path, 10<<30); err != nil {
		t.Skipf("no file of that size can be made: %v", err)
	}
	text, out, err := s.read(t.Context(), t, call{FilePath: path, Offset: 15_000, Limit: 50})
	if err != nil || out.TotalLines != nil || out.FirstLine != 15_000 || out.LastLine != 15_049 || out.NextOffset != 15_050 {
		t.Fatalf("%v %+v", err, out)
	}
	if !strings.Contains(text, "too large to count its lines") {
		t.Errorf("ends in %q", text[len(text)-120:])
	}
	if state, _ := s.Known(path); state.Hash != "" || state.Lines != 0 {
		t.Errorf("read state %+v", state)
	}
}

func TestNumbersGrowWide(t *testing.T) {
	s := newSession(t)
	path := s.Put("f", strings.Repeat("\n", 1_000_002))
	text, _, err := s.read(t.Context(), t, call{FilePath: path, Offset: 999_998})
	if want := "999998\t\n999999\t\n1000000\t\n1000001\t\n1000002\t\n"; err != nil || text != want {
		t.Errorf("%v %q", err, text)
	}
}

func TestCancelled(t *testing.T) {
	s := newSession(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user broke in")
	cancel(why)
	if _, _, err := s.read(ctx, t, call{FilePath: s.Put("f", "a\n")}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// What a rule denies is not opened, by whatever path; neither are its names told.
func TestDenied(t *testing.T) {
	s := newSession(t)
	path := s.Put("sub/keys.txt", "secret")
	s.Put("sub/keyt.txt", "x")
	for link, target := range map[string]string{"direct": path, "by-name": "sub", "dangling": "sub/secret/none"} {
		if err := os.Symlink(target, s.Root+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	s.Bar("sub/keys.txt", "sub/secret")
	tooltest.Unopened(t, path)
	for _, name := range []string{"sub/keys.txt", "direct", "by-name/keys.txt", "sub/secret", "dangling"} {
		_, _, err := s.read(t.Context(), t, call{FilePath: s.Root + "/" + name})
		if f := fault.From(err); f.Code != "rule_denied" || f.Kind != fault.Denied || f.Field != "/file_path" || !strings.Contains(f.Message, name) || !strings.Contains(f.Message, tooltest.Rule) {
			t.Errorf("%s: %v, want rule_denied with the path and the rule", name, err)
		}
	}
	_, _, err := s.read(t.Context(), t, call{FilePath: s.Root + "/sub/keyz.txt"})
	if f := fault.From(err); f.Code != "file_not_found" || strings.Contains(f.Message, "keys.txt") || !strings.Contains(f.Message, "keyt.txt") {
		t.Errorf("%v, want keyt.txt alone to be named", err)
	}
}

// Whatever the pieces in which a file is read, each line comes once, with its own number.
func TestEveryLineOnce(t *testing.T) {
	s := newSession(t)
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.StringMatching(`[a-zé日 ]{0,12}`)
		want := rapid.SliceOfN(line, 1, 3000).Draw(rt, "lines")
		offset, limit := rapid.IntRange(1, len(want)).Draw(rt, "offset"), rapid.IntRange(1, 3000).Draw(rt, "limit")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")
		path := s.Put("f", strings.Join(want, end)+end)
		text, out, err := s.read(t.Context(), t, call{FilePath: path, Offset: offset, Limit: limit})
		if err != nil {
			rt.Fatal(err)
		}
		last := min(offset+limit-1, len(want))
		var b strings.Builder
		for i := offset; i <= last; i++ {
			fmt.Fprintf(&b, "%6d\t%s\n", i, want[i-1])
		}
		if got, _, _ := strings.Cut(text, "(line"); got != b.String() || *out.TotalLines != len(want) || (out.NextOffset != 0) != (last < len(want)) {
			rt.Fatalf("%+v\ngot  %q\nwant %q", out, got, b.String())
		}
	})
}

func BenchmarkRead2000Of10000(b *testing.B) {
	s := newSession(b)
	path := s.Put("f", strings.Repeat("\tresult, err := compute(input, options) // x\n", 10_000))
	b.Run("Read", func(b *testing.B) {
		data, _ := json.Marshal(call{FilePath: path})
		action, err := read.Tool().Parse(data)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := action.Run(b.Context(), s.env()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os.ReadFile", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(path); err != nil {
				b.Fatal(err)
			}
		}
	})
}
