package edit_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

type session struct{ *tooltest.Files }

func newSession(t testing.TB) *session {
	t.Helper()
	return &session{tooltest.NewFiles(t, t.TempDir())}
}

// put writes a file and notes that the session has read it.
func (s *session) put(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := s.Put(name, string(content))
	s.Read(path)
	return path
}

// call parses, checks and runs, as the pipeline does; the check must agree with the run and must change nothing.
func (s *session) call(t testing.TB, tool tools.Tool, input any) (tools.Preview, edit.Structured, string, error) {
	t.Helper()
	preview, result, err := s.Call(tool, input)
	if err != nil {
		return preview, edit.Structured{}, "", err
	}
	out := result.Structured.(edit.Structured)
	if preview.Diff != out.Diff {
		t.Errorf("the preview shows\n%sthe result\n%s", preview.Diff, out.Diff)
	}
	return preview, out, result.Content[0].Text, nil
}

type one struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// Each line of testdata/edits.jsonl is an edit of a file and what comes of it.
func TestEdits(t *testing.T) {
	f, err := os.Open("testdata/edits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Note, Old, New, Error string
			File, Expect          *string
			All                   bool `json:"replace_all"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Note, func(t *testing.T) {
			s := newSession(t)
			path := filepath.Join(s.Root, "file")
			if c.File != nil {
				s.put(t, "file", []byte(*c.File))
			}
			_, _, _, err := s.call(t, edit.Tool(), one{path, c.Old, c.New, c.All})
			if tooltest.Code(err) != c.Error {
				t.Fatalf("%v, want %q", err, c.Error)
			}
			want := c.Expect
			if want == nil {
				want = c.File
			}
			got, err := os.ReadFile(path)
			if want == nil {
				if !os.IsNotExist(err) {
					t.Errorf("a file came into being: %q", got)
				}
			} else if string(got) != *want {
				t.Errorf("got  %q\nwant %q", got, *want)
			}
		})
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

func encoded(t testing.TB, name, s string) []byte {
	t.Helper()
	enc, err := htmlindex.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEncodingsStay(t *testing.T) {
	for _, c := range []struct{ encoding, mark, file, old, next, want, code string }{
		{"gbk", "", "// 读取配置文件，如果没有\r\n", "配置文件", "默认文件", "// 读取默认文件，如果没有\r\n", ""},
		{"gbk", "", "// 读取配置文件，如果没有\n", "配置", "😀", "", "lossy_encoding"},
		{"shift_jis", "", "これは設定ファイルです\nつぎの行\n", "設定", "試験", "これは試験ファイルです\nつぎの行\n", ""},
		{"big5", "", "讀取設定檔案，如果沒有就使用\n", "設定", "測試", "讀取測試檔案，如果沒有就使用\n", ""},
		{"euc-kr", "", "설정 파일을 읽습니다\n", "파일", "문서", "설정 문서을 읽습니다\n", ""},
		{"windows-1252", "", "café\n", "café", "thé – 5 €", "thé – 5 €\n", ""},
		{"windows-1252", "", "café\n", "café", "a → b", "", "lossy_encoding"},
		{"windows-1251", "", "Привет, мир, это текст\n", "мир", "свет", "Привет, свет, это текст\n", ""},
		{"utf-16le", "\xff\xfe", "one\r\ntwo 😀\r\n", "one\ntwo", "1\n2\n3", "1\r\n2\r\n3 😀\r\n", ""},
		{"utf-16be", "\xfe\xff", "日本\n", "日", "中😀", "中😀本\n", ""},
	} {
		s := newSession(t)
		before := append([]byte(c.mark), encoded(t, c.encoding, c.file)...)
		path := s.put(t, "file", before)
		_, out, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: c.old, NewString: c.next})
		if tooltest.Code(err) != c.code {
			t.Errorf("%s: %v, want %q", c.encoding, err, c.code)
		}
		want := before
		if c.code == "" {
			want = append([]byte(c.mark), encoded(t, c.encoding, c.want)...)
			if out.Encoding != c.encoding {
				t.Errorf("%s was taken for %s", c.encoding, out.Encoding)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != string(want) {
			t.Errorf("%s:\ngot  % x\nwant % x", c.encoding, got, want)
		}
	}
}

// Bytes that are no text of the encoding survive, even inside a match.
func TestStrayBytesSurvive(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "file", []byte("größe prüfen äöü ß é \xff\xfe bytes\nlast\n"))
	if _, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "last", NewString: "end"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "größe prüfen äöü ß é \xff\xfe bytes\nend\n" {
		t.Errorf("got %q", got)
	}
	_, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "é \ufffd\ufffd bytes", NewString: "x"})
	if tooltest.Code(err) != "no_match" || !strings.Contains(err.Error(), "U+FFFD") {
		t.Errorf("got %v", err)
	}
}

func TestReadStateIsNeeded(t *testing.T) {
	s := newSession(t)
	path := filepath.Join(s.Root, "file")
	if err := os.WriteFile(path, []byte("one two"), 0o644); err != nil {
		t.Fatal(err)
	}
	in := one{FilePath: path, OldString: "two", NewString: "2"}
	if _, _, _, err := s.call(t, edit.Tool(), in); tooltest.Code(err) != "not_read" {
		t.Errorf("never read: %v", err)
	}
	s.Read(path)
	change := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change("one two two")
	if _, _, _, err := s.call(t, edit.Tool(), in); tooltest.Code(err) != "stale_file" {
		t.Errorf("changed, and no longer unique: %v", err)
	}
	in.ReplaceAll = true
	if _, _, _, err := s.call(t, edit.Tool(), in); tooltest.Code(err) != "stale_file" {
		t.Errorf("changed, all of several: %v", err)
	}
	change("three\none two")
	_, out, text, err := s.call(t, edit.Tool(), in)
	if err != nil || !strings.Contains(out.Drift, "+three") || !strings.Contains(text, "+three") {
		t.Errorf("changed, and unique: %v\n%s", err, text)
	}
	if got, _ := os.ReadFile(path); string(got) != "three\none 2" {
		t.Errorf("got %q", got)
	}
	if _, out, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "2", NewString: "two"}); err != nil || out.Drift != "" {
		t.Errorf("after an edit of its own: %v, drift %q", err, out.Drift)
	}
}

func TestRelativePath(t *testing.T) {
	s := newSession(t)
	for _, name := range []string{"sub/file", "~/file"} {
		_, _, _, err := s.call(t, edit.Tool(), one{FilePath: name, NewString: "x"})
		f := fault.From(err)
		if f.Code != "invalid_input" || f.Field != "/file_path" || !strings.Contains(f.Message, s.Root+"/"+name) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

func TestBinaryIsRefused(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "file", []byte("\x7fELF\x00\x01 text"))
	if _, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "text", NewString: "x"}); tooltest.Code(err) != "binary_file" {
		t.Errorf("got %v", err)
	}
}

// What a rule denies reading is not edited either, by whatever path, and the rule is named.
func TestDenied(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "file", []byte("old"))
	if err := os.Symlink("file", s.Root+"/soft"); err != nil {
		t.Fatal(err)
	}
	s.Bar("file", "secret")
	for _, in := range []one{{path, "old", "new", false}, {s.Root + "/soft", "old", "new", false}, {s.Root + "/secret/new", "", "new", false}} {
		_, _, _, err := s.call(t, edit.Tool(), in)
		if f := fault.From(err); f.Code != "rule_denied" || f.Field != "/file_path" || !strings.Contains(f.Message, in.FilePath) || !strings.Contains(f.Message, tooltest.Rule) {
			t.Errorf("%s: %v, want rule_denied with the path and the rule", in.FilePath, err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
		t.Errorf("the file holds %q (%v)", data, err)
	}
	if _, err := os.Lstat(s.Root + "/secret"); !os.IsNotExist(err) {
		t.Errorf("the denied directory was made: %v", err)
	}
}

func TestHardLinksAsk(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "file", []byte("one"))
	if err := os.Link(path, s.Root+"/other"); err != nil {
		t.Fatal(err)
	}
	preview, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "one", NewString: "two"})
	if err != nil || !strings.Contains(preview.Ask, "2 hard links") {
		t.Errorf("%v, asks %q", err, preview.Ask)
	}
	if got, _ := os.ReadFile(s.Root + "/other"); string(got) != "two" {
		t.Errorf("the other name holds %q", got)
	}
}

func TestResultShowsTheChange(t *testing.T) {
	s := newSession(t)
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("line %d", i+1))
	}
	path := s.put(t, "file", []byte(strings.Join(lines, "\n")+"\n"))
	_, out, text, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "line 30\n", NewString: "thirty\nmore\n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"    30\tthirty\n    31\tmore\n", "    26\tline 26\n"} {
		if !strings.Contains(text, want) || strings.Contains(text, "line 20") {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(out.Diff, "@@ -27,7 +27,8 @@") || out.Replacements != 1 || out.LineEnding != "lf" {
		t.Errorf("structured %+v", out)
	}
}

func TestNoMatchShowsTheNearest(t *testing.T) {
	const file = "package main\n\nfunc run() {\n\tif ready {\n\t\tstart(\"x\")\n\t}\n}\n"
	for old, want := range map[string]string{
		"    if ready {\n        start(\"x\")":   "indentation is 1 tab in the file, 4 spaces in old_string",
		"\tif Ready {\n\t\tstart(\"x\")":         "upper and lower case",
		"\tif ready {\n\t\tstart(\"y\")":         `the file has "x\")" where old_string has "y\")"`,
		"\tif  ready {":                          "white space",
		"     4\t\tif ready {":                   "numbers that Read adds",
		"func rn() {":                            `the file has "un() {" where old_string has "n() {"`,
		"completely different content, I think!": "No region of it is similar",
	} {
		s := newSession(t)
		path := s.put(t, "main.go", []byte(file))
		_, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: old, NewString: "z"})
		if f := fault.From(err); f.Code != "no_match" || f.Field != "/old_string" || !strings.Contains(f.Message, want) {
			t.Errorf("%q: %v\nlacks %s", old, err, want)
		}
	}
}

func TestMultipleNamesTheLines(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "file", []byte("a\nb\na\n\na a\n"))
	_, _, _, err := s.call(t, edit.Tool(), one{FilePath: path, OldString: "a", NewString: "z"})
	if d, _ := fault.From(err).Details.(edit.Multiple); d.Count != 4 || !slices.Equal(d.Lines, []int{1, 3, 5, 5}) {
		t.Errorf("%v: %+v", err, d)
	}
}
