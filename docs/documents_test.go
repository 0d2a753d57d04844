// Whether the documents tell the truth about the tree: the files, tests, promises and error codes that they name. It
// does not run what they say; readme_test.go does.
package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	fileName = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?$`)
	testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*$`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
)

// What the documents name between backquotes as a file, a folder or a test is there.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	tests := testNames(t)
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/errors.md", "docs/lsp.md", "docs/mcp.md", "docs/pool.md", "docs/tools-of-your-own.md", "docs/tools.md", "docs/regrets.md", "docs/departures.md", "docs/performance.md", "docs/security.md", "docs/remote.md", "docs/secrets.md", "docs/settings.md", "docs/mcp-server.md", "docs/agents.md", "docs/cluster.md", "docs/cluster-size.md", "docs/models.md", "docs/operating.md", "docs/stdio.md", "examples/clients/README.md"} {
		for _, match := range quoted.FindAllStringSubmatch(document(t, name), -1) {
			word := match[1]
			switch {
			case testName.MatchString(word) && !tests[word]:
				t.Errorf("%s names the test %s, and there is none of that name", name, word)
			case looksLikeFile(word) && !exists(word):
				t.Errorf("%s names %s, and there is no such file", name, word)
			}
		}
	}
}

// looksLikeFile reports that a word from a document is a path of this tree: one that begins with a folder of the top
// level, or a Go file or a document by its name alone.
func looksLikeFile(word string) bool {
	if !fileName.MatchString(word) {
		return false
	}
	first, _, below := strings.Cut(word, "/")
	if below {
		return slices.Contains([]string{"proto", "gen", "cmd", "daemon", "scheduler", "tools", "docs", "examples", "contrib", "bench", ".ci"}, first)
	}
	return path.Ext(word) == ".go" || path.Ext(word) == ".md" && word != "description.md"
}

func exists(name string) bool {
	_, err := os.Stat(filepath.FromSlash(name))
	return err == nil
}

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		for _, match := range testFunc.FindAllStringSubmatch(document(t, name), -1) {
			names[match[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// testInFile is how ARCHITECTURE.md names a test that holds a promise.
var testInFile = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)` in `([^`]+_test\\.go)`")

// Each of the ten promises stands in ARCHITECTURE.md on a line of its own, with at least one test that holds it and the
// file in which that test is.
func TestPromisesNameTheirTests(t *testing.T) {
	text := document(t, "ARCHITECTURE.md")
	for n := 1; n <= 10; n++ {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^\| P%d \|.*$`, n)).FindString(text)
		holders := testInFile.FindAllStringSubmatch(line, -1)
		if len(holders) == 0 {
			t.Errorf("promise P%d has no line in ARCHITECTURE.md that names a test and its file: %q", n, line)
		}
		for _, holder := range holders {
			name, file := holder[1], holder[2]
			if !exists(file) || !strings.Contains(document(t, file), "\nfunc "+name+"(") {
				t.Errorf("promise P%d is said to be held by %s, which is not in %s", n, name, file)
			}
		}
	}
}

// Each row of docs/departures.md, but for what is out of scope, ends with a test or a file that holds it.
func TestDeparturesAreHeld(t *testing.T) {
	listed, outside, _ := strings.Cut(document(t, "docs/departures.md"), "\n## Out of scope\n")
	tests, rows := testNames(t), 0
	for line := range strings.Lines(listed) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| elsewhere |") {
			continue
		}
		rows++
		holders := quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(cells) != 4 || len(holders) == 0 {
			t.Errorf("docs/departures.md has a row without reason or holder: %s", line)
		}
		for _, holder := range holders {
			if name := holder[1]; !tests[name] && (!looksLikeFile(name) || !exists(name)) {
				t.Errorf("docs/departures.md names %s, which is neither a test nor a file", name)
			}
		}
	}
	if rows < 40 || !strings.Contains(outside, "`tool_choice`") {
		t.Errorf("docs/departures.md has %d departures, and what is out of scope is %q", rows, outside)
	}
}

// docs/errors.md lists the codes that the program can give, all of them and no others.
func TestErrorsAreListed(t *testing.T) {
	used := map[string]string{} // code -> a file that gives it
	for _, stop := range []string{"aborted", "cancelled", "discarded", "interrupted", "timed_out"} {
		used[stop] = "scheduler/pipeline/outcome.go" // where a stop's code is its outcome's name
	}
	for _, s := range sources(t, parser.SkipObjectResolution) {
		if within(s.dir, "gen") || within(s.dir, "bench") {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			if code, is := codeIn(node); is {
				used[code] = s.name
			}
			return true
		})
	}
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllStringSubmatch(document(t, "docs/errors.md"), -1) {
		listed[match[1]] = true
	}
	for _, code := range slices.Sorted(maps.Keys(used)) {
		if !listed[code] {
			t.Errorf("%s gives the code %s, which docs/errors.md does not list", used[code], code)
		}
	}
	for code := range listed {
		if used[code] == "" {
			t.Errorf("docs/errors.md lists %s, which nothing gives", code)
		}
	}
}

// codeMakers are the functions that take a code, and which argument it is: those of tools/fault, apierror.New for
// statuses, and notice of tools/mcp. What is no code by its form is another function's of the same name.
var (
	codeMakers = map[string]int{"Invalidf": 0, "Failedf": 0, "Deniedf": 0, "NotFoundf": 0, "Preconditionf": 0, "noticef": 0, "noticeOf": 1, "notice": 0, "New": 1}
	codeForm   = regexp.MustCompile(`^[a-z0-9_]+$`)
)

// codeIn finds the code in a call of one of codeMakers, or in a field Code of a literal.
func codeIn(node ast.Node) (string, bool) {
	switch node := node.(type) {
	case *ast.CallExpr:
		at, makes := codeMakers[called(node.Fun)]
		if makes && len(node.Args) > at {
			return text(node.Args[at])
		}
	case *ast.KeyValueExpr:
		if key, is := node.Key.(*ast.Ident); is && key.Name == "Code" {
			return text(node.Value)
		}
	}
	return "", false
}

func called(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

func text(expr ast.Expr) (string, bool) {
	literal, is := expr.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil && codeForm.MatchString(value)
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The tool that CONTRIBUTING.md adds compiles as it stands there.
func TestContributingExampleCompiles(t *testing.T) {
	match := regexp.MustCompile("(?ms)^```go\n(// Package (\\w+) .*?)^```$").FindStringSubmatch(document(t, "CONTRIBUTING.md"))
	if match == nil {
		t.Fatal("CONTRIBUTING.md has no block with a package of Go")
	}
	dir := t.TempDir()
	place := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "tools", match[2])
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(folder, match[2]+".go"):   place("tool.go", match[1]),
		filepath.Join(folder, "description.md"): place("description.md", "Counts."),
	}})
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", place("overlay.json", string(overlay)), "./tools/"+match[2])
	if output, err := build.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, output)
	}
}

