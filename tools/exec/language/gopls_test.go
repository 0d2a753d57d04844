//go:build !no_lsp

package language_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools/exec/language"
)

const (
	goMod  = "module example.com/m\n\ngo 1.24\n"
	goMain = `package m

// Speaker speaks.
type Speaker interface{ Speak() string }

type dog struct{}

func (dog) Speak() string { return "😀 wuff" }

func use() string {
	/* 😀 */ x := dog{}
	return x.Speak() + greet()
}
`
	goOther = "package m\n\nfunc greet() string { return \"hello\" }\n"
)

func goSession(t *testing.T) (s *session, main, other string) {
	t.Helper()
	s = newSession(t, gopls(t))
	s.put("go.mod", goMod)
	return s, s.put("main.go", goMain), s.put("other.go", goOther)
}

// show puts locations into words, relative to the root.
func (s *session) show(list []language.Location) string {
	var all []string
	for _, l := range list {
		path, err := filepath.Rel(s.root, l.Path)
		if err != nil || strings.HasPrefix(path, "..") {
			path = "/" + filepath.Base(l.Path)
		}
		all = append(all, fmt.Sprintf("%s:%d:%d %s", path, l.Range.Start.Line, l.Range.Start.Character, strings.TrimSpace(l.Line)))
	}
	return strings.Join(all, "\n")
}

func expect(t *testing.T, what, got string, err error, want string) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: %v\n%s\nwant\n%s", what, err, got, want)
	}
}

// A real gopls answers each question, with places as an editor shows them, behind characters of two UTF-16 units as well.
func TestGoplsAnswers(t *testing.T) {
	s, main, other := goSession(t)
	ctx := t.Context()

	list, err := s.set.Definition(ctx, s.at(main, "|greet()"))
	expect(t, "definition", s.show(list), err, `other.go:3:6 func greet() string { return "hello" }`)
	list, err = s.set.References(ctx, s.at(main, "|x := dog"))
	expect(t, "references", s.show(list), err, "main.go:11:10 /* 😀 */ x := dog{}\nmain.go:12:9 return x.Speak() + greet()")
	list, err = s.set.Implementation(ctx, s.at(main, "|Speaker interface"))
	expect(t, "implementation", s.show(list), err, "main.go:6:6 type dog struct{}")

	hover, err := s.set.Hover(ctx, s.at(main, "|Speaker interface"))
	if err != nil || !strings.Contains(hover, "Speaker speaks.") {
		t.Errorf("hover: %q, %v", hover, err)
	}
	outline, err := s.set.Outline(ctx, language.Query{Path: main, Text: os.ReadFile})
	var names []string
	for _, o := range outline {
		names = append(names, fmt.Sprintf("%d %s %s %d:%d", o.Depth, o.Kind, o.Name, o.Range.Start.Line, o.Range.Start.Character))
	}
	expect(t, "outline", strings.Join(names, "\n"), err, `0 interface Speaker 4:6
1 method Speak 4:25
0 struct dog 6:6
0 method (dog).Speak 8:12
0 function use 10:6`)
	symbols, err := s.set.Search(ctx, language.Query{Path: main, Text: os.ReadFile}, "greet")
	if err != nil || len(symbols) != 1 || symbols[0].Path != other {
		t.Errorf("search: %+v, %v", symbols, err)
	}
	calls, err := s.set.Calls(ctx, s.at(main, "func |use"))
	var ends []string
	for _, c := range calls.Outgoing {
		ends = append(ends, fmt.Sprintf("%s at %d:%d", c.Name, c.At[0].Start.Line, c.At[0].Start.Character))
	}
	expect(t, "calls", calls.Of.Name+": "+strings.Join(ends, ", "), err, "use: Speak at 12:11, greet at 12:21")
	calls, err = s.set.Calls(ctx, s.at(other, "func |greet"))
	if err != nil || len(calls.Incoming) != 1 || calls.Incoming[0].Name != "use" {
		t.Errorf("calls: %+v, %v", calls, err)
	}
	renaming, err := s.set.Rename(ctx, s.at(other, "|greet"), "salute")
	var after []string
	for _, c := range renaming.Changes {
		after = append(after, filepath.Base(c.Path)+": "+string(c.After))
	}
	expect(t, "rename", strings.Join(after, "\n"), err, "main.go: "+strings.ReplaceAll(goMain, "greet", "salute")+"\nother.go: "+strings.ReplaceAll(goOther, "greet", "salute"))
	if text, err := os.ReadFile(other); err != nil || string(text) != goOther {
		t.Errorf("the renaming has written: %q, %v", text, err)
	}
	list, err = s.set.Definition(ctx, s.at(s.put("lib.go", "package m\n\nimport \"strings\"\n\nvar _ = strings.ToUpper(\"a\")\n"), "|ToUpper"))
	if err != nil || len(list) != 1 || filepath.Base(list[0].Path) != "strings.go" {
		t.Errorf("the standard library: %+v, %v", list, err)
	}
}

