//go:build !no_lsp

package language_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/fault"
)

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// put writes a file of the root and gives its path.
func (s *session) put(name, text string) string {
	s.Helper()
	path := filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	return path
}

// at asks about the first place in the file where mark, with | before the character that is meant, occurs.
func (s *session) at(path, mark string) language.Query {
	s.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	head, tail, _ := strings.Cut(mark, "|")
	i := strings.Index(string(text), head+tail)
	if i < 0 {
		s.Fatalf("%s has no %q", path, head+tail)
	}
	before := string(text)[:i+len(head)]
	line := before[strings.LastIndex(before, "\n")+1:]
	return language.Query{
		Path: path, At: language.Position{Line: strings.Count(before, "\n") + 1, Character: len([]rune(line)) + 1}, Text: os.ReadFile,
	}
}

// lacking skips a test for want of something, or fails it where CI has promised that everything is there.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}

// gopls is the real one, as make builds it.
func gopls(t *testing.T) language.Server {
	t.Helper()
	built, err := filepath.Abs("../../../.bin/gopls")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(built); err != nil {
		if built, err = exec.LookPath("gopls"); err != nil {
			lacking(t, "gopls: run \"make servers\"")
		}
	}
	return language.Server{Language: "go", Command: []string{built}, Extensions: []string{".go"}}
}

// typescript is the real one, as npm installs it.
func typescript(t *testing.T) language.Server {
	t.Helper()
	program, err := filepath.Abs("testdata/servers/node_modules/.bin/typescript-language-server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		lacking(t, "typescript-language-server: run \"make servers\"")
	}
	return language.Server{Language: "typescript", Command: []string{program, "--stdio"}, Extensions: []string{".ts"}}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}
