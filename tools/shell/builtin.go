// Builtins of bash whose arguments are not flags and operands: cd, echo,
// printf, test, read and those that take none. Source: bash(1) 5.2.

package shell

import (
	"regexp"
	"strings"
)

// builtin judges a builtin; ok is false when name is not one of those here.
func (a *analyzer) builtin(name string, args []Word) (why string, ok bool) {
	switch name {
	case ":", "true", "false", "echo", "exit", "return", "break", "continue":
		return "", true
	case "cd":
		return a.cdCommand(args), true
	case "printf":
		return printf(args), true
	case "test":
		return a.test(args), true
	case "[":
		if n := len(args) - 1; n >= 0 && args[n].Literal && args[n].Text == "]" {
			return a.test(args[:n]), true
		}
		return "`[` has no `]`", true
	case "read":
		return readCommand(args), true
	case "jobs", "dirs", "times", "wait", "umask", "env":
		if len(args) > 0 {
			return "only without arguments it is known to be harmless", true
		}
		return "", true
	case "ulimit":
		if len(args) != 1 || args[0].Text != "-a" {
			return "it sets a limit", true
		}
		return "", true
	}
	return "", false
}

func (a *analyzer) cdCommand(args []Word) string {
	for len(args) > 0 && args[0].Literal && (args[0].Text == "-L" || args[0].Text == "-P" || args[0].Text == "--") {
		args = args[1:]
	}
	if len(args) == 0 {
		a.cd(Word{Text: "~", shape: one, prefix: "~", path: "~"})
		return ""
	}
	w := args[0]
	if len(args) > 1 || w.shape != known && w.shape != one || w.Literal && strings.HasPrefix(w.Text, "-") && w.Text != "-" {
		a.cd(Word{shape: many})
		return "where it goes is not certain"
	}
	if w.Text == "-" {
		w.path = ""
	}
	a.cd(w)
	return ""
}

// storesCount finds %n, with which printf stores into a variable.
var storesCount = regexp.MustCompile(`%[^%a-zA-Z]*[hlLjztq]*n`)

func printf(args []Word) string {
	if len(args) > 0 && args[0].Literal && args[0].Text == "--" {
		args = args[1:]
	} else if len(args) > 0 && !args[0].solid {
		return "`" + args[0].Text + "` may become -v, which sets a variable"
	}
	if len(args) == 0 {
		return ""
	}
	if format := args[0]; !format.Literal {
		if len(args) > 1 || format.shape != one {
			return "a format that is not literal can set a variable"
		}
	} else if storesCount.MatchString(strings.ReplaceAll(format.Text, "%%", "")) {
		return "%n sets a variable"
	}
	return ""
}

// test judges test and [. Its only trap is -v with a subscript, which needs
// two arguments side by side; so no two unknown ones may be neighbours, none
// may become several, and none may stand before something with a subscript.
func (a *analyzer) test(args []Word) string {
	for i, w := range args {
		switch {
		case w.Literal && (w.Text == "-v" || w.Text == "-R"):
			return w.Text + " takes a name, whose subscript can run commands"
		case w.Literal || w.shape == one && w.solid:
			if i > 0 && args[i-1].Literal && isFileTest(args[i-1].Text) {
				a.read(w.path)
				a.out.Unlisted = a.out.Unlisted || w.path == ""
			}
			continue
		case w.shape != one:
			return "`" + w.Text + "` may become several arguments; quote it"
		}
		if i+1 < len(args) && (!args[i+1].Literal || strings.Contains(args[i+1].Text, "[")) {
			return "`" + w.Text + "` may become -v, whose subscript can run commands"
		}
		if i > 0 && args[i-1].Literal && isFileTest(args[i-1].Text) {
			a.out.Unlisted = true
		}
	}
	return ""
}

func isFileTest(op string) bool {
	return len(op) == 2 && op[0] == '-' && strings.IndexByte("abcdefghkprsuwxGLNOS", op[1]) >= 0
}

// readCommand passes `read -r name ...` with names of the script's own.
func readCommand(args []Word) string {
	for i, w := range args {
		if i == 0 && w.Literal && w.Text == "-r" {
			continue
		}
		if !w.Literal || !plainName(w.Text) {
			return "it sets `" + w.Text + "`"
		}
	}
	if len(args) == 0 {
		return "it sets REPLY"
	}
	return ""
}
