package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func FuzzAnalyze(f *testing.F) {
	for _, file := range labelledFiles {
		for _, c := range readLabelled(f, file) {
			f.Add(c.Command)
		}
	}
	f.Add(strings.Repeat("$(", 300))
	f.Add(strings.Repeat("sudo -x ", 40) + "rm x")
	f.Add("bash -c 'bash -c \"bash -c \\\"ls\\\"\"'")
	f.Add("a\x00b\xff\r\n")
	f.Fuzz(func(t *testing.T, script string) {
		a := Analyze(script)
		checkConsistent(t, script, a)
		checkUnions(t, script, a)
		if once, again := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", Analyze(script)); once != again {
			t.Errorf("%q: two answers\n%s\n%s", script, once, again)
		}
		if a.ReadOnly {
			if b := Analyze(script + "\ntouch x"); b.ReadOnly {
				t.Errorf("%q hides the line after it", script)
			}
			if b := Analyze("touch x\n" + script); b.ReadOnly {
				t.Errorf("%q hides the line before it", script)
			}
		}
	})
}

// environs are environments in which scripts are run: values that are flags, patterns, several words, commands or devices.
var environs = []map[string]string{
	nil,
	{"f": "a.txt", "x": "-delete", "dir": "sub", "F": "b c.txt", "name": "--output=out", "out": "-o"},
	{"f": "*.txt", "x": "$(touch out)", "dir": "sub;touch out", "F": "a\ntouch out", "name": "`touch out`", "out": "-exec touch out {} +"},
}

// FuzzReadOnlyChangesNothing runs what was judged read-only, of scripts that a
// writer makes of the bytes, with the real bash in a cell: whoever reads a
// script differently from bash is found out here.
func FuzzReadOnlyChangesNothing(f *testing.F) {
	c := openCell(f)
	for _, bytes := range scripted(seeds) {
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { checkHarmless(t, c, scriptOf(bytes)) })
}

// seeds are the scripts that the fuzzing begins with, which every run of the tests tries.
const seeds = 40

// TestReadOnlyChangesNothing does so with more scripts, the same ones every time, and with the commands that
// are labelled read-only: a third of them, another one every day, or with TOOLD_ALL all.
func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	c := openCell(t)
	for _, bytes := range scripted(100)[seeds:] {
		checkHarmless(t, c, scriptOf(bytes))
	}
	all, day, least := os.Getenv("TOOLD_ALL") != "", time.Now().YearDay(), 150
	if all {
		least = 500
	}
	for _, file := range labelledFiles {
		for n, command := range readLabelled(t, file) {
			if !all && (n+day)%3 != 0 {
				continue
			}
			slow := func(c Command) bool {
				return listed(endless, c.Name) || c.Name == "find" && slices.Contains(c.Reads, "/")
			}
			if !slices.ContainsFunc(Analyze(command.Command).Commands, slow) {
				checkHarmless(t, c, command.Command)
			}
		}
	}
	if c.ran < least {
		t.Errorf("only %d scripts were judged read-only", c.ran)
	}
}

// scripted are texts of random bytes, the same ones every time.
func scripted(n int) (all [][]byte) {
	r := rand.New(rand.NewPCG(7, 11))
	for range n {
		bytes := make([]byte, 8+r.IntN(60))
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		all = append(all, bytes)
	}
	return all
}

func checkHarmless(t *testing.T, c *cell, script string) {
	t.Helper()
	for i, environ := range environs {
		if i == 0 || strings.Contains(script, "$") {
			checkHarmlessIn(t, c, script, environ)
		}
	}
}

func checkHarmlessIn(t *testing.T, c *cell, script string, environ map[string]string) {
	t.Helper()
	a := AnalyzeIn(script, Setting{Environ: environ})
	checkConsistent(t, script, a)
	if !a.ReadOnly {
		return
	}
	if len(a.Steered(environ)) > 0 {
		return
	}
	found := c.run(t, script, environ)
	if a.Concurrent && found.Dir != "" {
		t.Errorf("%q with %q was judged concurrent, and ended in %s", script, environ, found.Dir)
	}
	if len(found.Changes) > 0 {
		t.Errorf("%q with %q was judged read-only, and changed:\n%s", script, environ, strings.Join(found.Changes, "\n"))
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for name, script := range map[string]string{
		"plain100": `grep -rn --include='*.go' "func main" ./cmd ./internal ./tools 2>/dev/null | sort -u | head -n 20 | cat`,
		"git100":   `git log --oneline --graph --decorate -n 20 --since='2 weeks ago' --author=me -- src/main.go src/util.go`,
		"nested":   `for f in $(find . -name '*.go'); do if [ -f "$f" ]; then timeout 5 bash -c 'wc -l "$0" | sed -n 1p' "$f"; fi; done`,
		"ls":       `ls -la`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Analyze(script)
			}
		})
	}
}
