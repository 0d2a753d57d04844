package shell

import (
	"errors"
	"math/rand/v2"
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
	"pipes to xargs":     {"ls ", "| xargs do ", ""},
	"written operands":   {"", "rm -rf ", ""},
	"positional":         {"", "set -- a b; ", ""},
	"own variables":      {"", "IFS=, ", ""},
	"open subscripts":    {"", "a[", ""},
	"open expansions":    {"", "${a[", ""},
}

func involved(parts [3]string) string { return ofLength(9_900, parts) }

// ofLength repeats the middle part until the script has about so many bytes.
func ofLength(bytes int, parts [3]string) string {
	n := (bytes - len(parts[0]) - len(parts[2])) / len(parts[1])
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

// TestInvolvedLong: a text that is over the length of a script, and still parsed so that deny rules see its commands, is
// walked no further than a script, and one that is nested without end is not parsed.
func TestInvolvedLong(t *testing.T) {
	for name, parts := range repeated {
		script := ofLength(maxParsed-100, parts)
		if a := Analyze(script); a.Walked > maxWords+wordsOfFailure*maxParsed || a.Err == nil || a.ReadOnly {
			t.Errorf("%s: %v, read-only %v after %d words", name, a.Err, a.ReadOnly, a.Walked)
		}
	}
	for _, opener := range []string{"a[", "${a[", "${x:", "{ ", "if ", "if ! ", "while ", "until ", "function f { ", "for i in ", "case x in ", "select i in ", "(", "$["} {
		if a := Analyze(ofLength(maxParsed-100, [3]string{"", opener, ""})); !errors.Is(a.Err, ErrTooDeep) && !errors.Is(a.Err, ErrTooLong) || len(a.Commands) > 0 {
			t.Errorf("%q: %v after %d words, %d commands", opener, a.Err, a.Walked, len(a.Commands))
		}
	}
}

// fragments are what scripts are put together from that look for the most expensive ones.
var fragments = []string{
	"$(", ")", "`", "\\`", "{", "}", "{a,b}", "{1..60}", "{a,b}{c,d}", "; ", "\n", " | ", " && ", " || ", " & ", "<<E\n",
	"\nE\n", "<<<\"", "\" ", "' ", "'", "\"", "$", "${x:-", "${x//a/", "${x", "}", "${!x}", "${a[", "]}", "a[", "]=1 ",
	"$((", "))", "((", "x=aa; ", "x=$x$x; ", "x=\"$x$x\"; ", "a+=b ", "local x=", "declare -A m ", "export A=b ", "f() { ",
	"f; ", "f & ", "}; ", "if ", "then ", "fi; ", "while ", "do ", "done; ", "for i in ", "case x in ", "a) ", ";; ",
	"esac; ", "[[ ", " ]] ", "[ ", " ] ", "env ", "sudo -u x ", "xargs ", "xargs -n1 sh -c '", "bash -c '", "bash -c \"",
	"eval ", "eval '", "find . -exec ", " \\; ", " {} + ", "git -c alias.x='!", "git -c a.b=c ", "ls ", "echo ", "cat ",
	"rm -rf ", "awk '{", "}' ", "sed -n '1p;", "s/a/b/e;", "printf '%s' ", "parallel ", "::: ", "trap '", "EXIT; ",
	"cd x; ", "cd $x; ", "test -f ", "-name ", "a* ", "?? ", "[a-z]* ", "~ ", "/etc/passwd ", "> x ", ">> x ", "2>&1 ",
	"< x ", "<(", ">(", "# c\n", "\\\n", "source x; ", ". ./x ", "exec 3<x; ", "read x; ", "set -- a b; ", "shift; ",
	"alias a='b'; ", "shopt -s expand_aliases\n", "coproc ", "time ", "! ", "nohup ", "timeout 5 ", "docker exec c ",
	"ssh h ", "make -f - ", "python -c '", "jq '", "tar cf x --to-command='", "printf -v x ", "mapfile a ", "$'\\x41' ",
	"$@ ", "$* ", "$1 ", "${@:1:2} ", "${#x} ", "${x%%a*} ", "@(a|b) ", "a=(b c) ", "a=( ", "$x ", "$i ", "|& ", "| sh ",
	"| bash ", "| xargs ", "| tee x ", "tee >(", "git diff ", "git submodule foreach '", "sh -c \"$(", "IFS=, ", "PATH=x ",
	"GIT_EDITOR='", "select i in ", "until ", "function f { ", "return; ", "exit 1; ", "x ", "y ", "\\\"", "\\'", "\\\\",
}

// TestInvolvedGenerated: what is repeated of any fragments takes no more memory than an analysis may, which grows with its
// time. The fragments are the same every time.
func TestInvolvedGenerated(t *testing.T) {
	const most = 64 << 20
	r := rand.New(rand.NewPCG(3, 5))
	some := func(n int) (text string) {
		for range n {
			text += fragments[r.IntN(len(fragments))]
		}
		return text
	}
	for range 300 {
		script := involved([3]string{some(r.IntN(4)), some(1 + r.IntN(4)), some(r.IntN(3))})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := Analyze(script)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most || a.Walked > maxWords+wordsOfFailure*maxParsed {
			t.Errorf("%d words and %d bytes of memory for %q", a.Walked, took, script[:min(len(script), 200)])
		}
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