// docs/permissions.md lists the codes of reasons, all of them and no others.
func TestReasonCodesAreListed(t *testing.T) {
	made := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^\t\w+ +Code = "([a-z_]+)"`).FindAllStringSubmatch(document(t, "scheduler/permission/reason.go"), -1) {
		made[match[1]] = true
	}
	_, table, _ := strings.Cut(document(t, "docs/permissions.md"), "## Reasons as codes")
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		listed[match[1]] = true
	}
	if len(made) < 30 || !maps.Equal(made, listed) {
		t.Errorf("the codes are %v, and docs/permissions.md lists %v", slices.Sorted(maps.Keys(made)), slices.Sorted(maps.Keys(listed)))
	}
}

// phrase is a text that a person would read: two words or more.
var phrase = regexp.MustCompile(`[A-Za-z]{2,},? [a-z]{2,}`)

// matching are the functions of package strings that look into a text, or take it apart.
var matching = []string{"Contains", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "TrimPrefix", "TrimSuffix", "Index", "LastIndex", "Split", "SplitN", "EqualFold", "Count"}

// What the program writes for people is not what it reads: codes and fields are.
func TestNoSentenceIsMatched(t *testing.T) {
	for _, s := range sources(t, parser.SkipObjectResolution) {
		if within(s.dir, "gen") || within(s.dir, "bench") || within(s.dir, "tools/exec/sandbox/escape") {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				function, is := node.Fun.(*ast.SelectorExpr)
				if !is || len(node.Args) < 2 || !slices.Contains(matching, function.Sel.Name) {
					return true
				}
				if of, is := function.X.(*ast.Ident); !is || of.Name != "strings" {
					return true
				}
				text, is := node.Args[1].(*ast.BasicLit)
				if isMessage(node.Args[0]) && (!is || text.Value != `"."`) {
					t.Errorf("%s looks into a message: let its maker pass on a code or a value", s.name)
				}
				if is && phrase.MatchString(text.Value) && !slices.Contains(protocolTexts, text.Value) {
					t.Errorf("%s looks for %s in a text: let the text's maker pass on a code or a value", s.name, text.Value)
				}
			case *ast.BinaryExpr:
				if node.Op != token.EQL && node.Op != token.NEQ {
					return true
				}
				for _, side := range []ast.Expr{node.X, node.Y} {
					if text, is := side.(*ast.BasicLit); is && text.Kind == token.STRING && phrase.MatchString(text.Value) && !slices.Contains(protocolTexts, text.Value) {
						t.Errorf("%s compares a text with %s: let the text's maker pass on a code or a value", s.name, text.Value)
					}
				}
			}
			return true
		})
	}
}

// isMessage reports whether an expression is the message of an error or the reason of a verdict.
func isMessage(x ast.Expr) bool {
	if call, is := x.(*ast.CallExpr); is {
		x = call.Fun
	}
	of, is := x.(*ast.SelectorExpr)
	return is && slices.Contains([]string{"Message", "GetMessage", "GetReason", "Sentences"}, of.Sel.Name)
}

// protocolTexts are texts that other programs define.
var protocolTexts = []string{
	`"invalid literal: "`, // hujson
}

// The rows of tables that CONTRIBUTING.md shows are rows of the source.
func TestContributingShowsRows(t *testing.T) {
	rows := regexp.MustCompile("(?m)^ *(\\{\"[a-z]\\w*\\.\\w+\", .*\\},)$").FindAllStringSubmatch(document(t, "CONTRIBUTING.md"), -1)
	if len(rows) == 0 {
		t.Fatal("CONTRIBUTING.md shows no row of the settings' table")
	}
	for _, row := range rows {
		if !strings.Contains(document(t, "daemon/settings/keys.go"), row[1]) {
			t.Errorf("daemon/settings/keys.go has no row %s", row[1])
		}
	}
}
