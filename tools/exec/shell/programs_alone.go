// Programs that read, but may load or run something by themselves on the way: a
// toolchain that a file of the workspace names, git for a version, what a cache
// holds. They count as read-only only where the sandbox keeps the whole call from
// changing anything and from the network ([Command.Alone]), so that what they run
// besides harms nothing. To be checked against `go help` of 1.25 and npm's manual of
// 10.
//
// Absent on purpose: what builds or runs code of the workspace (go vet, go list
// -export, make -n, cargo metadata, which runs the compiler that .cargo/config.toml
// names, python3 -m, which looks into the working directory), and what asks the
// network (npm view, npm outdated, go list -u).

package shell

import "strings"

var aloneCommands = map[string]map[string]*program{
	"go": {
		"list":    {flags: "-deps -e -f: -find -json? -m -tags: -test", style: oneDash, flagsFirst: true, here: "*"}, // runs git for the version of a program
		"doc":     {flags: "-all -c -cmd -short -src -u", style: oneDash, operands: textOperands},
		"env":     {flags: "-changed -json", style: oneDash, operands: textOperands, check: goSettings}, // asks the C compiler for its flags
		"help":    {operands: textOperands},
		"version": {flags: "-m -v", style: oneDash, flagsFirst: true},
	},
	"npm": {
		"ls": npmList, "list": npmList, "ll": npmList, "la": npmList,
		"root": {flags: "-g --global", operands: noOperands}, "prefix": {flags: "-g --global", operands: noOperands},
		"explain": {flags: "--json", operands: textOperands}, "why": {flags: "--json", operands: textOperands},
		"config":  {operands: textOperands, check: npmConfig},
		"version": {flags: "--json", operands: noOperands},
		"help":    {operands: noOperands},
		"pkg":     {flags: "--json", operands: textOperands, check: forms("only `get` is known to be harmless", "get ...")},
		"run":     {flags: "-s --json --silent", operands: noOperands}, "run-script": {flags: "-s --json --silent", operands: noOperands}, // a list of scripts
	},
	"pip": pipAlone, "pip3": pipAlone,
}

var npmList = &program{flags: "-agl --all --depth: --dev --global --include: --json --link --long --omit: --parseable --prod --production", operands: textOperands, here: "*"}

var pipAlone = map[string]*program{ // runs git for what is installed from a checkout
	"freeze": {flags: "-l --all --local --user --exclude: --exclude-editable --disable-pip-version-check", operands: noOperands},
}

// aloneCommand judges a command of [aloneCommands]; ok is false when it is none.
func (a *listing) aloneCommand(name string, args []Word) (ok bool) {
	if len(args) == 0 || !args[0].Literal {
		return false
	}
	p, ok := aloneCommands[name][args[0].Text]
	if plain, known := lookup(name); !ok || known && plain.passes(args) {
		return false
	}
	use, why := p.use(args[1:])
	if why != "" || use.unknown || a.operands(p, use) != "" {
		return false
	}
	a.present().Alone = true
	return true
}

// passes: by itself the table has nothing against these arguments.
func (p *program) passes(args []Word) bool {
	_, why := p.use(args)
	return why == ""
}

// asksItself: a program is asked only for its version or its help.
func asksItself(args []Word) bool {
	return len(args) == 1 && args[0].in(" --version --help -V ")
}

// printsVersion judges a call that asks a program for its version or help, whatever
// program it is; ok is false where the tables have an entry that decides.
func (a *listing) printsVersion(name string, args []Word) (ok bool) {
	p, known := lookup(name)
	_, wraps := wrapped[name]
	unsafe := unsafeVersions[name] != "" && unsafeVersions[name] != byToolchain // whose file the caller looks at
	if !asksItself(args) || unsafe || known && !p.only && args[0].Text == "-V" || wraps || listed(ownJudges, name) || listed(builtins, name) {
		return false
	}
	if known && p.passes(args) {
		return false
	}
	a.present().Alone = true
	return true
}

// goSettings: each operand is the name of a setting.
func goSettings(use usage) string {
	for _, w := range use.operands {
		if !w.Literal || strings.Trim(w.Text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return "`" + w.Text + "` is not the name of a setting"
		}
	}
	return ""
}

// npmConfig passes `config get NAME` unless that is a credential.
var npmConfig = unless("only `get` with the name of a setting is known to be harmless", func(use usage) bool {
	return use.are("get *") && strings.Trim(use.operands[1].Text, "abcdefghijklmnopqrstuvwxyz-") == ""
})
