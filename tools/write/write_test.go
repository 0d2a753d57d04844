package write_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
	"github.com/toold/toold/tools/write"
)

type session struct{ *tooltest.Files }

func newSession(t testing.TB) *session {
	t.Helper()
	return &session{tooltest.NewFiles(t, t.TempDir())}
}

// put writes a file, of which the session has seen so many lines.
func (s *session) put(t testing.TB, content string, seen int) string {
	t.Helper()
	path := s.Put("file", content)
	v := s.View()
	c, err := v.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	state := c.State
	state.Lines, state.Seen = strings.Count(content, "\n"), []workspace.Range{{First: 1, Last: seen}}
	v.Record(c.Path.Real, state)
	s.Learn(v)
	return path
}

func (s *session) write(t testing.TB, path, content string) (tools.Preview, write.Structured, string, error) {
	t.Helper()
	preview, result, err := s.Call(write.Tool(), map[string]string{"file_path": path, "content": content})
	if err != nil {
		return preview, write.Structured{}, "", err
	}
	out := result.Structured.(write.Structured)
	if preview.Diff != out.Diff {
		t.Errorf("the preview shows\n%sthe result\n%s", preview.Diff, out.Diff)
	}
	return preview, out, result.Content[0].Text, nil
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

func TestCreates(t *testing.T) {
	s := newSession(t)
	path := s.Root + "/new/deep/file.txt"
	preview, out, text, err := s.write(t, path, "one\ntwo\n")
	if err != nil || !out.Created || out.Size != 8 || !strings.Contains(text, "Created "+path) || !strings.Contains(text, "     2\ttwo\n") {
		t.Fatalf("%v %+v\n%s", err, out, text)
	}
	if !strings.Contains(preview.Diff, "+one\n+two\n") || preview.Ask != "" {
		t.Errorf("preview %+v", preview)
	}
	holds(t, path, "one\ntwo\n")
	// What it has written itself it knows.
	if _, out, text, err = s.write(t, path, "one\n"); err != nil || out.Created || !strings.Contains(text, "Updated") {
		t.Errorf("%v %+v", err, out)
	}
	if _, out, text, err = s.write(t, path, "one\n"); err != nil || !out.Unchanged || out.Diff != "" || !strings.Contains(text, "nothing was written") {
		t.Errorf("%v %+v %s", err, out, text)
	}
}

func TestCheckHasNoEffect(t *testing.T) {
	s := newSession(t)
	data, _ := json.Marshal(map[string]string{"file_path": s.Root + "/a/b", "content": "x"})
	action, err := write.Tool().Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	v := s.View()
	if _, err := action.Check(t.Context(), &tools.Env{Dir: s.Root, Files: v}); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(s.Root); err != nil || len(list) != 0 || len(v.ReadState()) != 0 {
		t.Errorf("%v, the root holds %v, read state %v", err, list, v.ReadState())
	}
}

func TestReadStateIsNeeded(t *testing.T) {
	s := newSession(t)
	path := filepath.Join(s.Root, "file")
	if err := os.WriteFile(path, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.write(t, path, "ours"); tooltest.Code(err) != "not_read" || fault.From(err).Field != "/file_path" {
		t.Errorf("never read: %v", err)
	}
	s.put(t, "seen", 1)
	if err := os.WriteFile(path, []byte("then"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.write(t, path, "ours"); tooltest.Code(err) != "stale_file" {
		t.Errorf("changed since: %v", err)
	}
	holds(t, path, "then")
}

func TestSaysWhatWasNeverSeen(t *testing.T) {
	s := newSession(t)
	path := s.put(t, strings.Repeat("line\n", 50), 10)
	_, out, text, err := s.write(t, path, "short\n")
	if err != nil || out.UnseenLines != 40 || !strings.Contains(text, "40 lines of the old content were never read") {
		t.Errorf("%v %+v\n%s", err, out, text)
	}
}

func TestKeepsTheFilesOwnForm(t *testing.T) {
	for _, c := range []struct{ name, encoding, mark, file, content, want, code string }{
		{name: "LF", file: "a\nb\n", content: "c\nd\n", want: "c\nd\n"},
		{name: "CRLF throughout", file: "a\r\nb\r\n", content: "c\nd\n", want: "c\r\nd\r\n"},
		{name: "CRLF given", file: "a\r\nb\r\n", content: "c\r\nd\n", want: "c\r\nd\n"},
		{name: "mixed", file: "a\r\nb\n", content: "c\nd\n", want: "c\nd\n"},
		{name: "LF, CRLF given", file: "a\n", content: "c\r\n", want: "c\r\n"},
		{name: "byte order mark", file: "\ufeffa\n", content: "b\n", want: "\ufeffb\n"},
		{name: "byte order mark given", file: "\ufeffa\n", content: "\ufeffb\n", want: "\ufeffb\n"},
		{name: "UTF-16", encoding: "utf-16le", mark: "\xff\xfe", file: "a\r\n", content: "日\n", want: "日\r\n"},
		{name: "GBK", encoding: "gbk", file: "读取配置文件\n", content: "默认文件\n", want: "默认文件\n"},
		{name: "GBK, lossy", encoding: "gbk", file: "读取配置文件\n", content: "a\n😀\n", code: "lossy_encoding"},
		{name: "empty before", file: "", content: "é\n", want: "é\n"},
		{name: "empty after", file: "a\n", content: "", want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			coded := func(s string) string {
				if c.encoding == "" {
					return s
				}
				enc, err := htmlindex.Get(c.encoding)
				if err != nil {
					t.Fatal(err)
				}
				out, err := enc.NewEncoder().String(s)
				if err != nil {
					t.Fatal(err)
				}
				return c.mark + out
			}
			s := newSession(t)
			path := s.put(t, coded(c.file), 1)
			_, _, _, err := s.write(t, path, c.content)
			if tooltest.Code(err) != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if c.code == "" {
				holds(t, path, coded(c.want))
			} else {
				holds(t, path, coded(c.file))
			}
		})
	}
}

func TestRefused(t *testing.T) {
	s := newSession(t)
	if err := os.Mkdir(s.Root+"/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"rel/file":        "invalid_input",
		s.Root + "/dir":   "is_directory",
		"/somewhere/else": "undeclared",
	} {
		if _, _, _, err := s.write(t, path, "x"); tooltest.Code(err) != want || fault.From(err).Field != "/file_path" {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	_, _, _, err := s.write(t, "rel/file", "x")
	if !strings.Contains(err.Error(), s.Root+"/rel/file") {
		t.Errorf("the message does not name the path: %v", err)
	}
}

// What a rule denies reading is not written either, by whatever path, and the rule is named.
func TestDenied(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "old", 1)
	if err := os.Symlink("file", s.Root+"/soft"); err != nil {
		t.Fatal(err)
	}
	s.Bar("file", "secret")
	for _, path := range []string{path, s.Root + "/soft", s.Root + "/secret/new"} {
		_, _, _, err := s.write(t, path, "new")
		if f := fault.From(err); f.Code != "rule_denied" || f.Kind != fault.Denied || f.Field != "/file_path" || !strings.Contains(f.Message, path) || !strings.Contains(f.Message, tooltest.Rule) {
			t.Errorf("%s: %v, want rule_denied with the path and the rule", path, err)
		}
	}
	holds(t, path, "old")
	if _, err := os.Lstat(s.Root + "/secret"); !os.IsNotExist(err) {
		t.Errorf("the denied directory was made: %v", err)
	}
}

func TestOneUnseenLine(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "one\ntwo\n", 1)
	_, _, text, err := s.write(t, path, "x")
	if err != nil || !strings.HasPrefix(text, "Updated "+path+" (1 byte).\nNote: 1 line of the old content was never read in this session, and is replaced.\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestLinks(t *testing.T) {
	s := newSession(t)
	path := s.put(t, "old", 1)
	if err := os.Symlink("file", s.Root+"/soft"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, s.Root+"/hard"); err != nil {
		t.Fatal(err)
	}
	preview, _, text, err := s.write(t, s.Root+"/soft", "new")
	if err != nil || !strings.Contains(preview.Ask, "hard links") || !strings.Contains(text, "Note: "+preview.Ask) {
		t.Errorf("%v, asks %q, says\n%s", err, preview.Ask, text)
	}
	holds(t, s.Root+"/hard", "new")
	if target, err := os.Readlink(s.Root + "/soft"); err != nil || target != "file" {
		t.Errorf("the link is %q (%v)", target, err)
	}
}
