// Taking arguments apart by a program's list: clusters, values, abbreviations,
// and words of which only the beginning is known.

package shell

import (
	"maps"
	"slices"
	"strings"
)

// arity of a flag.
type arity uint8

const (
	notListed arity = iota
	noValue
	needsValue
	mayHaveValue
	needsFile
)

func arityOf(suffix byte) arity {
	switch suffix {
	case ':':
		return needsValue
	case '?':
		return mayHaveValue
	case '<':
		return needsFile
	}
	return noValue
}

// short finds a short flag. Lists are searched as text: most calls have few
// flags, and building an index of every list would cost more than it saves.
func (p *program) short(c byte) arity {
	for rest := p.flags; rest != ""; {
		tok, next, _ := strings.Cut(rest, " ")
		rest = next
		if len(tok) < 2 || tok[1] == '-' {
			continue
		}
		if kind := arityOf(tok[len(tok)-1]); kind != noValue {
			if tok[1] == c {
				return kind
			}
		} else if strings.IndexByte(tok[1:], c) >= 0 {
			return noValue
		}
	}
	return notListed
}

// exact finds a long flag by its full name.
func (p *program) exact(name string) arity {
	for rest := p.flags; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return notListed
		}
		whole := i == 0 || rest[i-1] == ' '
		rest = rest[i+len(name):]
		switch {
		case !whole:
		case rest == "" || rest[0] == ' ':
			return noValue
		case arityOf(rest[0]) != noValue:
			return arityOf(rest[0])
		}
	}
}

// long finds a long flag by its full name, or by an abbreviation that no
// other flag shares.
func (p *program) long(name string) (full string, kind arity) {
	if kind := p.exact(name); kind != notListed {
		return name, kind
	}
	if !p.abbrev || len(name) < len("--x")+1 {
		return "", notListed
	}
	matches := 0
	for tok := range strings.FieldsSeq(p.flags) {
		if strings.HasPrefix(tok, name) {
			kind = arityOf(tok[len(tok)-1])
			full = strings.TrimRight(tok, ":?<")
			matches++
		}
	}
	for flag := range p.refused {
		if strings.HasPrefix(flag, name) {
			return "", notListed
		}
	}
	if matches != 1 {
		return "", notListed
	}
	return full, kind
}

// unlisted is the reason against a flag.
func (p *program) unlisted(flag string) string {
	if why, ok := p.refused[flag]; ok {
		return flag + " " + why
	}
	for _, full := range slices.Sorted(maps.Keys(p.refused)) { // the same reason every time
		if p.abbrev && len(flag) > 2 && strings.HasPrefix(flag, "--") && strings.HasPrefix(full, flag) {
			return flag + " may be " + full + ", which " + p.refused[full]
		}
	}
	return flag + " is not among its flags known to be harmless"
}

// parse takes the arguments apart. why is empty when all are understood.
func (p *program) parse(args []Word) (use usage, why string) {
	if len(args) > 0 {
		use.first = args[0].Text
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.Literal || w.shape == known:
			text := w.prefix
			if text == "--" {
				use.rest = len(args) - i - 1
				return use, p.rest(&use, args[i+1:])
			}
			if len(text) < 2 || text[0] != '-' {
				if p.ordered {
					return use, p.rest(&use, args[i:])
				}
				use.operands = append(use.operands, w)
				continue
			}
			if p.flagsFirst && len(use.operands) > 0 {
				return use, "`" + text + "` stands behind an operand, where it may be one itself"
			}
			if i, why = p.flag(&use, text, args, i); why != "" {
				return use, why
			}
		case w.solid && (w.shape == one || w.shape == files):
			if p.ordered {
				return use, p.rest(&use, args[i:])
			}
			use.operands = append(use.operands, w)
		case (w.shape == one || w.shape == files && strings.Contains(w.prefix, "=")) && p.valueInside(&use, w):
		case p.any && w.shape < many:
			use.unknown = use.unknown || slices.ContainsFunc(w.texts, func(t text) bool { return strings.HasPrefix(t.prefix, "-") })
			use.operands = append(use.operands, w)
		case p.any && w.input && w.path != "":
			use.operands = append(use.operands, w)
		case p.any:
			use.unknown = true
		default:
			return use, w.named() + " may become a flag"
		}
	}
	return use, ""
}

