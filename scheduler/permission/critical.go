// Commands that could destroy more than a workspace. They ask in every mode. Knows words, not files: what a variable
// holds is not known, so one that may be empty counts.

package permission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// Around is where a command would run.
type Around struct {
	Dir   string   // working directory
	Home  string   // of the user; empty: not known
	Roots []string // of the workspace
}

// Critical gives the reason why one of the commands or redirections must not run unasked in any mode; empty: none.
func Critical(commands []shell.Command, around Around) string {
	for _, c := range commands {
		if why := around.critical(c); why != "" {
			return fmt.Sprintf("`%s` %s.", c.Text, why)
		}
	}
	return ""
}

func (a Around) critical(c shell.Command) string {
	name := path.Base(c.Name)
	switch {
	case !c.Literal && c.Name != "":
		return ""
	case slices.Contains([]string{"rm", "rmdir"}, name), slices.Contains([]string{"chmod", "chown", "chgrp"}, name) && recursive(c):
		return a.precious(name, operands(c))
	case name == "find" && slices.ContainsFunc(c.Words, func(w shell.Word) bool { return w.Text == "-delete" }):
		return a.precious(name, operands(c))
	case strings.HasPrefix(name, "mkfs"), slices.Contains([]string{"wipefs", "fdisk", "parted", "sfdisk", "mkswap", "blkdiscard"}, name):
		return "writes to a block device"
	case name == "dd" && slices.ContainsFunc(c.Words, func(w shell.Word) bool { return device(strings.TrimPrefix(w.Text, "of="), w.Text) }):
		return "writes to a device"
	case slices.Contains([]string{"shutdown", "reboot", "poweroff", "halt", "kexec"}, name):
		return "ends the whole system"
	case slices.Contains([]string{"init", "telinit"}, name) && len(c.Words) > 1 && strings.ContainsAny(c.Words[1].Text, "06"):
		return "ends the whole system"
	case name == "systemctl" && slices.ContainsFunc(c.Words, func(w shell.Word) bool {
		return slices.Contains([]string{"poweroff", "reboot", "halt", "kexec", "emergency", "rescue"}, w.Text)
	}):
		return "ends the whole system"
	}
	return ""
}

// precious says why removing, or changing all of, one of the operands would be critical.
func (a Around) precious(verb string, operands []shell.Word) string {
	for _, word := range operands {
		if !word.Literal {
			if text := strings.Trim(word.Text, `"`); strings.HasPrefix(text, "$") && strings.Contains(text, "/") {
				return fmt.Sprintf("would reach / if %s begins with an empty variable", word.Text)
			}
			if base, ok := strings.CutSuffix(word.Text, "/*"); ok && a.special(base+"/") != "" {
				return fmt.Sprintf("reaches everything in %s", base+"/")
			}
			if !strings.HasPrefix(word.Text, "~") {
				continue
			}
		}
		if what := a.special(strings.TrimSuffix(word.Text, "/*")); what != "" {
			return fmt.Sprintf("would let %s loose on %s", verb, what)
		}
	}
	return ""
}

// special names what is behind a path that nobody wants to lose; empty: nothing special.
func (a Around) special(name string) string {
	if strings.HasPrefix(name, "~") {
		name = path.Join(a.Home, strings.TrimPrefix(name, "~"))
	}
	if !path.IsAbs(name) {
		name = path.Join(a.Dir, name)
	}
	name = path.Clean(name)
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

// device says whether a dd operand is an output that is a device with something on it.
func device(target, whole string) bool {
	return strings.HasPrefix(whole, "of=/dev/") && !slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/full"}, target)
}
