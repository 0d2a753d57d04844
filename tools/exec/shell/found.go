// Which files a find or a git ls-files names to what runs on them: where it starts,
// and the patterns that their names fit. A command line that is not plain is not
// followed.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// namedFiles is what a command prints the names of.
type namedFiles struct {
	starts []Word // of find, and "." of git
	picks  Picks
	zero   bool // names end in a zero byte
}

// findNames are the patterns that all fit which a find takes before its first
// action, if it joins all of its tests.
func findNames(args []Word) (names []string) {
	for i := 0; i < len(args); i++ {
		text := args[i].Text
		switch {
		case !args[i].Literal, listed(" -o -or ( ) , ", text):
			return nil
		case text == "!" || text == "-not":
			if i++; i < len(args) && listed(findValues, args[i].Text) {
				i++
			}
		case text == "-name" && i+1 < len(args):
			if i++; args[i].Literal && !strings.ContainsAny(args[i].Text, `\`) {
				names = append(names, args[i].Text)
			}
		case listed(findValues, text):
			i++
		case listed(findRuns, text), strings.HasPrefix(text, "-print"), text == "-ls", text == "-quit":
			if slices.ContainsFunc(args[i:], func(w Word) bool { return listed(" -o -or , ", w.Text) }) {
				return nil
			}
			return names
		}
	}
	return names
}

// oneByOneReaders read the files that they are given, and no directories.
const oneByOneReaders = " cat head tail wc grep egrep fgrep file md5sum sha1sum sha256sum sort uniq nl tac cut od xxd hexdump base64 strings sed awk gawk "

// takesFound marks command i, and what it runs, as one that takes those files.
func (a *listing) takesFound(i int, f namedFiles) {
	for ; i < len(a.out.Commands); i++ {
		c := &a.out.Commands[i]
		picks := f.picks
		if !listed(oneByOneReaders, c.Name) || slices.ContainsFunc(c.Flags, recurses) || c.Flags == nil && strings.HasSuffix(c.Name, "grep") {
			picks.Names = nil // of a directory whose name fits it may take all
		}
		for _, start := range f.starts {
			picks.From = append(picks.From, a.seen(start.paths()...)...)
		}
		if len(picks.Names) > 0 || picks.Kept || picks.Apart {
			c.Picks = &picks
		}
	}
}

func recurses(f Flag) bool {
	return listed(" -r -R -d --recursive --dereference-recursive --directories ", f.Name)
}

// foundIn finds what names a feed holds; ok is false when that is not known.
func (a *judge) foundIn(f *feed) (names namedFiles, ok bool) {
	if f == nil || f.here != nil || len(f.stmts) != 1 {
		return names, false
	}
	outer := a.src
	a.src = f.src
	names, ok = a.foundBy(f.stmts[0])
	a.src = outer
	return names, ok
}

func (a *judge) foundBy(s *syntax.Stmt) (names namedFiles, ok bool) {
	if !plainStmt(s) {
		return names, false
	}
	if b, is := s.Cmd.(*syntax.BinaryCmd); is && b.Op == syntax.Pipe {
		words := a.plainWords(b.Y)
		if names, ok = a.foundBy(b.X); ok && !names.zero && passesLines(words) {
			return names, true
		}
		return names, false
	}
	words := a.plainWords(s)
	if len(words) == 0 {
		return names, false
	}
	if _, function := a.functions[words[0].Text]; function || a.haunted {
		return names, false
	}
	switch {
	case words[0].Text == "find":
		return foundByFind(words[1:])
	case words[0].Text == "git" && len(words) > 1 && words[1].Text == "ls-files" && !a.elsewhere():
		return foundByGit(words[2:])
	}
	return names, false
}

func silencing(r *syntax.Redirect) bool {
	return r.N != nil && r.N.Value == "2" && (r.Op == syntax.RdrOut || r.Op == syntax.AppOut) && r.Word.Lit() == "/dev/null"
}

// plainWords are the words of a command that is nothing but literal words; nil:
// it is more.
func (a *judge) plainWords(s *syntax.Stmt) (words []Word) {
	c := plainCall(s)
	if c == nil || !a.walk(1+len(c.Args)) { // of each stage of a pipe, for each that is behind it
		return nil
	}
	for _, w := range c.Args {
		text, whole := a.wordText(w)
		if !whole {
			return nil
		}
		words = append(words, literalWord(text))
	}
	return words
}

// passesLines: it prints some of the lines that it reads, as they are.
func passesLines(words []Word) bool {
	if len(words) == 0 {
		return false
	}
	flags, operands := map[string]string{"grep": "vEiFwxP", "head": "n0123456789", "tail": "n0123456789", "sort": "ufrV", "uniq": ""}, 0
	letters, known := flags[words[0].Text]
	for _, w := range words[1:] {
		switch text, flag := strings.CutPrefix(w.Text, "-"); {
		case flag && strings.Trim(text, letters) != "" || w.Text == "-":
			return false
		case !flag:
			operands++
		}
	}
	switch words[0].Text {
	case "grep":
		return operands == 1
	case "head", "tail":
		return operands == 0 || operands == 1 && words[1].Text == "-n" && len(words) == 3
	}
	return known && operands == 0
}

func foundByFind(args []Word) (names namedFiles, ok bool) {
	at := slices.IndexFunc(args, func(w Word) bool { return strings.ContainsAny(w.Text[:min(1, len(w.Text))], "-!(") })
	if at < 0 {
		at = len(args)
	}
	names.starts = startsOr(args[:at])
	for i := at; i < len(args); i++ {
		switch text := args[i].Text; {
		case text == "-print0":
			names.zero = true
		case text == "-printf", text == "-ls", text == "-H", text == "-L", text == "-follow":
			return names, false
		case listed(findValues, text):
			i++
		case !listed(findTests, text):
			return names, false
		}
	}
	names.picks.Names = findNames(args[at:])
	bad := func(w Word) bool {
		return slices.ContainsFunc(w.paths(), busyPlace) || strings.ContainsAny(w.Text, " \t\n'\"\\")
	}
	return names, !slices.ContainsFunc(names.starts, bad)
}

// foundByGit: files below the working directory; patterns only take fewer.
func foundByGit(args []Word) (names namedFiles, ok bool) {
	names.starts, names.picks.Kept = []Word{literalWord(".")}, true
	others, standard := false, false
	for _, w := range args {
		switch text := w.Text; {
		case text == "-z":
			names.zero = true
		case text == "-o", text == "--others":
			others = true
		case text == "--exclude-standard":
			standard = true
		case listed(" -c --cached -m --modified -- ", text):
		case strings.HasPrefix(text, "-"), strings.HasPrefix(text, ":"), strings.HasPrefix(text, "/"), strings.Contains(text, ".."):
			return names, false
		}
	}
	return names, !others || standard
}
