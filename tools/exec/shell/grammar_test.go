package shell

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// A writer makes scripts out of bytes: mostly of harmless programs of the
// table, put together as people and models do, with a trap here and there. The
// same bytes give the same script, and few bytes a short one.
type writer struct {
	bytes []byte
	depth int
}

// pick is a number below n; 0 when the bytes have run out.
func (w *writer) pick(n int) int {
	if len(w.bytes) == 0 {
		return 0
	}
	b := w.bytes[0]
	w.bytes = w.bytes[1:]
	return int(b) % n
}

func (w *writer) of(list []string) string {
	i := w.pick(len(list))
	if len(list) > 256 { // one byte does not reach all
		i = (i + 256*w.pick(1+len(list)/256)) % len(list)
	}
	return list[i]
}

// either is one of a list, or now and then one of the traps.
func (w *writer) either(list, traps []string) string {
	if w.pick(40) == 39 {
		return w.of(traps)
	}
	return w.of(list)
}

// scriptOf is the script that the bytes stand for.
func scriptOf(bytes []byte) string {
	w := &writer{bytes: bytes}
	if w.pick(8) == 7 {
		return w.soup()
	}
	return w.list()
}

// soup puts pieces together without any grammar.
func (w *writer) soup() string {
	var b strings.Builder
	for range 3 + w.pick(12) {
		b.WriteString(w.of(pieces))
	}
	return b.String()
}

func (w *writer) list() string {
	text := w.statement()
	for range w.pick(3) {
		text += w.either([]string{"; ", " && ", " || ", " | ", "\n", " |& "}, []string{" & ", " ;; "}) + w.statement()
	}
	return text
}

// nested is a list one level further down, and something short when that is
// deep enough.
func (w *writer) nested() string {
	if w.depth >= 3 {
		return "echo a"
	}
	w.depth++
	text := w.list()
	w.depth--
	return text
}

var (
	variables    = []string{"x", "f", "line", "_"}
	badVariables = []string{"PATH", "IFS", "'a[$(touch out)]'"}
	tests        = []string{"-f a.txt", "-n $x", "$x == a*", "a =~ ^a$", "-d sub && ! -e out", "$# -eq 0", "a.txt -nt list", "-v x", "! -s list || -x sub"}
	badTests     = []string{"$x -eq 1", "-v 'x[$(touch out)]'", "$(touch out) == a", "-R x", "a -lt 1"}
)

func (w *writer) statement() string {
	switch w.pick(20) {
	case 12:
		return w.either([]string{"x=", "f=", "readonly line="}, []string{"x+=", "declare x="}) + w.of([]string{"a.txt", "sub", "$x", "\"$x/a.txt\"", "-o", "'a b'", "$(pwd)"}) + w.of([]string{"; ", " && ", "\n"}) + w.nested()
	case 13:
		return "if " + w.nested() + "; then " + w.nested() + "; else " + w.nested() + "; fi"
	case 14:
		return "for " + w.either(variables, badVariables) + " in " + w.words(3) + "; do " + w.nested() + "; done" + w.redirect()
	case 15:
		return w.command() + " | while " + w.of([]string{"", "IFS= ", "IFS=, "}) + "read " + w.either([]string{"-r ", "", "-d '' ", "-n 1 "}, []string{"-a ", "-u 3 ", "-e "}) +
			w.either(variables, badVariables) + "; do " + w.nested() + "; done"
	case 16:
		return "case " + w.word() + " in " + w.either([]string{"a*", "x|y", "*"}, []string{"$(touch out)"}) + ") " + w.nested() + ";; esac"
	case 17:
		return w.of([]string{"(", "( "}) + w.nested() + ")" + w.redirect()
	case 18:
		return w.of([]string{"{ ", "! { ", "time { "}) + w.nested() + "; }" + w.redirect()
	case 19:
		return "[[ " + w.either(tests, badTests) + " ]]"
	}
	return w.either([]string{"", "", "", "LANG=C ", "TZ=UTC "}, []string{"x=out ", "PATH=. ", "GIT_PAGER='touch out' ", "HOME=. "}) +
		w.either([]string{"", "", "", "", "timeout 1 ", "nice ", "command ", "stdbuf -oL ", "nice -n 1 timeout -k 1 1 ", "xargs "}, []string{"nohup ", "env ", "builtin ", "exec "}) +
		w.command() + w.redirect()
}

