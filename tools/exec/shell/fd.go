// fd, which runs a command on what it finds. Source: fd(1) of fd 8 to 10. What it
// does without is in the table.

package shell

import (
	"slices"
	"strings"
)

// fdRuns finds the flag that begins a command, and the words of that, up to a
// semicolon; at is -1 when there is none.
func fdRuns(args []Word) (at int, words, rest []Word) {
	for i, w := range args {
		value, runs := fdExec(w.Text)
		if !runs {
			continue
		}
		words = args[i+1:]
		if end := slices.IndexFunc(words, func(w Word) bool { return w.prefix == ";" }); end >= 0 {
			words, rest = words[:end], words[end+1:]
		}
		if value != "" {
			words = append([]Word{literalWord(value)}, words...)
		}
		return i, words, rest
	}
	return -1, nil, nil
}

// fdExec reports whether a word is one of the flags that run a command, singly or in
// a cluster, and what of the command stands in the same word.
func fdExec(text string) (value string, ok bool) {
	const values = "dteEcSoj"
	name, value, _ := strings.Cut(text, "=")
	switch {
	case strings.HasPrefix(text, "--"):
		return value, strings.HasPrefix(name, "--exe") && strings.HasPrefix("--exec-batch", name)
	case !strings.HasPrefix(text, "-"):
		return "", false
	}
	if at := strings.IndexAny(text, "xX"+values); at > 0 && strings.IndexByte("xX", text[at]) >= 0 {
		return strings.TrimPrefix(text[at+1:], "="), true
	}
	return "", false
}

// fd lists the commands of a call; ok is false when there is none. A single command,
// with flags that are understood and in the working directory, is judged; others are
// listed only for deny and ask rules. Older kinds of fd do not begin a name with a dot
// and a slash, so that it may be taken for a flag.
func (a *judge) fd(args []Word) (why string, ok bool) {
	at, words, rest := fdRuns(args)
	if at < 0 {
		return "", false
	}
	if listed(" -x -X --exec --exec-batch ", args[at].Text) && len(rest) == 0 && len(words) > 0 && words[0].Literal && fdHere(args[:at]) {
		a.beside(func() {
			a.read(".")
			a.inner("fd -x", withFound(words))
		})
		if name, _ := systemName(words[0].Text); listed(" bash sh dash zsh ksh eval ", name) {
			return "what it finds can become commands", true
		}
		return "", true
	}
	for at >= 0 && a.walk(len(rest)) {
		a.denied("fd -x", withFound(words))
		at, words, rest = fdRuns(rest)
	}
	return "it runs a program on what it finds", true
}

// fdHere: the words before the command are understood, and it looks only into the
// working directory.
func fdHere(args []Word) bool {
	use, why := fd.parse(args)
	return why == "" && len(use.operands) <= 1 && !spreading(use.operands) && !use.has("--base-directory --search-path --ignore-file --follow -L --strip-cwd-prefix")
}

// withFound puts what is found into the place of {}, or behind the words.
func withFound(words []Word) []Word {
	found := Word{Text: "{}", shape: many, path: ".", below: true, input: true}
	filled, placed := put(words, "{", func(w Word) Word {
		if w.is("{}") {
			return found
		}
		return Word{Text: w.Text, shape: many}
	})
	if !placed && len(words) > 0 {
		filled = append(filled, found)
	}
	return filled
}