// Diagnostics are those of the present text: of the disk, or of what an editor has not saved, and of files that have changed
// without anybody saying so.
func TestGoplsDiagnoses(t *testing.T) {
	s, main, other := goSession(t)
	diagnose := func(q language.Query) string {
		t.Helper()
		found, err := s.set.Diagnose(t.Context(), q)
		if err != nil || !found.Complete {
			t.Fatalf("%+v, %v", found, err)
		}
		var all []string
		for _, d := range found.List {
			if d.Severity == language.Information || d.Severity == language.Hint {
				continue
			}
			all = append(all, fmt.Sprintf("%d:%d %s %s", d.Range.Start.Line, d.Range.Start.Character, d.Severity, d.Code))
		}
		return strings.Join(all, "\n")
	}
	disk := language.Query{Path: main, Text: os.ReadFile}
	expect(t, "as it is", diagnose(disk), nil, "")
	unsaved := disk
	unsaved.Text = func(path string) ([]byte, error) {
		text, err := os.ReadFile(path)
		return []byte(strings.ReplaceAll(string(text), "x.Speak()", "x.Spook()")), err
	}
	expect(t, "not saved", diagnose(unsaved), nil, "12:11 error MissingFieldOrMethod")
	expect(t, "on the disk", diagnose(disk), nil, "")
	s.put("other.go", strings.ReplaceAll(goOther, "greet", "salute"))
	expect(t, "another file changed", diagnose(disk), nil, "12:21 error UndeclaredName")
	s.put("third.go", "package m\n\nfunc greet() string { return salute() }\n")
	expect(t, "a file came", diagnose(disk), nil, "")
	if err := os.Remove(filepath.Join(s.root, "third.go")); err != nil {
		t.Fatal(err)
	}
	expect(t, "a file went", diagnose(disk), nil, "12:21 error UndeclaredName")
	_ = other
}

// An edit brings the errors that it has made, in its file and in others of the package, and not those that were there.
func TestGoplsTellsWhatAnEditBrings(t *testing.T) {
	s, main, other := goSession(t)
	old := goOther + "\nvar old int = \"was there\"\n"
	s.put("other.go", old)
	if w := s.set.Watch(t.Context(), other, []byte(old)); w != nil {
		t.Fatal("a server is watched that does not run")
	}
	if _, err := s.set.Diagnose(t.Context(), language.Query{Path: other, Text: os.ReadFile}); err != nil {
		t.Fatal(err)
	}
	edit := func(path, before, after string) string {
		t.Helper()
		w := s.set.Watch(t.Context(), path, []byte(before))
		if w == nil {
			t.Fatal("nothing is watched")
		}
		s.put(filepath.Base(path), after)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var all []string
		for _, d := range w.New(ctx, []byte(after)) {
			rel, err := filepath.Rel(s.root, d.Path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s:%d:%d %s %s", rel, d.Range.Start.Line, d.Range.Start.Character, d.Severity, d.Code))
		}
		return strings.Join(all, "\n")
	}
	broken := strings.Replace(goMain, "x := dog{}", "var x int = dog{}", 1)
	expect(t, "a type error", edit(main, goMain, broken), nil, "main.go:11:22 error IncompatibleAssign\nmain.go:12:11 error MissingFieldOrMethod")
	expect(t, "fixed", edit(main, broken, goMain), nil, "")
	renamed := "package m\n\n\n\nfunc salute() string { return \"hello\" }\n\nvar old int = \"was there\"\n"
	expect(t, "an error elsewhere", edit(other, old, renamed), nil, "main.go:12:21 error UndeclaredName")
}
