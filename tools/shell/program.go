// How a program of the table takes its arguments apart: flags with and
// without values, clusters, abbreviations, operands. It does not know any
// program; those are in the programs_ files, one entry each.
package shell

import (
	"strings"
)

// A program is the closed list of what may be said to one program. What is
// not in the list is not read-only.
type program struct {
	// flags holds words separated by blanks: -abc are flags without a value,
	// -n: takes one, -C? may have one attached, -f< takes the name of a file
	// that is read, -# is a number as a flag (-5). The same with --long.
	flags string
	// refused names flags outside the list and what they do, for the reason
	// and so that no abbreviation of them is mistaken for another.
	refused map[string]string
	// abbrev: long flags may be abbreviated, as getopt_long allows. The list
	// and refused then hold all long flags there are.
	abbrev bool
	// any: no argument whatever makes it write, run or contact, so arguments
	// that are not literal are fine.
	any bool
	// operands are files unless said otherwise; max of them, 0 for no limit.
	operands operandKind
	max      int
	ordered  bool // flags end at the first operand
	style    flagStyle
	// here are the flags with which it reads the working directory when no
	// file is named; "*": always.
	here string
	// writes: the operands are written.
	writes writeKind
	// check says what else is wrong, or nothing.
	check func(use usage) string
}

type operandKind uint8

const (
	fileOperands    operandKind = iota
	textOperands                // not files
	patternOperands             // the first is a pattern unless a flag gave one
	noOperands
)

// flagStyle says how short flags stand together, where that is not as in
// getopt.
type flagStyle uint8

const (
	asGetopt flagStyle = iota
	oneByOne           // no clusters: -ab is a flag of its own
	apart              // a value is always a word of its own
)

type writeKind uint8

const (
	writesNothing writeKind = iota
	writesAll
	writesLast
)

// A usage is a call of a program, taken apart.
type usage struct {
	flags    []flagUse
	operands []Word
	unknown  bool   // some arguments are not literal
	first    string // the first argument, whatever it is
}

type flagUse struct {
	name  string // "-n" or the full "--name"
	value Word
	reads bool
}

// has reports whether one of the flags was given.
func (u usage) has(names ...string) bool {
	for _, f := range u.flags {
		for _, name := range names {
			if f.name == name {
				return true
			}
		}
	}
	return false
}

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

func (p *program) short(c byte) arity {
	for tok := range strings.FieldsSeq(p.flags) {
		if tok[1] == '-' {
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

// long finds a long flag by its full name, or by an abbreviation that no
// other flag shares.
func (p *program) long(name string) (full string, kind arity) {
	matches := 0
	for tok := range strings.FieldsSeq(p.flags) {
		if tok[1] != '-' {
			continue
		}
		k := arityOf(tok[len(tok)-1])
		flag := tok
		if k != noValue {
			flag = tok[:len(tok)-1]
		}
		if flag == name {
			return name, k
		}
		if p.abbrev && strings.HasPrefix(flag, name) {
			full, kind = flag, k
			matches++
		}
	}
	for flag := range p.refused {
		if strings.HasPrefix(flag, name) {
			matches += 2
		}
	}
	if matches != 1 || len(name) < 4 {
		return "", notListed
	}
	return full, kind
}

// unlisted is the reason against a flag.
func (p *program) unlisted(flag string) string {
	if why, ok := p.refused[flag]; ok {
		return flag + " " + why
	}
	for full, why := range p.refused {
		if p.abbrev && len(flag) > 2 && strings.HasPrefix(flag, "--") && strings.HasPrefix(full, flag) {
			return flag + " may be " + full + ", which " + why
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
				return use, p.rest(&use, args[i+1:])
			}
			if len(text) < 2 || text[0] != '-' {
				if p.ordered {
					return use, p.rest(&use, args[i:])
				}
				use.operands = append(use.operands, w)
				continue
			}
			if i, why = p.flag(&use, text, args, i); why != "" {
				return use, why
			}
		case w.solid && (w.shape == one || w.shape == files):
			if p.ordered {
				return use, p.rest(&use, args[i:])
			}
			use.operands = append(use.operands, w)
		case w.shape == one && p.valueInside(&use, w):
		case p.any && w.shape < many:
			use.operands = append(use.operands, w)
		case p.any:
			use.unknown = true
		default:
			return use, "`" + w.Text + "` may become a flag"
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
	for j := 1; j < len(text); j++ {
		name := "-" + text[j:j+1]
		kind := p.short(text[j])
		switch kind {
		case notListed:
			return i, p.unlisted(name)
		case noValue:
			if p.style == oneByOne && len(text) > 2 {
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

// changesFiles is the reason against a program whose operands are listed.
const changesFiles = "it writes files"

// program judges a call by the table.
func (a *analyzer) program(name string, args []Word) (why, last string) {
	p, ok := lookup(name)
	if !ok {
		return "`" + name + "` is not among the programs known to be harmless", name
	}
	use, why := p.parse(args)
	if why == "" && p.check != nil {
		why = p.check(use)
	}
	if why == "" {
		why = a.operands(p, use)
	}
	if name == "jq" && use.has("-e", "--exit-status") {
		name = "jq -e"
	}
	return why, name
}

// operands lists what a call reads and writes.
func (a *analyzer) operands(p *program, use usage) (why string) {
	a.out.Unlisted = a.out.Unlisted || use.unknown && p.operands != textOperands
	if p.max > 0 && (len(use.operands) > p.max || spreading(use.operands)) || p.operands == noOperands && len(use.operands) > 0 {
		return "it does something else when given more operands"
	}
	for _, f := range use.flags {
		if f.reads {
			if why := a.readOperand(f.value); why != "" {
				return why
			}
		}
	}
	named := use.operands
	switch {
	case p.operands == textOperands || p.operands == noOperands:
		return ""
	case p.operands == patternOperands && len(named) > 0 && !use.has("-e", "-f", "--regexp", "--file", "--files", "--from-file"):
		named = named[1:]
	}
	if p.writes != writesNothing {
		return a.writeOperands(p, named)
	}
	if len(named) == 0 && (p.here == "*" || p.here != "" && use.has(strings.Fields(p.here)...)) {
		a.read(".")
	}
	for _, w := range named {
		if why := a.readOperand(w); why != "" {
			return why
		}
	}
	return ""
}

func spreading(words []Word) bool {
	for _, w := range words {
		if w.shape > one {
			return true
		}
	}
	return false
}

func (a *analyzer) writeOperands(p *program, named []Word) string {
	for i, w := range named {
		if p.writes == writesLast && i < len(named)-1 {
			if why := a.readOperand(w); why != "" {
				return why
			}
			continue
		}
		a.writeOperand(w)
	}
	return changesFiles
}

// readOperand lists a file that is read. Opening a device can do something,
// so only those that are known to do nothing pass.
func (a *analyzer) readOperand(w Word) (why string) {
	switch {
	case w.pipe || w.Literal && w.Text == "-":
	case w.path == "":
		a.out.Unlisted = true
	case strings.HasPrefix(w.path, "/dev/") && !quietDevice(w.path[len("/dev/"):]):
		return "opening `" + w.path + "` may do something"
	default:
		a.read(w.path)
	}
	return ""
}

func quietDevice(name string) bool {
	switch name {
	case "null", "zero", "urandom", "random", "stdin":
		return true
	}
	return strings.HasPrefix(name, "fd/") && isNumber(name[len("fd/"):])
}

func (a *analyzer) writeOperand(w Word) {
	if w.path == "" || w.shape == files {
		a.out.Unlisted = true
	}
	a.write(w.path)
}
