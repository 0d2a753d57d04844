// A program's entry in the table, and how a call is judged and listed by it. The
// entries are in the programs_ files, each to be checked against the program's manual.

package shell

import (
	"path"
	"slices"
	"strings"
)

// A program is the closed list of the arguments that one program may get. What is
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
	// operands are files unless the entry has it otherwise; max of them, 0 for no limit.
	operands operandKind
	max      int
	// patternBy are the flags whose value is the pattern, so that the first
	// operand is a file already.
	patternBy string
	// codeBy are the flags that name a file of code, if the pattern is code that
	// can name more files.
	codeBy  string
	ordered bool // flags end at the first operand
	// flagsFirst: a flag behind an operand is an operand for some kinds of the
	// program, and may be what is written, so it is refused.
	flagsFirst bool
	style      flagStyle
	// here are the flags with which it reads the working directory when no
	// file is named; "*": always.
	here string
	// names are the flags with which it shows names and facts only, "*": always,
	// unless one of content, or a file that a flag names, changes that.
	names, content string
	// writes: the operands are written, and how. With a flag of again something is put
	// there; with one of spares nothing that is absent is made.
	writes        writeKind
	how           Manner
	fresh, spares string
	// only its version is known to be harmless.
	only bool
	// check returns what else is wrong; empty: nothing.
	check func(use usage) string
}

type operandKind uint8

const (
	fileOperands    operandKind = iota
	textOperands                // not files
	patternOperands             // the first is a pattern unless a flag gave one
	noOperands
)

// flagStyle is how short flags stand together, where that is not as in getopt.
type flagStyle uint8