// command is a program with arguments that its list of flags knows, mostly.
func (w *writer) command() string {
	switch w.pick(14) {
	case 0:
		return w.either([]string{"echo ", "printf '%s\\n' ", "cat ", "test -n ", "true ", "cd ", "set -e ", "wc ", "head "},
			[]string{"touch ", "tee ", "rm -f ", "sort -o ", "eval ", "bash -c ", "trap ", "printf -v "}) + w.words(3)
	case 1:
		return w.of([]string{"bash -c ", "sh -c ", "eval ", "bash -ec "}) + quoted(w.nested())
	case 2, 3:
		return "sed " + w.either([]string{"", "-n ", "-E ", "-s ", "-z ", "-e p -e "}, []string{"-i ", "-ni ", "-f "}) + quoted(w.text(sedPieces, badSed)) + " " + w.words(2)
	case 4, 5:
		return "awk " + w.either([]string{"", "-F, ", "-v x=1 "}, []string{"-f ", "-i inplace "}) + quoted(w.text(awkPieces, badAwk)) + " " + w.words(2)
	case 6:
		return "find . " + w.text(findPieces, badFind)
	case 7, 8:
		sub := w.either(gitNames, []string{"commit", "add", "gc", "fetch", "checkout", "describe", "hash-object"})
		p, ok := gitPrograms[sub]
		if !ok {
			p = gitLog
		}
		return "git " + w.either([]string{"", "--no-pager "}, []string{"-C sub ", "-c core.pager=./pwn "}) + sub + w.arguments(p, gitWords)
	}
	name := w.of(installed)
	p, _ := lookup(name)
	return name + w.arguments(p, nil)
}

