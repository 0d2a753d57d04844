package shell

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// repeated are the parts of scripts below 10,000 characters that took longest: what
// stands in front, what is repeated, and what stands behind.
var repeated = map[string][3]string{
	"find in find":       {"find . ", "-exec find . ", ""},
	"find with results":  {"find . ", "-exec ls {} + ", ""},
	"many starts":        {"xargs ", "-exec find . {} + ", ""},
	"aliases of git":     {"git ", "-c alias.x=y ", ""},
	"aliases, nested":    {"git ", "git -c alias.x=y ", ""},
	"wrappers":           {"", "env ", "rm x"},
	"odd flags":          {"", "sudo -x ", "rm x"},
	"optional operands":  {"", "chrt ", "rm x"},
	"xargs":              {"", "xargs -n1 ", "rm"},
	"flags of a shell":   {"bash -c '", "-f a ", "'"},
	"shells in wrappers": {"xargs xargs xargs xargs xargs xargs sh -c '", "ls\n", "'"},
	"open in wrappers":   {"xargs xargs xargs xargs xargs xargs sh -c '", "if ", "'"},
	"pipes that double":  {"echo a ", "| { cat; cat; } ", "| sh"},
	"values that double": {"x=aa; ", `x="$x$x"; `, `ls "$x"`},
	"assignments":        {"", "a=$a$b; ", "ls $a"},
	"braces":             {"ls ", "{1..60} ", ""},
	"braces in a loop":   {"for i in ", "{1..60} ", "; do ls $i; done"},
	"parallel":           {"parallel ls ::: ", "git:::x ", ""},
	"functions":          {"f() { ", "f; g; ", "}; f; f; f"},
	"functions in one":   {"", "f() { f | f & }; f; ", ""},
	"comments":           {"sh -c '", "# a\\\n", "ls'"},
	"printf":             {"printf '" + strings.Repeat("a", 4000) + "%s' ", "a ", "| sh"},
	"one text for all":   {"cat <<E | sh\n", "f;", "\nE\n"},
	"fd":                 {"fd ", "-x fd a \\; ", ""},
	"traps":              {"", "trap 'eval ls' EXIT; ", ""},
	"texts for shells":   {"", "echo 'echo ls | sh' | sh; ", ""},
}

func involved(parts [3]string) string {
	n := (9_900 - len(parts[0]) - len(parts[2])) / len(parts[1])
	return parts[0] + strings.Repeat(parts[1], n) + parts[2]
}

// TestInvolved: whatever is repeated, an analysis counts no more words than its
// bound and one text over it, lists no more than it has counted, and takes no more
// memory than goes with that.
func TestInvolved(t *testing.T) {
	const most = 64 << 20
	for name, parts := range repeated {
		script := involved(parts)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := Analyze(script)
		runtime.ReadMemStats(&after)
		if a.Walked == 0 || a.Walked > maxWords+wordsOfFailure*maxParsed {
			t.Errorf("%s: %d words walked", name, a.Walked)
		}
		if a.Walked > maxWords && (a.Err == nil || a.ReadOnly) {
			t.Errorf("%s: %v, read-only %v after %d words", name, a.Err, a.ReadOnly, a.Walked)
		}
		listed := 0
		for _, c := range a.Commands {
			listed += len(c.Words) + len(c.Fed)
			for _, text := range c.MayRun {
				listed += len(text) / bytesOfWord
			}
		}
		if listed > a.Walked {
			t.Errorf("%s: %d words listed, and %d counted", name, listed, a.Walked)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d bytes of memory", name, took)
		}
		checkConsistent(t, name, a)
		if again := Analyze(script); again.Walked != a.Walked || len(again.Commands) != len(a.Commands) {
			t.Errorf("%s: %d words, then %d", name, a.Walked, again.Walked)
		}
		if a = Analyze("rm x; " + script); !a.lists("rm x") {
			t.Errorf("%s: the command in front is not listed", name)
		}
	}
	if a := Analyze(involved(repeated["find in find"])); !errors.Is(a.Err, ErrTooInvolved) {
		t.Errorf("find in find: %v", a.Err)
	}
}

func (a Analysis) lists(command string) bool {
	for _, c := range a.Commands {
		if c.String() == command {
			return true
		}
	}
	return false
}

// TestNotInvolved: long scripts of every day stay far below the bound.
func TestNotInvolved(t *testing.T) {
	for name, parts := range map[string][3]string{
		"commands": {"", "grep -rn 'func main' ./cmd ./tools | sort -u | head -20\n", ""},
		"loops":    {"", "for f in a b c; do cat \"$f\" | sed -n 1p; done\n", ""},
		"shells":   {"", "timeout 5 bash -c 'wc -l a | sed -n 1p'; ", "ls"},
		"finds":    {"", "find . -name '*.go' -exec grep -l x {} + | xargs wc -l; ", "ls"},
		"operands": {"cat ", "some/file.txt ", ""},
		"heredoc":  {"cat > x <<'E'\n", "some text (with {braces})\n", "E\n"},
	} {
		if a := Analyze(involved(parts)); a.Err != nil && !errors.Is(a.Err, ErrTooMany) || a.Walked > maxWords/2 {
			t.Errorf("%s: %v after %d words", name, a.Err, a.Walked)
		}
	}
}

// BenchmarkAnalyzeWorst measures the scripts that cost most.
func BenchmarkAnalyzeWorst(b *testing.B) {
	for name, parts := range repeated {
		script := involved(parts)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Analyze(script)
			}
		})
	}
}
