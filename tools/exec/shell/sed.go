// sed: its flags and operands. Source: sed(1) of GNU sed 4.9. sed_script.go reads
// its script.

package shell

import (
	"slices"
	"strings"
)

var sedFlags = &program{
	flags: "-nErsuz -e: -i? -l: --quiet --silent --debug --expression: --in-place? --line-length: --null-data --zero-terminated --separate" +
		" --unbuffered --regexp-extended --posix --sandbox --help --version",
	refused: each(map[string]string{
		"-f --file":         "reads a script from a file",
		"--follow-symlinks": "belongs to -i",
		"--binary":          "is not for this system",
	}),
	operands: textOperands, abbrev: true,
}

func (a *judge) sed(args []Word) string {
	use, why := sedFlags.parse(args)
	if why != "" {
		if a.scriptElsewhere(args) && a.stdin != nil {
			text, _ := a.ask(a.stdin)
			a.sedDoes([]Word{literalWord(text)})
		}
		return why
	}
	parts, named := use.values("-e --expression"), use.operands
	if parts == nil && !use.has("--help --version") {
		if len(named) == 0 {
			return "it has no script"
		}
		parts, named = named[:1], named[1:]
	}
	if why := sedScripts(parts); why != "" {
		a.sedDoes(parts)
		return why
	}
	if suffixes := use.values("-i --in-place"); len(suffixes) > 0 {
		a.sedInPlace(suffixes[0], named)
		return changesFiles
	}
	for _, w := range named {
		if why := a.readOperand(w); why != "" {
			return why
		}
	}
	return ""
}

// scriptElsewhere reports whether the script of sed or awk is in a file, which may be what it reads, and notes what it may
// run then.
func (a *judge) scriptElsewhere(args []Word) bool {
	is := slices.ContainsFunc(args, func(w Word) bool {
		return strings.HasPrefix(w.Text, "--f") || w.dashed() && !strings.HasPrefix(w.Text, "--") && strings.ContainsAny(w.Text, "fEi")
	})
	if is {
		a.mayRun(args)
	}
	return is
}

// sedScripts judges a script in parts. One with variables may be the only one, if all
// that it may be is known.
func sedScripts(parts []Word) (why string) {
	if !slices.ContainsFunc(parts, func(w Word) bool { return !w.Literal }) {
		return sedScript(sedLines(parts))
	}
	if w := parts[0]; len(parts) > 1 || w.texts == nil || w.holds() {
		return "its script is only known when it runs"
	}
	for _, t := range parts[0].texts {
		if why := sedScript(t.prefix); why != "" {
			return why
		}
	}
	return ""
}

// sedLines are the parts of a script together.
func sedLines(parts []Word) string {
	lines := make([]string, len(parts))
	for i, w := range parts {
		lines[i] = w.Text
	}
	return strings.Join(lines, "\n")
}

// sedInPlace lists the files that -i changes and, with a suffix, the copies of
// what they were. A suffix can also name another directory.
func (a *listing) sedInPlace(suffix Word, named []Word) {
	plain := suffix.Literal && !strings.ContainsAny(suffix.Text, "*/")
	for _, w := range named {
		a.writeOperand(Replaces, w)
		switch {
		case !plain || suffix.Text != "" && !w.Literal:
			a.unlisted()
		case suffix.Text != "":
			a.write(Places, w.path+suffix.Text)
		}
	}
}

// sedDoes lists what a script that is refused reads, writes and runs by name.
func (a *judge) sedDoes(parts []Word) {
	r := &sedReader{cursor: cursor{s: sedLines(parts)}, does: true}
	for r.next() {
		r.command()
		if r.why != "" { // where it stands is not certain: on with the next line
			r.why = ""
			r.line()
		}
	}
	for _, name := range r.reads {
		a.read(literalWord(name).path)
	}
	for _, name := range r.writes {
		a.write(Fills, literalWord(name).path)
	}
	for _, text := range r.starts {
		a.deniedText("sed", text)
	}
	if r.runsInput {
		a.unknownScript()
	}
}
