// Programs that only read for a few questions: what a compiler is built for, the
// system's own tables, and files that a pager prints where there is no terminal. To be
// checked against the manuals of gcc 12 to 14, clang 14 to 18, glibc 2.36 and less 590.

package shell

import "strings"

// compilers obey no file of the workspace when they are asked about themselves.
const compilers = " cc c++ gcc g++ clang clang++ "

// compilerPrints: one flag is all that a compiler is given, and one that it answers by
// itself.
func compilerPrints(name string, args []Word) bool {
	const flags = " -dumpmachine -dumpversion -dumpfullversion -print-search-dirs -print-libgcc-file-name -print-multiarch" +
		" -print-multi-directory -print-multi-lib -print-multi-os-directory -print-sysroot -print-resource-dir -print-target-triple "
	if !listed(compilers, name) || len(args) != 1 || !args[0].Literal {
		return false
	}
	flag, file, named := strings.Cut(args[0].Text, "=")
	if named { // where a file of its own is
		return listed(" -print-file-name -print-prog-name ", flag) && file != "" && !strings.Contains(file, "/")
	}
	return listed(flags, flag)
}

// getent judges questions that files of the system answer, as they do for id and ls -l.
func (a *listing) getent(args []Word) (why string) {
	const tables = " passwd group services protocols networks rpc ethers "
	for _, w := range args {
		if !w.Literal || w.dashed() {
			return "only the name of a table, and what is looked for in it, is known to be harmless"
		}
	}
	switch {
	case len(args) > 0 && listed(tables, args[0].Text):
		a.read("/etc/" + args[0].Text)
	case len(args) == 2 && listed(" hosts ahosts ahostsv4 ahostsv6 ", args[0].Text) && args[1].Text == "localhost":
	default:
		return "it may ask the network, or read what not every user may"
	}
	return ""
}

// pagers by the flags with which they only print, where there is no terminal. What the
// user's settings make them run for a file is why they count as [Command.Alone].
var pagers = map[string]*program{
	"less": {flags: "-EFINRSXeinrs"},
	"more": {},
}

// pager judges less and more; ok is false when more is asked.
func (a *listing) pager(name string, args []Word) (ok bool) {
	p := pagers[name]
	if p == nil || len(args) == 0 {
		return false
	}
	use, why := p.parse(args)
	if why != "" || len(use.operands) == 0 {
		return false
	}
	for _, w := range use.operands {
		if w.path == "" || w.prefix == "" || w.prefix[0] == '+' || w.holds() || a.readOperand(w) != "" { // +COMMAND is one of its own
			return false
		}
	}
	a.present().Alone = true
	return true
}
