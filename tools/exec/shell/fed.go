// Commands that run what they read, or a text among their words: shells without
// -c, source, trap and their like, and xargs, whose words come from what it
// reads. What they run is listed only for deny and ask rules.

package shell

import (
	"slices"
	"strings"
)

// runsFed lists what a command runs when it takes what it reads for a script.
// Nothing: it reads a file, or what the script itself is given.
func (a *judge) runsFed(via string, f *feed) {
	if f == nil || f.walked {
		return
	}
	f.walked = true
	text, whole := a.ask(f)
	if !whole {
		a.unknownScript()
	}
	if text != "" {
		a.deniedText(via, text)
	}
}

// texts lists the scripts that a builtin keeps for later or runs here, and what
// programs run that start a shell when no command is named.
func (a *judge) texts(name string, args []Word) {
	switch name {
	case "hash":
		a.renames(args)
	case "bind", "enable":
		a.mayRun(args)
	case "source", ".":
		if len(args) > 0 {
			a.runsFed(name, a.contents(args[0]))
		}
	case "trap":
		if len(args) > 1 && args[0].is("--") {
			args = args[1:]
		}
		if len(args) > 1 && !args[0].dashed() {
			a.keptText(name, args[0], args[0].Text)
		}
	case "alias":
		for _, w := range args {
			if _, value, ok := strings.Cut(w.Text, "="); ok {
				a.keptText(name, w, value)
			}
		}
	case "sudo", "doas":
		for _, w := range args {
			if w.Text == "-s" || w.Text == "-i" || w.Text == "--shell" || w.Text == "--login" {
				a.runsFed(name, a.stdin)
			}
		}
	default:
		a.runsFed(name, a.stdin)
	}
}

// keptText lists a text that is run later.
func (a *judge) keptText(name string, w Word, text string) {
	switch {
	case !w.Literal:
		a.unknownScript()
	case text != "":
		before := len(a.out.Commands)
		a.deniedText(name, text)
		a.anywhere(before)
	}
}

// maxFed bounds how many of the words that xargs reads are tried one by one.
const maxFed = 16

// xargsFed lists the commands that xargs makes of what it reads. quiet: what it
// runs is read-only, whatever that is.
func (a *judge) xargsFed(args []Word, quiet bool) {
	if len(args) > 0 && args[len(args)-1].input {
		return
	}
	template, mark := xargsTemplate(args)
	if len(template) == 0 {
		return
	}
	f := a.stdin
	if f == nil || slices.ContainsFunc(args[:len(args)-len(template)], namesFile) {
		f = &feed{asked: true} // a file, or what the script itself is given
	}
	text, whole := a.ask(f)
	if !whole {
		a.openTemplate(template, mark, quiet)
		return
	}
	if mark != "" {
		for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
			switch words := filled(template, mark, Word{Text: line, Literal: true}); {
			case i >= maxFed:
			case quiet:
				a.filledIn(words)
			default:
				a.denied("xargs", words)
			}
		}
		return
	}
	read := literalWords(withoutQuotes.Replace(text))
	if quiet { // and so it is with these words, or else it should not be
		a.filledIn(append(slices.Clip(template), read...))
		return
	}
	a.denied("xargs", append(slices.Clip(template), read...))
	for i := 0; len(read) > 1 && i < min(len(read), maxFed); i++ {
		a.denied("xargs", append(slices.Clip(template), read[i]))
	}
}

// namesFile: a flag of xargs that names another file to read.
func namesFile(w Word) bool {
	return !w.Literal || strings.HasPrefix(w.Text, "-a") || strings.HasPrefix(w.Text, "--a")
}

// filledIn judges a command with the words that xargs reads.
func (a *judge) filledIn(words []Word) {
	a.beside(func() { a.inner("xargs", words) })
}

var withoutQuotes = strings.NewReplacer(`'`, "", `"`, "", `\`, "", "\x00", " ")

// xargsTemplate is the command among the words of xargs, and the mark in it that
// is replaced, if one is.
func xargsTemplate(args []Word) (template []Word, mark string) {
	for i := 0; i < len(args); i++ {
		flag := args[i].Text
		switch {
		case flag == "--":
			return args[i+1:], mark
		case !strings.HasPrefix(flag, "-"):
			return args[i:], mark
		case strings.HasPrefix(flag, "-I"), strings.HasPrefix(flag, "-i"), strings.HasPrefix(flag, "--replace"), strings.HasPrefix(flag, "-J"):
			_, long, _ := strings.Cut(flag, "=")
			mark = "{}"
			switch short := flag[min(2, len(flag)):]; {
			case long != "":
				mark = long
			case flag[1] == 'I' && short == "", flag == "-J":
				if i++; i < len(args) {
					mark = args[i].Text
				}
			case flag[1] != '-' && short != "":
				mark = short
			}
		case xargsSpec.takes(flag) == aValue:
			i++
		}
	}
	return nil, mark
}

// filled is a template with the mark replaced.
func filled(template []Word, mark string, by Word) []Word {
	words, _ := put(template, mark, func(w Word) Word {
		if by.Literal && w.Literal {
			return literalWord(strings.ReplaceAll(w.Text, mark, by.Text))
		}
		return Word{Text: w.Text, shape: one}
	})
	return words
}

// put returns the words with others in the place of those that hold the mark, and whether any does.
func put(words []Word, mark string, by func(w Word) Word) (filled []Word, found bool) {
	for _, w := range words {
		if strings.Contains(w.Text, mark) {
			w, found = by(w), true
		}
		filled = append(filled, w)
	}
	return filled, found
}

// openTemplate lists a command some of whose words are read, so that rules treat it as
// more than what is written.
func (a *judge) openTemplate(template []Word, mark string, quiet bool) {
	words := append(slices.Clip(template), Word{Text: xargsInput, shape: many})
	if mark != "" {
		words = filled(template, mark, Word{})
	}
	if !quiet {
		a.denied("xargs", words)
		return
	}
	outer := a.enter("xargs")
	a.scope.denyOnly = true
	a.add(Command{Name: words[0].Text, Words: words, Text: Command{Words: words}.String(), Literal: words[0].Literal, ReadOnly: true})
	a.scope = outer
}

// xargsInput stands for the words that xargs reads.
const xargsInput = "<what xargs reads>"
