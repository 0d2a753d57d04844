// A simple command: listed with its words and assignments, then judged by the
// program it names. What the programs do is in the files named after them and
// in the table.

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyzer) call(c *syntax.CallExpr) (last string) {
	if !a.walk(wordsOfAssignment * len(c.Assigns)) {
		return ""
	}
	assigns := a.assigns(c.Assigns)
	sets := a.sources(c.Assigns)
	text := a.source(c)
	words := a.words(c.Args)
	if !a.walk(wordsOfCommand + len(words) + len(a.variables)/bytesOfWord) { // variables are looked through
		return ""
	}
	if len(words) == 0 {
		a.list(Command{Text: text, Literal: true, Assigns: steering(assigns), Sets: sets}, func() {
			a.inherited("", text)
			a.setOwn(c.Assigns, assigns, text)
			a.valuesMayRun(slices.DeleteFunc(assigns, func(as assign) bool { return ownName(as.name) }))
		})
		return ""
	}
	if f, unsure := a.certain(words[0]); f != nil && len(assigns) == 0 {
		a.follow(f, words, text)
		return ""
	} else if f != nil || unsure {
		a.hidden(text, "which of a program and a function it runs is not certain")
	}
	i, before, instances := len(a.out.Commands), len(a.refusals), a.instances(c)
	target := a.renamed[words[0].Text]
	last = a.run(words, assigns, text)
	a.out.Commands[i].Sets = sets
	if len(a.refusals) > before {
		a.as(i, func() {
			a.callFunction(words)
			if target != "" {
				a.denied("hash", append([]Word{literalWord(target)}, words[1:]...))
			}
			for _, words := range instances {
				a.denied("expansion", words)
			}
		})
	}
	return last
}

// sources are assignments as they are written.
func (a *origin) sources(nodes []*syntax.Assign) (sets []Assignment) {
	for _, as := range nodes {
		if as.Name != nil && as.Value != nil {
			sets = append(sets, Assignment{as.Name.Value, Word{Text: a.source(as.Value)}})
		}
	}
	return sets
}

// steering are the names whose assignment is not harmless.
func steering(assigns []assign) (names []string) {
	for _, as := range assigns {
		if !as.harmless {
			names = append(names, as.name)
		}
	}
	return names
}

// add lists a command and returns its index.
func (a *findings) add(c Command) int {
	c.Via, c.DenyOnly, c.Remote, c.Dirs = a.scope.via, a.scope.denyOnly, a.scope.remote, a.cwds
	if len(a.scope.assigns) > 0 {
		c.Assigns = append(slices.Clone(a.scope.assigns), c.Assigns...)
	}
	a.out.Commands = append(a.out.Commands, c)
	return len(a.out.Commands) - 1
}

// list lists a command, and what judge reads, writes and refuses as its doing.
func (a *findings) list(c Command, judge func()) {
	i, before := a.add(c), len(a.refusals)
	a.as(i, judge)
	a.judged(i, before)
}

// as lists what judge reads and writes as the doing of command i.
func (a *findings) as(i int, judge func()) {
	outer := a.current
	a.current = i
	judge()
	a.current = outer
}

// run lists and judges one command.
func (a *analyzer) run(words []Word, assigns []assign, text string) (last string) {
	if words[0].is("--") && len(words) > 1 { // behind the keyword time; no program has that name
		words = words[1:]
	}
	a.list(Command{
		Name: words[0].Text, Words: withoutInput(words), Text: text, Literal: words[0].Literal, Assigns: steering(assigns),
	}, func() { last = a.runAs(words, assigns, text) })
	return last
}

func (a *analyzer) runAs(words []Word, assigns []assign, text string) (last string) {
	if !words[0].Literal {
		if words[0].shape == known {
			a.present().Name = words[0].prefix
		}
		a.unlisted()
		a.forget()
		a.refuse(text, "which program it runs is only known when it runs")
		return ""
	}
	for _, as := range assigns {
		splits := as.name == "IFS" && words[0].Text == "read" && as.value.Literal
		if !as.harmless {
			a.reset(as.name) // eval would see it
		}
		if !as.harmless && !splits {
			a.refuse(text, "`"+as.name+"=` can change what it runs or reads")
		}
	}
	a.valuesMayRun(assigns)
	if a.renamed[words[0].Text] != "" {
		a.unlisted()
		a.refuse(text, "`hash -p` has made its name that of another program")
	}
	a.inherited(words[0].Text, text)
	if a.scope.denyOnly && !a.scope.followed {
		a.refuse(text, "what runs it is not read-only")
	}
	by := judge{a}
	why, last := by.judge(words)
	if why != "" {
		a.refuse(text, why)
		a.maySet(words)
		if why != changesFiles && why != mayAppend {
			a.unlisted()
		}
		if len(a.present().Writes) == 0 && (why != mayAppend || words[0].Text != "nohup") {
			a.writesOperands(words)
		}
		a.readsUnknown(words)
		by.fedWords(base(words[0].Text))
	}
	return last
}

