// The pieces of a word, for callers that follow values which the analysis does not have.

package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A PartKind is what a piece of a word is to bash.
type PartKind uint8

// The kinds.
const (
	Plain        PartKind = iota // text, without its quotes; patterns stay as written
	Escapes                      // $'...' as written
	Home                         // ~, ~NAME or ~+
	Parameter                    // the value of the variable Text; its name is empty where that is not known
	Substitution                 // what the script Text prints
	Number                       // the value of an arithmetic expression
)

// A Part is a piece of a word.
type Part struct {
	Kind   PartKind
	Text   string
	Quoted bool // in double quotes, so that what it becomes is not split
	// Required: the script ends where the Parameter is empty. Or is what stands in its place then.
	Required bool
	Or       []Part
}

// Parts returns the pieces of a word that is not literal, as they are written.
func (w Word) Parts() []Part {
	word := parseWord(w.Text)
	if word == nil {
		return []Part{{Text: w.Text}}
	}
	return partsOf(w.Text, word.Parts, false)
}

// parseWord returns the only word of a text; nil: it has none, or several.
func parseWord(text string) (word *syntax.Word) {
	defer unparsed(&word)
	for w, err := range newParser(syntax.LangBash).WordsSeq(strings.NewReader(text)) {
		if err != nil || word != nil {
			return nil
		}
		word = w
	}
	return word
}

// unparsed makes a word nil where the parser panics, which meets arbitrary bytes.
func unparsed(word **syntax.Word) {
	if recover() != nil {
		*word = nil
	}
}

func partsOf(source string, nodes []syntax.WordPart, quoted bool) (parts []Part) {
	for i, node := range nodes {
		part := Part{Quoted: quoted}
		switch n := node.(type) {
		case *syntax.Lit:
			if i == 0 && !quoted && strings.HasPrefix(n.Value, "~") {
				name, rest, below := strings.Cut(n.Value, "/")
				parts = append(parts, Part{Kind: Home, Text: name})
				if !below {
					continue
				}
				n = &syntax.Lit{Value: "/" + rest}
			}
			part.Text = unescaped(n.Value, quoted)
		case *syntax.SglQuoted:
			if part.Text = n.Value; n.Dollar {
				part.Kind = Escapes
			}
		case *syntax.DblQuoted:
			parts = append(parts, partsOf(source, n.Parts, true)...)
			continue
		case *syntax.ParamExp:
			part.Kind = Parameter
			part.of(n, source)
		case *syntax.CmdSubst:
			if n.ReplyVar {
				part.Kind = Parameter
				break
			}
			opening := len("$(")
			if n.Backquotes {
				opening = len("`")
			}
			part.Kind, part.Text = Substitution, source[int(n.Left.Offset())+opening:n.Right.Offset()]
		case *syntax.ArithmExp:
			part.Kind = Number
		default:
			part.Text = source[n.Pos().Offset():n.End().Offset()]
		}
		parts = append(parts, part)
	}
	return parts
}

// of notes what a ${...} stands for.
func (part *Part) of(p *syntax.ParamExp, source string) {
	if p.Param == nil || p.Excl || p.Length || p.Names != 0 {
		return
	}
	if part.Text = p.Param.Value; p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		part.Required = true
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Exp.Word != nil {
			part.Or = partsOf(source, p.Exp.Word.Parts, false)
		}
	}
}

// unescaped takes the backslashes off that keep the next character.
func unescaped(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	escape := anyEscape
	if quoted {
		escape = quotedEscape
	}
	return escape.ReplaceAllStringFunc(text, func(escape string) string { return strings.TrimPrefix(escape[1:], "\n") })
}

var (
	anyEscape    = regexp.MustCompile(`(?s)\\.`)
	quotedEscape = regexp.MustCompile("\\\\[$`\"\\\\\n]")
)
