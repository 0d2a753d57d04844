// Commands that could destroy more than a workspace. They ask in every mode. Knows words, not files: what a variable
// holds is not known, so one that may be empty counts.

package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/shell"
)

// Around is where a command would run.
type Around struct {
	Dir   string   // working directory
	Home  string   // of the user; empty: not known
	Roots []string // of the workspace
}

// Critical gives the reason why a call with these effects must not run unasked in any mode; empty: none.
func Critical(effects tools.Effects, around Around) string {
	for _, w := range effects.Writes {
		if isDevice(around.absolute(w.Name)) {
			return fmt.Sprintf("It writes to %s, which may be a block device.", w.Name)
		}
	}
	for _, c := range effects.Commands {
		if why := around.critical(c); why != "" {
			return fmt.Sprintf("`%s` %s.", c.Text, why)
		}
	}
	return ""
}

func (a Around) critical(c shell.Command) string {
	name := path.Base(c.Name)
	switch {
	case c.ForkBomb:
		return "starts copies of itself without end"
	case !c.Literal && c.Name != "":
		return ""
	case slices.Contains([]string{"rm", "rmdir"}, name), slices.Contains([]string{"chmod", "chown", "chgrp"}, name) && recursive(c):
		return a.precious(name, c, operands(c))
	case name == "mv" && len(operands(c)) > 1:
		return a.precious(name, shell.Command{}, operands(c)[:len(operands(c))-1])
	case name == "find" && removes(c):
		return a.searched(c)
	case strings.HasPrefix(name, "mkfs"), slices.Contains(disks, name):
		return "writes to a block device"
	case slices.Contains([]string{"dd", "shred"}, name) && slices.ContainsFunc(c.Words, a.overwrites):
		return "writes to a device"
	case slices.Contains([]string{"shutdown", "reboot", "poweroff", "halt", "kexec"}, name):
		return "ends the whole system"
	case slices.Contains([]string{"init", "telinit"}, name) && len(c.Words) > 1 && strings.ContainsAny(c.Words[1].Text, "06"):
		return "ends the whole system"
	case slices.Contains([]string{"systemctl", "loginctl"}, name) && slices.ContainsFunc(c.Words, endsSystem):
		return "ends the whole system"
	}
	return ""
}

// disks are programs that write to disks as a whole.
var disks = []string{
	"mke2fs", "mkdosfs", "mkntfs", "wipefs", "fdisk", "cfdisk", "gdisk", "sgdisk", "parted", "sfdisk", "mkswap", "blkdiscard", "badblocks",
	"cryptsetup", "pvcreate", "hdparm", "nvme",
}

func endsSystem(w shell.Word) bool {
	return slices.Contains([]string{"poweroff", "reboot", "halt", "kexec", "emergency", "rescue"}, strings.TrimSuffix(w.Text, ".target"))
}

// removes says whether a find takes away what it finds, or runs what might.
func removes(c shell.Command) bool {
	return slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		return slices.Contains([]string{"-delete", "rm", "rmdir", "unlink", "shred", "mv", "sh", "bash", "dash", "zsh", "python3", "perl"}, path.Base(w.Text))
	})
}

// searched says why a find that removes would be critical: of a root it may remove what it picks out.
func (a Around) searched(c shell.Command) string {
	picks := mentions(c, "-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-mtime", "-mmin", "-newer", "-size", "-empty")
	for _, word := range operands(c) {
		if strings.HasPrefix(word.Text, "-") {
			break
		}
		if picks && word.Literal && slices.Contains(a.Roots, a.absolute(word.Text)) {
			continue
		}
		if why := a.precious("find", shell.Command{}, []shell.Word{word}); why != "" {
			return why
		}
	}
	return ""
}

// precious says why removing, or changing all of, one of the operands would be critical. What the shell analysis knows of
// where the command may run is in the paths that it lists.
func (a Around) precious(verb string, c shell.Command, operands []shell.Word) string {
	for _, name := range c.Writes {
		if what := a.special(name); what != "" {
			return fmt.Sprintf("would %s %s", deed(verb), what)
		}
	}
	for _, word := range operands {
		text := word.Text
		if !word.Literal {
			text = unquoted(text)
		}
		before, after, expands := strings.Cut(text, "$")
		switch {
		case word.Literal:
		case before == "" && strings.Contains(after, "/") && !strings.Contains(after, ":?"):
			return fmt.Sprintf("would reach / if %s begins with an empty variable", word.Text)
		case expands && before != "" && strings.HasSuffix(before, "/") && a.special(before) != "":
			return fmt.Sprintf("would %s %s if a variable in %s is empty", deed(verb), a.special(before), word.Text)
		case expands:
			continue
		}
		if base, last := path.Split(text); !word.Literal && isEverything(last) && a.special(base) != "" {
			return fmt.Sprintf("reaches everything in %s", base)
		}
		if what := a.special(strings.TrimSuffix(text, "/*")); what != "" {
			return fmt.Sprintf("would %s %s", deed(verb), what)
		}
	}
	return ""
}