// judge decides by program. Names that are not here are looked up in the
// table of programs that only flags and operands tell apart.
func (a *judge) judge(words []Word) (why, last string) {
	name, ok := systemName(words[0].Text)
	if base(words[0].Text) == "git" {
		a.present().noteSubcommand()
	}
	if !ok {
		return a.byPath(words), ""
	}
	args := words[1:]
	a.carried(name, args)
	a.subscripts(name, args)
	if compilerPrints(name, args) || a.looked && (a.printsVersion(name, args) || a.aloneCommand(name, args) || a.pager(name, args)) {
		return "", name
	}
	switch name {
	case "timeout", "nice", "stdbuf", "nohup", "command", "builtin":
		return a.wrapper(name, args)
	case "xargs":
		return a.xargs(args), ""
	case "eval":
		return a.eval(args)
	case "bash", "sh", "dash", "zsh", "ksh":
		return a.shell(name, args)
	case "git":
		return a.gitCommand(args)
	case "find":
		why = a.find(args)
		a.present().Names = why == ""
		return why, "find"
	case "fd", "fdfind":
		if why, ok := a.fd(args); ok {
			return why, ""
		}
	case "sed", "gsed":
		return a.sed(args), "sed"
	case "awk", "gawk", "mawk", "nawk":
		return a.awk(args), "awk"
	case "set":
		return a.set(args), "set"
	case "getent":
		return a.getent(args), name
	case "tar", "zip", "rsync", "scp", "7z", "bsdtar":
		a.copied(name, args)
	case "hash", "bind", "enable", "source", ".", "trap", "alias", "su", "runuser", "sg", "newgrp", "at", "batch", "sudo", "doas":
		a.texts(name, args)
	}
	if spec, ok := wrappers[name]; ok && (name != "env" || len(args) > 0) {
		return a.judgeWrapper(name, spec, args), ""
	}
	if why, ok := a.narrow(name, args); ok {
		if why != "" && !listed(plainPrograms, name) {
			a.mayRun(args)
		}
		return why, name
	}
	if why, ok := a.builtin(name, args); ok {
		a.present().Names = why == ""
		return why, name
	}
	return a.program(name, args)
}

// byPath judges a program that is named by a path outside the system's directories.
func (a *judge) byPath(words []Word) (why string) {
	if a.looked && asksItself(words[1:]) {
		a.present().Alone = true
		return ""
	}
	a.unknownProgram(base(words[0].Text), words[1:])
	return "a program that is named by its path can be anything"
}

// systemName is the name to look up: bare, or in one of the directories that
// belong to the system.
func systemName(name string) (string, bool) {
	dir, file := name[:strings.LastIndexByte(name, '/')+1], base(name)
	switch dir {
	case "", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/":
		return file, true
	}
	return "", false
}

// withoutInput leaves out what xargs appends, which is not in the source.
func withoutInput(words []Word) []Word {
	if n := len(words) - 1; n >= 0 && words[n].input {
		return words[:n:n]
	}
	return words
}

// harmlessNames steer no program to another file or program: language, time
// zone, terminal, colours, verbosity, and what a build is for. Sources:
// locale(7), tzset(3), no-color.org and the documentation of node, cargo and go.
const harmlessNames = " LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS LINES NODE_ENV RUST_BACKTRACE RUST_LOG CI PYTHONUNBUFFERED" +
	" PYTHONDONTWRITEBYTECODE TERM COLORTERM PORT GOOS GOARCH CGO_ENABLED PAGER GIT_PAGER GREP_COLOR GREP_COLORS BLOCK_SIZE BLOCKSIZE LC_ALL" +
	" LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME "

// An assign is an assignment in front of a command, or without one.
type assign struct {
	name  string
	value Word
	items []Word // of an array
	// harmless: the name is on the fixed list of those that steer no program
	// to another file or program, and the value is plain literal text.
	harmless bool
}

func (a *analyzer) assigns(nodes []*syntax.Assign) (list []assign) {
	for _, as := range nodes {
		list = append(list, a.assign(as))
	}
	return list
}

func (a *analyzer) assign(as *syntax.Assign) assign {
	out := assign{value: literalWord("")}
	if as.Name != nil {
		out.name = as.Name.Value
	}
	if plainArray(as) {
		for _, e := range as.Array.Elems {
			out.items = append(out.items, a.words([]*syntax.Word{e.Value})...)
		}
		return out
	}
	if as.Index != nil || as.Array != nil {
		a.hidden(a.source(as), "what is in an array is not followed")
		a.array(as)
		return out
	}
	plain := true
	if as.Value != nil {
		out.value = a.word(as.Value)
		plain = out.value.Literal && plainValue(out.name, out.value.Text)
	}
	out.harmless = listed(harmlessNames, out.name) && plain && !as.Append && !as.Naked
	return out
}

func (a *analyzer) array(as *syntax.Assign) {
	a.arithmetic(as.Index, a.source(as))
	a.expansions(as.Value)
	if as.Array == nil {
		return
	}
	for _, e := range as.Array.Elems {
		a.arithmetic(e.Index, a.source(as))
		a.expansions(e.Value)
	}
}

// plainValue leaves no way to name a file outside the system's own tables.
// Only a time zone has slashes in its name.
func plainValue(name, s string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:@+-="
	if name == "TZ" && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, ":") && !strings.Contains(s, "..") {
		s = strings.ReplaceAll(s, "/", "")
	}
	if name == "PAGER" || name == "GIT_PAGER" { // the name of a program
		return s == "cat"
	}
	return strings.Trim(s, plain) == "" && (!listed(" LANG LC_ALL LC_CTYPE ", name) || plainCharset(s))
}

// plainCharset: no byte of ASCII is part of another character, as a backslash
// is in Big5 and GBK, where bash and sed find other ends of words than here.
func plainCharset(locale string) bool {
	charset := strings.ToLower(locale)
	return charset == "" || charset == "c" || charset == "posix" || strings.HasSuffix(charset, ".utf-8") || strings.HasSuffix(charset, ".utf8")
}