const (
	asGetopt flagStyle = iota
	oneByOne           // no clusters: -ab is a flag of its own
	oneDash            // so too, and one dash is enough for a long flag
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
	rest     int    // how many of the operands stand after --
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

// all returns the flags for others.
func (u usage) all() []Flag {
	flags := make([]Flag, len(u.flags))
	for i, f := range u.flags {
		flags[i] = Flag{Name: f.name, Value: f.value}
	}
	return flags
}

// changesFiles is the reason against a program whose operands are listed.
const changesFiles = "it writes files"

// program judges a call by the table.
func (a *judge) program(name string, args []Word) (why, last string) {
	p, ok := lookup(name)
	if why := unsafeVersions[name]; !ok && why != "" && len(args) == 1 && asksVersion(args[0]) {
		return why, name
	}
	if !ok {
		if !inTables(name) {
			a.mayRun(args)
		}
		return "`" + name + "` is not among the programs known to be harmless", name
	}
	use, why := p.parse(args)
	if why == "" && p.check != nil {
		why = p.check(use)
	}
	if why == "" {
		why = a.operands(p, use)
	} else if !(p.only && inTables(name)) && !listed(plainPrograms, name) { // no table has what was asked
		a.mayRun(args)
	}
	if why != "" && p.only {
		why = "nothing that `" + name + "` does is known to only read, but for telling its version"
	}
	c := a.present()
	c.Names = why == "" && p.showsNames(use)
	if why == "" && !use.unknown && (p == grep || p == ripgrep) {
		c.Flags = use.all()
	}
	if name == "jq" && use.has("-e", "--exit-status") {
		name = "jq -e"
	}
	return why, name
}

func (p *program) showsNames(use usage) bool {
	for _, f := range use.flags {
		if f.reads {
			return false
		}
	}
	return (p.names == "*" || p.names != "" && use.has(strings.Fields(p.names)...)) && !use.has(strings.Fields(p.content)...)
}

// operands lists what a call reads and writes.
func (a *listing) operands(p *program, use usage) (why string) {
	switch {
	case !use.unknown || p.operands == textOperands:
	case p.showsNames(use):
		a.unlisted()
	default:
		a.vague()
	}
	if p.max > 0 && (len(use.operands) > p.max || spreading(use.operands)) || p.operands == noOperands && len(use.operands) > 0 {
		return "with more operands it does more than show something"
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
	case p.operands == patternOperands && len(named) > 0 && !use.has(strings.Fields(p.patternBy)...):
		if named[0].shape > one || p.codeBy != "" && !named[0].Literal {
			a.unlisted()
		}
		named = named[1:]
	}
	if p.codeBy != "" && use.has(strings.Fields(p.codeBy)...) {
		a.unlisted()
	}
	if p.writes != writesNothing {
		return a.writeOperands(p, use, named)
	}
	if len(named) == 0 && (p.here == "*" || p.here != "" && use.has(strings.Fields(p.here)...)) {
		a.read(".")
	}
	names := p.showsNames(use)
	for _, w := range named {
		if names {
			a.look(w)
		} else if why := a.readOperand(w); why != "" {
			return why
		}
	}
	return ""
}

// manner is how the call writes its operands.
func (p *program) manner(use usage) Manner {
	switch {
	case p.spares != "" && use.has(strings.Fields(p.spares)...):
		return Nested
	case p.fresh != "" && use.has(strings.Fields(p.fresh)...):
		return Places
	}
	return p.how
}

func spreading(words []Word) bool {
	for _, w := range words {
		if w.shape > one {
			return true
		}
	}
	return false
}

func (a *listing) writeOperands(p *program, use usage, named []Word) (why string) {
	if p != filePrograms["tee"] {
		why = changesFiles
	}
	for i, w := range named {
		if p.writes == writesLast && i < len(named)-1 {
			if why := a.readOperand(w); why != "" {
				return why
			}
			a.writeInto(named[len(named)-1], w)
			continue
		}
		if p == filePrograms["tee"] && w.Literal && w.Text == "/dev/null" {
			continue
		}
		why = changesFiles
		if p == filePrograms["mv"] && i < len(named)-1 {
			a.writeOperand(Replaces, w)
			a.writeInto(named[len(named)-1], w)
			continue
		}
		a.writeOperand(p.manner(use), w)
	}
	return why
}

// writeInto lists what comes of from when the last operand is a directory: its name there.
func (a *listing) writeInto(dir, from Word) {
	if from.holds() {
		return
	}
	for _, to := range dir.paths() {
		for _, p := range from.paths() {
			a.write(Nested, strings.TrimSuffix(to, "/")+"/"+base(strings.TrimSuffix(p, "/")))
		}
	}
}

// readOperand lists a file that is read. Opening a device can have effects, so only
// those that are known to have none pass.
func (a *listing) readOperand(w Word) (why string) {
	switch {
	case w.pipe || w.Literal && w.Text == "-":
	case w.path == "":
		a.vague()
	case a.opensDevice(w):
		a.leadsThrough(w)
		return "opening `" + w.Text + "` may do something"
	default:
		a.read(w.paths()...)
	}
	return ""
}

func (a *place) opensDevice(w Word) bool {
	return slices.ContainsFunc(w.paths(), func(p string) bool {
		if w.holds() {
			p += "/*"
		}
		loud := func(cwd string) bool { return !relative(cwd) && loudFile(join(cwd, p)) }
		return loudFile(p) || relative(p) && slices.ContainsFunc(a.cwds, loud)
	})
}

// loudFile: a device that is not known to be quiet, the log of the kernel, which
// is read once, a way around through /proc, where there are descriptors too, or
// what is a connection for gawk.
func loudFile(p string) bool {
	p = path.Clean(p)
	if name, ok := strings.CutPrefix(p, "/dev/"); ok {
		return !quietDevice(name)
	}
	if strings.HasPrefix(p, "/inet") {
		return true
	}
	name, ok := strings.CutPrefix(p, "/proc/")
	if !ok {
		return p == "/*"
	}
	_, descriptor, _ := strings.Cut(name, "/fd/")
	return name == "kmsg" || name == "*" || strings.Contains(name, "/root/") || strings.Contains(name, "/cwd/") ||
		descriptor != "" && (len(descriptor) > 1 || !isNumber(descriptor))
}

func quietDevice(name string) bool {
	switch name {
	case "null", "zero", "urandom", "random", "stdin":
		return true
	}
	return len(name) == len("fd/0") && strings.HasPrefix(name, "fd/") && isNumber(name[len("fd/"):])
}

func (a *listing) writeOperand(m Manner, w Word) {
	if w.holds() {
		m = Fills // of the directory that holds what it stands for
	}
	if w.path == "" || w.holds() {
		a.unlisted()
	}
	a.write(m, w.paths()...)
}
