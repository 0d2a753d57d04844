// Builtins of bash whose arguments are not flags and operands: cd, echo,
// printf, test, read and those that take none. Source: bash(1) 5.2.

package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// changesReading is the reason against builtins that other commands depend on.
const changesReading = "it changes how the shell reads or finds commands"

// builtin judges a builtin; ok is false when name is not one of those here.
func (a *judge) builtin(name string, args []Word) (why string, ok bool) {
	switch name {
	case ":", "true", "false", "echo", "exit", "return", "break", "continue":
		return "", true
	case "cd":
		return a.cdCommand(args), true
	case "pushd", "popd":
		a.stack(args)
		return "it changes the list of directories", true
	case "printf":
		args, why := a.printfSets(args)
		if why == "" {
			why = printf(args)
		}
		return why, true
	case "test":
		return a.test(args), true
	case "[":
		if n := len(args) - 1; n >= 0 && args[n].is("]") {
			return a.test(args[:n]), true
		}
		return "`[` has no `]`", true
	case "read":
		return a.readCommand(args), true
	case "kill":
		if len(args) == 0 {
			return shows[name].why, true
		}
	case "shopt":
		if len(args) == 1 && args[0].Literal && !args[0].dashed() {
			return "", true // whether an option is set
		}
	case "unalias", "enable", "bind":
		return changesReading, true
	case "source", ".":
		return "it runs a script from a file", true
	}
	shown, ok := shows[name]
	if len(args) > 1 || len(args) == 1 && !args[0].in(shown.flags) {
		why = shown.why
	}
	return why, ok
}

// shows are builtins that only show something without arguments, or with one of these flags; why is
// the reason against any others.
var shows = each(map[string]struct{ flags, why string }{
	"jobs dirs times wait env": {"", "with arguments it does more than show something"},
	"umask":                    {" -S -p ", "it changes the permissions of files to come"},
	"ulimit":                   {" -a -c -d -f -l -m -n -s -t -u -v -Hn -Sn -Ha -Sa ", "it changes a limit"},
	"trap":                     {" -l -p ", "it keeps a command to run it later"},
	"kill":                     {" -l -L ", "it signals a process, perhaps to end it"},
	"alias":                    {" -p ", changesReading},
	"shopt":                    {" -p -s -u ", changesReading},
	"hash":                     {" -l ", changesReading},
})

func (a *judge) cdCommand(args []Word) string {
	for len(args) > 0 && args[0].Literal && (args[0].Text == "-L" || args[0].Text == "-P" || args[0].Text == "--") {
		args = args[1:]
	}
	if len(args) == 0 {
		a.cd(Word{Text: "~", shape: one, prefix: "~", path: "~"})
		return ""
	}
	w := args[0]
	if len(args) > 1 || w.shape != known && w.shape != one || w.Literal && w.dashed() && w.Text != "-" {
		a.cd(Word{shape: many})
		return "where it goes is only known when it runs"
	}
	if w.Text == "-" || !w.Literal && !w.solid { // where it was before, or a flag
		w.path, w.more = "", nil
	}
	a.cd(w)
	return ""
}

// stack follows pushd and popd. What is on the list the shell has been in, so
// that only a new directory is news.
func (a *judge) stack(args []Word) {
	a.moved = true
	for _, w := range args {
		if !w.Literal || strings.Trim(strings.TrimLeft(w.Text, "+-"), "0123456789n") != "" {
			a.cd(w)
		}
	}
}

// storesCount finds %n, with which printf stores into a variable.
var storesCount = regexp.MustCompile(`%[^%a-zA-Z]*[hlLjztq]*n`)

func printf(args []Word) string {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	} else if len(args) > 0 && strings.HasPrefix(args[0].prefix, "-v") {
		return "-v sets a variable"
	} else if len(args) > 0 && !args[0].solid {
		return "`" + args[0].Text + "` may become -v, which sets a variable"
	}
	if len(args) == 0 {
		return ""
	}
	if format := args[0]; !format.Literal {
		if len(args) > 1 || format.shape != one {
			return "its format is only known when it runs, and %n in it sets a variable"
		}
	} else if storesCount.MatchString(strings.ReplaceAll(format.Text, "%%", "")) {
		return "%n sets a variable"
	}
	return ""
}

// fileComparisons are the tests of two files.
const fileComparisons = " -nt -ot -ef "

// test judges test and [. Its only trap is -v with a subscript, which needs
// two arguments side by side; so no two unknown ones may be neighbours, none
// may become several, and none may stand before something with a subscript.
func (a *listing) test(args []Word) string {
	for i, w := range args {
		if w.in(fileComparisons) && i > 0 && i+1 < len(args) {
			a.look(args[i-1])
			a.look(args[i+1])
		}
		switch {
		case w.is("-v") && i+1 < len(args) && args[i+1].Literal && syntax.ValidName(args[i+1].Text):
			continue
		case w.Literal && (w.Text == "-v" || w.Text == "-R"):
			return w.Text + " takes a name, whose subscript can run commands"
		case w.Literal || w.solid && w.shape < many:
			if i > 0 && args[i-1].Literal && isFileTest(args[i-1].Text) {
				a.look(w)
			}
			continue
		case w.shape != one:
			return "`" + w.Text + "` may become several arguments; quote it"
		}
		if i+1 < len(args) && (!args[i+1].Literal || strings.Contains(args[i+1].Text, "[")) {
			return "`" + w.Text + "` may become -v, whose subscript can run commands"
		}
		if i > 0 && args[i-1].Literal && isFileTest(args[i-1].Text) {
			a.unlisted()
		}
	}
	return ""
}

// look lists a file whose facts are asked for, and not its content.
func (a *listing) look(w Word) {
	if w.path == "" {
		a.unlisted()
	}
	a.read(w.paths()...)
}

func isFileTest(op string) bool {
	return len(op) == 2 && op[0] == '-' && strings.IndexByte("abcdefghkprsuwxGLNOS", op[1]) >= 0
}
