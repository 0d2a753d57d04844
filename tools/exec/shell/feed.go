// What a command reads on its standard input, as far as it stands in the script:
// here-documents and -strings, and what echo, printf and cat print. A shell that
// reads it runs it.

package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A feed is the content of a pipe or a here-document. It is worked out only when
// something runs it.
type feed struct {
	src    string // the text that the positions refer to
	stmts  []*syntax.Stmt
	here   *syntax.Redirect
	before *feed // what stmts read themselves

	asked  bool
	text   string // as far as it is known; words that are not known stand in it as written
	whole  bool   // text is all of it, and exactly that
	walked bool   // as a script
	noted  bool   // among what a command may run
	listed bool   // as what a command is fed
}

// printedBy is what statements print that run in the present place.
func (a *origin) printedBy(stmts []*syntax.Stmt) *feed {
	return &feed{src: a.src, stmts: stmts, before: a.stdin}
}

// feeds notes what a redirection passes to the command's standard input.
func (a *origin) feeds(r *syntax.Redirect) {
	if r.N != nil && r.N.Value != "0" {
		return
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		a.stdin = &feed{src: a.src, here: r}
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn:
		if p, ok := onlyPart(r.Word).(*syntax.ProcSubst); ok {
			a.stdin = a.printedBy(p.Stmts)
		} else if !ownInput(r.Word.Lit()) {
			a.stdin = nil
		}
	}
}

// contents is the text when a word is read as a file; nil: what is in a file.
func (a *origin) contents(w Word) *feed {
	if w.Literal && ownInput(w.Text) {
		return a.stdin
	}
	if w.feed == 0 {
		return nil
	}
	return a.substituted[w.feed-1]
}

func ownInput(name string) bool { return listed(" /dev/stdin /dev/fd/0 /proc/self/fd/0 0 ", name) }

// ask works the text out.
func (a *judge) ask(f *feed) (text string, whole bool) {
	if f.asked {
		return f.text, f.whole
	}
	f.asked = true
	outer := a.src
	a.src = f.src
	switch {
	case f.here != nil:
		f.text, f.whole = a.hereText(f.here)
	case len(f.stmts) > 0:
		f.text, f.whole = a.prints(f.stmts, f.before)
	}
	a.src = outer
	return f.text, f.whole
}

func (a *judge) hereText(r *syntax.Redirect) (text string, whole bool) {
	if r.Op == syntax.WordHdoc {
		return a.wordText(r.Word)
	}
	if r.Hdoc == nil {
		return "", true
	}
	var b strings.Builder
	quoted := strings.ContainsAny(a.source(r.Word), `'"\`)
	for _, part := range r.Hdoc.Parts {
		switch lit, ok := part.(*syntax.Lit); {
		case !ok:
			b.WriteString(a.source(part))
		case quoted:
			b.WriteString(lit.Value)
		default:
			b.WriteString(hereEscapes.Replace(lit.Value))
		}
	}
	return b.String(), plainWord(r.Hdoc)
}

var hereEscapes = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`", "\\\n", "")

// wordText is what a word becomes; as written, without the quotes around it,
// when that is not known.
func (a *analyzer) wordText(w *syntax.Word) (text string, whole bool) {
	if plainWord(w) {
		if word := a.word(w); word.Literal {
			return word.Text, true
		}
	}
	text = a.source(w)
	if len(w.Parts) == 1 && len(text) > 1 && text[0] == '"' {
		text = strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)
	}
	return text, false
}

// prints is what statements print, one after the other.
func (a *judge) prints(stmts []*syntax.Stmt, before *feed) (text string, whole bool) {
	whole = true
	for _, s := range stmts {
		part, sure := a.stmtPrints(s, before)
		if len(text)+len(part) > maxParsed || !a.walkText(part) { // twice what a pipe holds, and so on
			return text, false
		}
		text, whole = text+part, whole && sure
	}
	return text, whole
}

func (a *judge) stmtPrints(s *syntax.Stmt, before *feed) (text string, whole bool) {
	for _, r := range s.Redirs {
		if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc {
			before = &feed{src: a.src, here: r}
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return a.callPrints(c, before)
	case *syntax.Block:
		return a.prints(c.Stmts, before)
	case *syntax.Subshell:
		return a.prints(c.Stmts, before)
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			return a.stmtPrints(c.Y, &feed{src: a.src, stmts: []*syntax.Stmt{c.X}, before: before})
		}
		return a.prints([]*syntax.Stmt{c.X, c.Y}, before)
	}
	return "", false
}

func (a *judge) callPrints(c *syntax.CallExpr, before *feed) (text string, whole bool) {
	if len(c.Args) == 0 {
		return "", true
	}
	words := make([]string, len(c.Args))
	whole = true
	for i, w := range c.Args {
		var sure bool
		words[i], sure = a.wordText(w)
		whole = whole && sure
	}
	switch words[0] {
	case "cd", "true", ":", "sleep":
		return "", true
	case "cat", "tee":
		if len(words) == 1 && before != nil {
			return a.ask(before)
		}
	case "echo":
		text, sure := echoText(words[1:])
		return text, whole && sure
	case "printf":
		text, sure := printfText(words[1:])
		return text, whole && sure
	}
	return "", false
}

func echoText(words []string) (text string, whole bool) {
	escapes, end := false, "\n"
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], "neE") == "" {
		escapes = escapes || strings.Contains(words[0], "e")
		if strings.Contains(words[0], "n") {
			end = ""
		}
		words = words[1:]
	}
	text = strings.Join(words, " ")
	if !escapes {
		return text + end, true
	}
	text, whole = unescape(text)
	return text + end, whole
}

// unescape takes the escapes of echo -e and printf; whole: there are no others
// than the plain ones.
func unescape(s string) (text string, whole bool) {
	whole = true
	text = echoEscape.ReplaceAllStringFunc(s, func(escape string) string {
		plain, ok := map[string]string{`\n`: "\n", `\t`: "\t", `\\`: `\`, `\0`: "\x00"}[escape]
		if !ok {
			whole = false
			return escape
		}
		return plain
	})
	return text, whole
}

var echoEscape = regexp.MustCompile(`(?s)\\(0[0-7]|.)`)

// printfText is what printf makes of its words; the format is used again as
// long as there are words.
func printfText(words []string) (text string, whole bool) {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return "", false
	}
	format, whole := unescape(words[0])
	words = words[1:]
	var b strings.Builder
	for {
		left := len(words)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			switch i++; format[i] {
			case '%':
				b.WriteByte('%')
			case 's', 'b', 'd', 'q':
				if len(words) > 0 {
					b.WriteString(words[0])
					words = words[1:]
				}
				whole = whole && (format[i] == 's' || format[i] == 'd')
			default:
				whole = false
			}
		}
		if len(words) == 0 || len(words) == left {
			return b.String(), whole
		}
		if b.Len() > maxParsed {
			return b.String(), false
		}
	}
}