func (w *writer) text(pieces, traps []string) string {
	var b strings.Builder
	for range 1 + w.pick(6) {
		b.WriteString(w.either(pieces, traps))
	}
	return b.String()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (w *writer) arguments(p *program, operands []string) string {
	text := ""
	for range w.pick(5) {
		switch w.pick(4) {
		case 0, 1:
			text += " " + w.flag(p)
		case 2:
			if operands != nil {
				text += " " + w.of(operands)
				continue
			}
			text += " " + w.word()
		default:
			text += " " + w.word()
		}
	}
	return text
}

var values = []string{"1", "a", "a.txt", "2", "out", "name", "-o", "%s", ".", ",", "+1", "$x", "\"$x\"", "=out", "'a b'"}

// flag is one of the program, with a value if it takes one; now and then one
// that it refuses, or any letter.
func (w *writer) flag(p *program) string {
	flags := strings.Fields(p.flags)
	refused := slices.Sorted(maps.Keys(p.refused))
	switch w.pick(40) {
	case 38:
		flags = append(refused, "-o:", "--output:")
	case 39:
		return "-" + string(rune('a'+w.pick(26)))
	}
	if len(flags) == 0 {
		return ""
	}
	name := w.of(flags)
	bare := strings.TrimRight(name, ":?<")
	if bare == name && !strings.HasPrefix(name, "--") && len(name) > 2 {
		i := 1 + w.pick(len(name)-1)
		return "-" + name[i:min(len(name), i+1+w.pick(2))]
	}
	if bare == name && w.pick(4) < 3 || strings.HasSuffix(name, "?") && w.pick(2) == 0 {
		return bare
	}
	if strings.HasPrefix(bare, "--") {
		return bare[:len(bare)-w.pick(2)*w.pick(3)] + w.of([]string{"=", " "}) + w.of(values)
	}
	return bare + w.of([]string{"", " "}) + w.of(values)
}

var operands = []string{
	"a.txt", "sub", "'b c.txt'", "list", ".", "sub/x.go", "*", "*.txt", "./*", "-- *", "out", "$x", "\"$x\"", "$HOME", "~", "{a,b}", "{1..3}",
	"'$(touch out)'", "\"a b\"", "-n", "''", "/dev/null", "bin.dat", "a=b", "'{print}'", "/etc/passwd", "../tree", "$((1+2))", "${x:-a}", "${#x}",
}

func (w *writer) word() string {
	switch w.pick(16) {
	case 13:
		return "\"$(" + w.nested() + ")\""
	case 14:
		return "$(" + w.nested() + ")"
	case 15:
		return "<(" + w.nested() + ")"
	}
	return w.either(operands, []string{
		"${x@P}", "${x:=out}", "${x:-<(touch out)}", "$((x))", "${x[$(touch out)]}", "\"${x/a/$(touch out)}\"", "${!x}", ">(touch out)", "`touch out`", "[\"-\"]*", "['-']?elete", "[a\"]\"-]*",
	})
}

func (w *writer) words(most int) string {
	text := w.word()
	for range w.pick(most) {
		text += " " + w.word()
	}
	return text
}

func (w *writer) redirect() string {
	return w.either([]string{
		"", "", "", "", "", "", " 2>/dev/null", " 2>&1", " >/dev/null", " < list", " <<< \"$x\"", " <<EOF\na $x\nEOF\n", " <<'EOF'\n$(touch out)\nEOF\n", " < <(echo a)", " >&2",
	}, []string{" > out", " 2>> out", " <<EOF\n$(touch out)\nEOF\n", " &> out", " 3<> out", " >& \"$x\""})
}

var (
	sedPieces = []string{
		"p", "s/a/b/", ";", "1", "$", "/a/", "2,3", "d", "{p}", "\n", "g", "y/a/b/", "!", "a x", "1i x\n", "#n", "q", "=", "n;", "b", ":a", "/[/]/", "s/[a]/b/", "s,a,b,", "I", "s/a/b/gp",
	}
	badSed    = []string{"w out", "e", "e touch out", "s/.*/touch out/e", "s,a,b,w out\n", "i\\", "c\\\n", "\\", "r list", "R list", "W out", "[", "]", "{", "}"}
	awkPieces = []string{
		"{print}", "NR==1", "/a/", "{print $1}", "BEGIN{x=1}", "END{print NR}", ";", "\n", "{gsub(/a/,\"b\")}", "$0~/x/", "length>1", "{x[$1]++}", "&&", "!", "{printf \"%s\", $1}", "# a\n", "(1)", "x/2",
	}
	badAwk = []string{
		"print \"touch out\" | \"sh\"", " > \"out\"", "system(\"touch out\")", "getline", "close(", "\\", "/", "\"", "{", "}", "@f(", "func f(){}", "{print > \"out\"}", "[", ">> x", "return ",
	}
	findPieces = []string{
		"-name a.txt ", "-type f ", "-print ", "-o ", "! ", "-maxdepth 1 ", "-newer list ", "-printf %p ", "\\( -true ", "\\) ", "-name -delete ", "-size +1 ", "-quit ", "-samefile a.txt ",
		"-ls ", "-regex .*a ", "sub ", "-name \"$x\" ", "-empty ",
	}
	badFind  = []string{"-exec touch out ';' ", "-delete ", "-fprint out ", "-ok touch out ';' ", "-fls out ", "{-delete,-print} ", "* ", "$x ", "\"$x\" ", "-files0-from list "}
	gitWords = []string{
		"HEAD", "a.txt", "--", "HEAD~1", "main", "sub", "HEAD:a.txt", "new", "list", "show", "v1", "origin", "core.pager", "user.name", "x", "@{0}", "stash@{0}", "main..HEAD", "refs/heads/*", "HEAD^{tree}",
	}
	gitNames = slices.Sorted(maps.Keys(gitPrograms))
)

// endless programs run until they are stopped, or take long, which costs a run
// its time.
const endless = " sleep yes vmstat iostat tail free pip pip3 "

// installed are the programs of the table that are here, in the order of their
// names, to be found in the system's own directories.
var installed = func() (names []string) {
	for _, table := range []map[string]*program{textPrograms, filePrograms, systemPrograms, systemReaders, versionPrograms} {
		for name := range table {
			path, err := exec.LookPath(name)
			if err == nil && !listed(endless, name) && (strings.HasPrefix(path, "/usr/bin/") || strings.HasPrefix(path, "/bin/")) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}()

// pieces of a soup. No piece holds a slash, and what changes anything does so
// in the working directory.
var pieces = []string{
	"touch P", "touch P", "touch P", "w P", "{print > \"P\"}", "s/a/", "\n", "\n", "\\\n", "\\", "'", "\"", "`", "$(", ")", "(", "{ ", "; }", "#", " # ",
	";", " | ", " && ", " || ", "echo ", "echo a", "cat <<EOF\n", "cat <<'EOF'\n", "cat <<-EOF\n", "\nEOF\n", "EOF", "\t", "$'", "\\'",
	"\\\"", "${x:-", "}", "${x#", "$((", "))", "[[ ", " ]]", "[ ", " ]", "case x in x) ", ";; esac", "if true; then ", "fi",
	"for i in a; do ", "; done", "<(", "<<<", "2>&1", "&", "!", "a", "=", "{a,b}", "$x", "\"$x\"", "*", "~", "<", " ", " ", "true", "$\"",
	"\\`", "[a]", "printf %s", "x", "-eq 1", "=~ ", "\\\\", "eval ", "bash -c ", "sh -c ", "xargs ", "find . ", "sed ", "awk ", "env ", "1",
	"while read -r l; do ", "time ", "!(", "@(", "?(", "|&", ">&2", "&>", "$[", "]", ",", "..", "%n", "$\\\n", "<\\\n", "E\\\n", "\t\\\n", "$", "(touch P)", "{x:=P}", "${x/", "< <(", "set -e", ">&198", "read -d '' x",
}