// isEverything says whether a glob takes in all there is, or all that is hidden.
func isEverything(glob string) bool {
	return strings.Trim(glob, "*?") == "" && glob != "" || strings.HasPrefix(glob, ".") && strings.ContainsAny(glob, "*?[")
}

// deed says in a word what a program does to what it is given.
func deed(program string) string {
	switch {
	case strings.HasPrefix(program, "ch"):
		return "change all of"
	case program == "mv":
		return "move away"
	}
	return "remove"
}

// places are the ways in which scripts name directories that are known.
var places = strings.NewReplacer(
	`"`, "", "${HOME}", "~", "${HOME:?}", "~", "$HOME", "~", "${PWD}", ".", "${PWD:?}", ".", "$PWD", ".", "$(pwd)", ".", "`pwd`", ".",
	"$(git rev-parse --show-toplevel)", ".",
)

// unquoted takes the quotes off a word that is not literal, and puts in what is known of the expressions that name
// directories, and that * stands for what is in this one.
func unquoted(text string) string {
	text = places.Replace(text)
	if !strings.Contains(text, "/") && isEverything(text) {
		return "./" + text
	}
	return text
}

// special names what is behind a path that nobody wants to lose; empty: nothing special.
func (a Around) special(name string) string {
	name = a.absolute(name)
	switch {
	case name == "/":
		return "/"
	case path.Dir(name) == "/":
		return name + ", a child of /"
	case a.Home != "" && (name == path.Clean(a.Home) || strings.HasPrefix(path.Clean(a.Home), name+"/")):
		return "the home directory"
	}
	for _, root := range a.Roots {
		if name == root || strings.HasPrefix(root, name+"/") {
			return "a root of the workspace"
		}
	}
	return ""
}

// absolute gives what a name stands for, with a leading ~, links left as they are.
func (a Around) absolute(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && rest != "" && rest[0] != '/' {
		return path.Join("/", a.Home) // another's, which is as dear to him
	}
	if rest, ok := strings.CutPrefix(name, "~"); ok {
		return path.Join("/", a.Home, rest)
	}
	if !path.IsAbs(name) {
		return path.Join(a.Dir, name)
	}
	return path.Clean(name)
}

// mentions says whether one of the texts is a word of the command.
func mentions(c shell.Command, texts ...string) bool {
	return slices.ContainsFunc(c.Words, func(w shell.Word) bool { return slices.Contains(texts, w.Text) })
}

func operands(c shell.Command) (words []shell.Word) {
	for i, word := range c.Words {
		if i > 0 && !(word.Literal && strings.HasPrefix(word.Text, "-")) {
			words = append(words, word)
		}
	}
	return words
}

// recursive says whether a chmod or chown goes into directories.
func recursive(c shell.Command) bool {
	return slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		long := strings.HasPrefix(w.Text, "--")
		return long && len(w.Text) > 4 && strings.HasPrefix("--recursive", w.Text) || !long && strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "R")
	})
}

// overwrites says whether a word of dd or shred names a device as what is written.
func (a Around) overwrites(w shell.Word) bool {
	if rest, ok := strings.CutPrefix(w.Text, "of="); ok && strings.HasPrefix(unquoted(rest), "$") {
		return true
	}
	return isDevice(a.absolute(strings.TrimPrefix(unquoted(w.Text), "of=")))
}

// harmless are the names in /dev behind which there is no disk: pseudo-devices, terminals, descriptors, shared memory,
// and the names that bash makes connections of.
var harmless = []string{
	"null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "ptmx", "console",
	"fd/", "pts/", "shm/", "mqueue/", "tcp/", "udp/",
}

// isDevice says whether a path may be that of a device with something on it.
func isDevice(name string) bool {
	if name == "/proc/sysrq-trigger" || strings.HasPrefix(name, "/sys/power/") {
		return true
	}
	device, ok := strings.CutPrefix(name, "/dev/")
	return ok && !slices.ContainsFunc(harmless, func(h string) bool {
		return device == h || strings.HasSuffix(h, "/") && strings.HasPrefix(device, h)
	})
}
