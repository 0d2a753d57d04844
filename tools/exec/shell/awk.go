// awk: its flags and a lexer of its program that is just good enough to see
// that nothing in it can write, run, read another file or load code. Where
// the kinds of awk read a text differently, it is refused. Source: POSIX awk
// and the manual of gawk 5.2.

package shell

import (
	"regexp"
	"slices"
	"strings"
)

var awkFlags = &program{
	flags: "-F: -v: --version", operands: textOperands, ordered: true,
	refused: each(map[string]string{
		"-f --file -E --exec":    "reads a program from a file",
		"-i --include -l --load": "loads a file",
	}),
}

func (a *judge) awk(args []Word) string {
	use, why := awkFlags.parse(args)
	if why == "" && use.has("--version") && len(use.operands) == 0 {
		return ""
	}
	if why == "" && (len(use.operands) == 0 || !use.operands[0].Literal) {
		why = "its program is only known when it runs"
	}
	for _, w := range use.values("-v") {
		if steers(w.prefix) {
			why = "`" + w.Text + "` may steer what it reads"
		}
	}
	if why == "" {
		program := use.operands[0].Text
		if why = awkProgram(program); why != "" {
			a.awkDoes(program)
			if awkRuns.MatchString(program) {
				a.mayRun(args)
			}
		}
	}
	if why != "" {
		a.scriptElsewhere(args)
		return why
	}
	for _, w := range use.operands[1:] {
		if strings.HasPrefix(w.prefix, "-") && w.prefix != "-" {
			return "some kinds of awk take `" + w.Text + "` for a flag"
		}
		if steers(w.prefix) || slices.ContainsFunc(w.texts, func(t text) bool { return steers(t.prefix) }) {
			return "`" + w.Text + "` may steer what it reads"
		}
		if name, _, ok := strings.Cut(w.prefix, "="); ok && plainAwkName(name) {
			continue
		}
		if strings.HasPrefix(w.prefix, "/inet") || !w.solid && w.shape != files && w.shape != known {
			return "gawk opens connections for names such as /inet/tcp/0/host/80, and `" + w.Text + "` may be one"
		}
		if why := a.readOperand(w); why != "" {
			return why
		}
	}
	return ""
}

// awkRuns finds the ways in which awk runs another program or loads more of its own. A call by a
// variable's name (@f(x)) may be one.
var awkRuns = regexp.MustCompile(`system|\||@|load|include|extension`)

// awkNames find the texts in a program that it reads, writes or runs by name.
var awkNames = struct{ reads, writes, starts *regexp.Regexp }{
	reads:  regexp.MustCompile(`getline[^<"]*<\s*"((?:[^"\\]|\\.)*)"`),
	writes: regexp.MustCompile(`>>?\s*"((?:[^"\\]|\\.)*)"`),
	starts: regexp.MustCompile(`system\s*\(\s*"((?:[^"\\]|\\.)*)"|\|&?\s*"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|&?\s*getline`),
}

// awkDoes lists what a program that is refused names as files and commands. It may
// take other texts for such.
func (a *judge) awkDoes(program string) {
	each := func(in *regexp.Regexp, do func(name string)) {
		for _, found := range in.FindAllStringSubmatch(program, maxInputs) {
			do(strings.ReplaceAll(strings.Join(found[1:], ""), `\"`, `"`))
		}
	}
	each(awkNames.reads, func(name string) { a.read(literalWord(name).path) })
	each(awkNames.writes, func(name string) { a.write(Fills, literalWord(name).path) })
	each(awkNames.starts, func(text string) { a.deniedText("awk", text) })
}

// steers: the assignment of a variable that names files.
func steers(assign string) bool {
	return strings.HasPrefix(assign, "ARG") || strings.HasPrefix(assign, "PROCINFO") || strings.HasPrefix(assign, "ENVIRON")
}

// awkName are the characters of names and numbers.
const awkName = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."

func plainAwkName(s string) bool { return s != "" && s[0] > '9' && strings.Trim(s, awkName) == "" }

// awkWords are the keywords, and the functions that a program may call; all
// but these, followed by a parenthesis, may be a function that runs something.
// Behind those of awkOpen a slash begins a regular expression.
const (
	awkOpen  = " else do in exit return print printf case "
	awkWords = awkOpen + " BEGIN END if while for next nextfile delete switch default break continue length substr index split sub gsub match sprintf" +
		" tolower toupper sin cos atan2 exp log sqrt int rand srand gensub strftime systime mktime asort asorti and or xor lshift rshift strtonum "
)