// rest takes all words as operands.
func (p *program) rest(use *usage, args []Word) string {
	use.operands = append(use.operands, args...)
	return ""
}

// flag takes one word that begins with a dash, and its value.
func (p *program) flag(use *usage, text string, args []Word, i int) (next int, why string) {
	if strings.HasPrefix(text, "--") {
		return p.longFlag(use, text, args, i)
	}
	if isNumber(text[1:]) && text[1] != '-' && p.short('#') == noValue {
		use.flags = append(use.flags, flagUse{name: "-#", value: literalWord(text[1:])})
		return i, ""
	}
	if p.style == oneDash && p.exact("-"+text) == noValue {
		use.flags = append(use.flags, flagUse{name: "-" + text})
		return i, ""
	}
	for j := 1; j < len(text); j++ {
		name := "-" + text[j:j+1]
		kind := p.short(text[j])
		switch kind {
		case notListed:
			return i, p.unlisted(name)
		case noValue:
			if (p.style == oneByOne || p.style == oneDash) && len(text) > 2 {
				return i, p.unlisted(text)
			}
			use.flags = append(use.flags, flagUse{name: name})
			continue
		case mayHaveValue:
			use.flags = append(use.flags, flagUse{name: name, value: literalWord(text[j+1:])})
			return i, ""
		}
		value := literalWord(text[j+1:])
		if text[j+1:] == "" {
			i++
			if value, why = p.value(args, i, name); why != "" {
				return i, why
			}
		} else if p.style == apart {
			return i, p.unlisted(text)
		}
		use.flags = append(use.flags, flagUse{name: name, value: value, reads: kind == needsFile})
		return i, ""
	}
	return i, ""
}

func (p *program) longFlag(use *usage, text string, args []Word, i int) (next int, why string) {
	name, inline, hasValue := strings.Cut(text, "=")
	full, kind := p.long(name)
	value := literalWord(inline)
	switch {
	case kind == notListed:
		return i, p.unlisted(name)
	case kind == noValue && hasValue:
		return i, name + " takes no value"
	case (kind == needsValue || kind == needsFile) && !hasValue:
		i++
		if value, why = p.value(args, i, full); why != "" {
			return i, why
		}
	}
	use.flags = append(use.flags, flagUse{name: full, value: value, reads: kind == needsFile})
	return i, ""
}

// value is the word after a flag. One that looks like a flag itself is taken
// for one, in case the table is wrong about the first.
func (p *program) value(args []Word, i int, flag string) (Word, string) {
	w, why := valueWord(args, i, flag)
	if why == "" && w.Literal && !p.any && len(w.Text) > 1 && w.Text[0] == '-' && !isNumber(w.Text) {
		why = "`" + w.Text + "` may be a flag or the value of " + flag
	}
	return w, why
}

// valueWord is the word after a flag: exactly one argument, whatever it is.
func valueWord(args []Word, i int, flag string) (Word, string) {
	if i >= len(args) {
		return Word{}, flag + " has no value"
	}
	if w := args[i]; w.shape == known || w.shape == one {
		return w, ""
	}
	return Word{}, "the value of " + flag + " may become several arguments"
}

// valueInside takes one unknown argument whose known beginning is a flag that
// takes a value: --name="$x" and -n"$x".
func (p *program) valueInside(use *usage, w Word) bool {
	if name, _, ok := strings.Cut(w.prefix, "="); ok && strings.HasPrefix(name, "--") {
		full, kind := p.long(name)
		if kind == notListed || kind == noValue {
			return false
		}
		use.flags = append(use.flags, flagUse{name: full, value: unknownWord(w), reads: kind == needsFile})
		return true
	}
	if len(w.prefix) < 2 || w.prefix[0] != '-' || w.prefix[1] == '-' {
		return false
	}
	kind := p.short(w.prefix[1])
	if kind == notListed || kind == noValue {
		return false
	}
	use.flags = append(use.flags, flagUse{name: w.prefix[:2], value: unknownWord(w), reads: kind == needsFile})
	return true
}

func unknownWord(w Word) Word { return Word{Text: w.Text, shape: one} }
