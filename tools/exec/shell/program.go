// A program's entry in the table, and how a call is judged and listed by it. The
// entries are in the programs_ files, each to be checked against the program's manual.

package shell

import (
	"path"
	"regexp"
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
	flags    []Flag
	operands []Word
	rest     int    // how many of the operands stand after --
	unknown  bool   // some arguments are not literal
	first    string // the first argument, whatever it is
	left     []Word // the arguments that are not taken apart yet
}

// has reports whether one of the flags was given, which are separated by blanks; "*" stands for
// any, and for none.
func (u usage) has(flags string) bool { return flags == "*" || len(u.values(flags)) > 0 }

// values returns what stands behind each of the flags, in the order of the arguments; nothing
// behind one without a value.
func (u usage) values(flags string) (values []Word) {
	for _, f := range u.flags {
		for name := range strings.FieldsSeq(flags) {
			if f.Name == name {
				values = append(values, f.Value)
			}
		}
	}
	return values
}

// readsFile reports whether a flag names a file.
func (u usage) readsFile() bool {
	return slices.ContainsFunc(u.flags, func(f Flag) bool { return f.reads })
}

// are reports whether the operands are those of the form: words, of which "*" stands for any that
// is literal, and a "..." at the end for whatever follows.
func (u usage) are(form string) bool {
	words := strings.Fields(form)
	for i, word := range words {
		switch {
		case word == "...":
			return true
		case i == len(u.operands) || word != "*" && !u.operands[i].is(word) || !u.operands[i].Literal:
			return false
		}
	}
	return len(u.operands) == len(words)
}

// forms makes a check that the operands are of one of these forms; why is the reason against
// others.
func forms(why string, forms ...string) func(usage) string {
	return unless(why, func(use usage) bool { return slices.ContainsFunc(forms, use.are) })
}

// unless makes a check of a condition; why is the reason against a call that does not meet it.
func unless(why string, met func(use usage) bool) func(usage) string {
	return func(use usage) string {
		if met(use) {
			return ""
		}
		return why
	}
}

// eachOperand makes a check of a condition for each operand.
func eachOperand(why string, met func(w Word) bool) func(usage) string {
	return unless(why, func(use usage) bool {
		return !slices.ContainsFunc(use.operands, func(w Word) bool { return !met(w) })
	})
}

// needs makes a check that one of the flags was given.
func needs(why, flags string) func(usage) string {
	return unless(why, func(use usage) bool { return use.has(flags) })
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
	use, why := p.use(args)
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
		c.Flags = append([]Flag{}, use.flags...)
	}
	if name == "jq" && use.has("-e --exit-status") {
		name = "jq -e"
	}
	return why, name
}

func (p *program) showsNames(use usage) bool {
	return !use.readsFile() && use.has(p.names) && !use.has(p.content)
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
			if why := a.readOperand(f.Value); why != "" {
				return why
			}
		}
	}
	named := use.operands
	switch {
	case p.operands == textOperands || p.operands == noOperands:
		return ""
	case p.operands == patternOperands && len(named) > 0 && !use.has(p.patternBy):
		if named[0].shape > one || p.codeBy != "" && !named[0].Literal {
			a.unlisted()
		}
		named = named[1:]
	}
	if use.has(p.codeBy) {
		a.unlisted()
	}
	if p.writes != writesNothing {
		return a.writeOperands(p, use, named)
	}
	if len(named) == 0 && use.has(p.here) {
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
	case use.has(p.spares):
		return Nested
	case use.has(p.fresh):
		return Places
	}
	return p.how
}

func spreading(words []Word) bool {
	return slices.ContainsFunc(words, func(w Word) bool { return w.shape > one })
}

func (a *listing) writeOperands(p *program, use usage, named []Word) (why string) {
	if p != filePrograms["tee"] {
		why = changesFiles
	}
	manner := p.manner(use)
	for i, w := range named {
		if p.writes == writesLast && i < len(named)-1 {
			if why := a.readOperand(w); why != "" {
				return why
			}
			a.writeInto(named[len(named)-1], w)
			continue
		}
		if p == filePrograms["tee"] && w.is("/dev/null") {
			continue
		}
		why = changesFiles
		if p == filePrograms["mv"] && i < len(named)-1 {
			a.writeOperand(Replaces, w)
			a.writeInto(named[len(named)-1], w)
			continue
		}
		a.writeOperand(manner, w)
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
	case w.pipe || w.is("-"):
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
		return !quietDevice.MatchString(name)
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

var quietDevice = regexp.MustCompile(`^(null|zero|urandom|random|stdin|fd/[0-9])$`)

func (a *listing) writeOperand(m Manner, w Word) {
	if w.holds() {
		m = Fills // of the directory that holds what it stands for
	}
	if w.path == "" || w.holds() {
		a.unlisted()
	}
	a.write(m, w.paths()...)
}