// awkBanned write, run, load, or name files: as words they are refused
// wherever they stand.
const awkBanned = " system getline close fflush function func extension ARGV ARGC SYMTAB FUNCTAB PROCINFO include load namespace "

// An awkReader stands somewhere in a program.
type awkReader struct {
	cursor
	operand  bool // what came last ends an operand, so a slash divides
	paren    bool // what came last is a closing parenthesis
	printing bool // inside a print statement, where > redirects
}

func awkProgram(program string) (why string) {
	r := &awkReader{cursor: cursor{s: program}}
	for r.why == "" && r.pos < len(r.s) {
		r.token()
	}
	return r.why
}

func (r *awkReader) token() {
	c := r.s[r.pos]
	switch {
	case c == ' ' || c == '\t':
		r.pos++
	case c == '\n': // ends a statement, so a slash begins a regular expression
		r.pos++
		r.after(false)
	case c == '#':
		r.line()
	case c == '"':
		r.quoted('"', "string")
	case c == '/':
		r.slash()
	case strings.IndexByte(awkName, c) >= 0:
		r.name()
	default:
		r.symbol(c)
	}
}

// after records what kind of token came last.
func (r *awkReader) after(operand bool) { r.operand, r.paren = operand, false }

// quoted goes past a string or a regular expression.
func (r *awkReader) quoted(end byte, what string) {
	r.pos++
	r.past(end, end == '/', endings{
		"its program has a line break in a " + what, "its program has brackets on which kinds of awk differ", "its program has an open " + what,
	})
	r.after(true)
}

// slash divides or begins a regular expression. After a closing parenthesis
// it can be either, so what follows must be harmless both ways.
func (r *awkReader) slash() {
	if !r.operand {
		r.quoted('/', "regular expression")
		return
	}
	r.pos++
	if rest := r.s[r.pos:]; r.paren && (strings.ContainsAny(rest, `"/>|@#`) || strings.Contains(rest, "system") || strings.Contains(rest, "getline")) {
		r.refuse("its program has a slash whose meaning is not certain")
	}
	r.after(false)
}

// oneAwkToken: a name without a dot, or a number without a name behind it.
var oneAwkToken = regexp.MustCompile(`^(?i:[a-z_][a-z0-9_]*|[0-9.]+(e[0-9]*)?)$`)

func (r *awkReader) name() {
	word := r.skip(awkName)
	called := strings.HasPrefix(r.s[r.pos:], "(")
	switch {
	case !oneAwkToken.MatchString(word):
		r.refuse("its program has a number and a name without a blank between them, as in `" + shorten(word) + "`")
	case listed(awkBanned, word):
		r.refuse("its program uses `" + word + "`")
	case called && !listed(awkWords, word):
		r.refuse("its program calls `" + word + "`")
	case word == "length" && strings.HasPrefix(strings.TrimLeft(r.s[r.pos:], " \t"), "/"):
		r.refuse("its program has a slash whose meaning is not certain")
	}
	r.printing = r.printing || word == "print" || word == "printf"
	r.after(!listed(awkOpen, word))
}

func (r *awkReader) symbol(c byte) {
	r.pos++
	next := r.peek()
	switch c {
	case ';', '{', '}':
		r.printing = false
		r.after(false)
	case ')':
		r.operand, r.paren = true, true
	case ']':
		r.after(true)
	case '|':
		if next != '|' {
			r.refuse("its program has a pipe")
			return
		}
		r.pos++
		r.after(false)
	case '>':
		if r.printing || next == '>' {
			r.refuse("its program may write with >; put a comparison in front of the print")
		}
		r.after(false)
	case '+', '-':
		if next == c { // i++ / 2 divides, ++i does not end an operand
			r.pos++
			return
		}
		r.after(false)
	case '$', '(', '[', ',', '=', '!', '<', '~', '*', '%', '^', '&', '?', ':':
		r.after(false)
	case '\\':
		if next != '\n' {
			r.refuse("its program is not plain")
		}
		r.pos++
	default:
		r.refuse("its program holds `" + shorten(string(rune(c))) + "`")
	}
}
