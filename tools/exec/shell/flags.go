// Taking arguments apart by a program's list: clusters, values, abbreviations,
// and words of which only the beginning is known.

package shell

import (
	"maps"
	"slices"
	"strings"
)

// An arity is what stands behind a flag in a program's list.
type arity byte

const (
	notListed    arity = 0
	noValue      arity = ' '
	needsValue   arity = ':'
	mayHaveValue arity = '?'
	needsFile    arity = '<'
)

// takes reports whether there is a value behind the flag, or may be.
func (a arity) takes() bool { return a != notListed && a != noValue }

func arityOf(suffix byte) arity {
	if strings.IndexByte(":?<", suffix) >= 0 {
		return arity(suffix)
	}
	return noValue
}

// short finds a short flag. Lists are searched as text: most calls have few
// flags, and building an index of every list would cost more than it saves.
func (p *program) short(c byte) arity {
	for tok := range strings.SplitSeq(p.flags, " ") {
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
	for tok := range strings.FieldsSeq(p.flags) {
		if strings.HasPrefix(tok, name) {
			if kind != notListed {
				return "", notListed
			}
			full, kind = strings.TrimRight(tok, ":?<"), arityOf(tok[len(tok)-1])
		}
	}
	for flag := range p.refused {
		if strings.HasPrefix(flag, name) {
			return "", notListed
		}
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

// use takes the arguments apart, and checks them. why is empty when all are understood and
// harmless.
func (p *program) use(args []Word) (use usage, why string) {
	if use, why = p.parse(args); why == "" && p.check != nil {
		why = p.check(use)
	}
	return use, why
}

// parse takes the arguments apart. why is empty when all are understood.
func (p *program) parse(args []Word) (use usage, why string) {
	if len(args) > 0 {
		use.first = args[0].Text
	}
	for use.left = args; len(use.left) > 0; {
		w := use.left[0]
		plain := w.shape == known
		flag := plain && len(w.prefix) > 1 && w.prefix[0] == '-'
		operand := plain && !flag || w.solid && (w.shape == one || w.shape == files)
		switch {
		case operand && p.ordered, flag && w.prefix == "--":
			if flag {
				use.left = use.left[1:]
				use.rest = len(use.left)
			}
			use.operands = append(use.operands, use.left...)
			return use, ""
		}
		switch use.left = use.left[1:]; {
		case flag && p.flagsFirst && len(use.operands) > 0:
			return use, "`" + w.prefix + "` stands behind an operand, where it may be one itself"
		case flag:
			if why = p.flag(&use, w.prefix); why != "" {
				return use, why
			}
		case operand:
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

// add notes a flag.
func (u *usage) add(name string, value Word, kind arity) {
	u.flags = append(u.flags, Flag{Name: name, Value: value, reads: kind == needsFile})
}

// flag takes one word that begins with a dash, and its value.
func (p *program) flag(use *usage, text string) (why string) {
	switch {
	case strings.HasPrefix(text, "--"):
		return p.longFlag(use, text)
	case isNumber(text[1:]) && text[1] != '-' && p.short('#') == noValue:
		use.add("-#", literalWord(text[1:]), noValue)
		return ""
	case p.style == oneDash && p.exact("-"+text) == noValue:
		use.add("-"+text, Word{}, noValue)
		return ""
	}
	for j := 1; j < len(text); j++ {
		name, rest := "-"+text[j:j+1], text[j+1:]
		switch kind := p.short(text[j]); {
		case kind == notListed:
			return p.unlisted(name)
		case kind == noValue && (p.style == oneByOne || p.style == oneDash) && len(text) > 2, kind.takes() && kind != mayHaveValue && rest != "" && p.style == apart:
			return p.unlisted(text)
		case kind == noValue:
			use.add(name, Word{}, kind)
		case kind == mayHaveValue || rest != "":
			use.add(name, literalWord(rest), kind)
			return ""
		default:
			return p.next(use, name, kind)
		}
	}
	return ""
}

func (p *program) longFlag(use *usage, text string) (why string) {
	name, inline, hasValue := strings.Cut(text, "=")
	full, kind := p.long(name)
	switch {
	case kind == notListed:
		return p.unlisted(name)
	case kind == noValue && hasValue:
		return name + " takes no value"
	case kind.takes() && kind != mayHaveValue && !hasValue:
		return p.next(use, full, kind)
	}
	use.add(full, literalWord(inline), kind)
	return ""
}

// next takes the word behind a flag as its value. One that looks like a flag itself is taken
// for one, in case the table is wrong about the first.
func (p *program) next(use *usage, flag string, kind arity) (why string) {
	w, why := valueWord(use.left, 0, flag)
	if why == "" && w.Literal && !p.any && len(w.Text) > 1 && w.Text[0] == '-' && !isNumber(w.Text) {
		why = "`" + w.Text + "` may be a flag or the value of " + flag
	}
	if why == "" {
		use.left = use.left[1:]
		use.add(flag, w, kind)
	}
	return why
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
	name, kind := "", notListed
	if long, _, ok := strings.Cut(w.prefix, "="); ok && strings.HasPrefix(long, "--") {
		name, kind = p.long(long)
	} else if len(w.prefix) > 1 && w.prefix[0] == '-' && w.prefix[1] != '-' {
		name, kind = w.prefix[:2], p.short(w.prefix[1])
	}
	if kind.takes() {
		use.add(name, Word{Text: w.Text, shape: one}, kind)
	}
	return kind.takes()
}
