package shell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func FuzzAnalyze(f *testing.F) {
	for _, file := range []string{"testdata/commands.jsonl", "testdata/traps.jsonl"} {
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

// pieces are put together at random. The only program among them that changes
// anything is touch, and no piece holds a slash, so that whatever a script
// does, it does in its own empty directory.
var pieces = []string{
	"touch P", "touch P", "touch P", "w P", "{print > \"P\"}", "s/a/", "\n", "\n", "\\\n", "\\", "'", "\"", "`", "$(", ")", "(", "{ ", "; }", "#", " # ",
	";", " | ", " && ", " || ", "echo ", "echo a", "cat <<EOF\n", "cat <<'EOF'\n", "cat <<-EOF\n", "\nEOF\n", "EOF", "\t", "$'", "\\'",
	"\\\"", "${x:-", "}", "${x#", "$((", "))", "[[ ", " ]]", "[ ", " ]", "case x in x) ", ";; esac", "if true; then ", "fi",
	"for i in a; do ", "; done", "<(", "<<<", "2>&1", "&", "!", "a", "=", "{a,b}", "$x", "\"$x\"", "*", "~", "<", " ", " ", "true", "$\"",
	"\\`", "[a]", "printf %s", "x", "-eq 1", "=~ ", "\\\\", "eval ", "bash -c ", "sh -c ", "xargs ", "find . ", "sed ", "awk ", "env ", "1",
	"while read -r l; do ", "time ", "!(", "@(", "?(", "|&", ">&2", "&>", "$[", "]", ",", "..", "%n",
}

// TestReadOnlyChangesNothing runs what was judged read-only with the real
// bash: whoever reads a script differently from bash is found out here. The
// seed is fixed, so that it is the same scripts every time.
func TestReadOnlyChangesNothing(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	r := rand.New(rand.NewPCG(7, 11))
	dir := t.TempDir()
	for ran := 0; ran < 150; {
		var b strings.Builder
		for range 3 + r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		script := b.String()
		if !strings.Contains(script, "P") || !Analyze(script).ReadOnly {
			continue
		}
		ran++
		runAlone(t, bash, dir, script)
	}
}

func runAlone(t *testing.T, bash, dir, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--noprofile", "--norc", "-c", script)
	cmd.Dir = dir
	cmd.Env = ReadOnlyEnv(nil, []string{dir})
	// Most scripts are nonsense and fail; only what they leave behind matters.
	_ = cmd.Run()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Fatalf("%q was judged read-only and made %v", script, entries)
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
