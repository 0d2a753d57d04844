// Programs that copy files and whole directories to other places and are never
// read-only: what they copy is listed, so that rules about reading hold for them.
// It errs towards more: files that lists and patterns leave out are listed too.

package shell

import "strings"

// copied lists the operands of a program that copies, as far as they are paths.
func (a *listing) copied(name string, args []Word) {
	if (name == "tar" || name == "bsdtar") && !packs(args) {
		return
	}
	for i, w := range args {
		inside := w.dashed() || i == 0 && !strings.Contains(w.Text, ".") && name != "rsync" && name != "scp"
		last := i == len(args)-1 && (name == "rsync" || name == "scp")
		if inside || last || remote(w.Text) {
			continue
		}
		a.read(w.paths()...)
	}
}

// packs: tar is told to write an archive, by a letter in its first word or in full.
func packs(args []Word) bool {
	for i, w := range args {
		flags, dash := strings.CutPrefix(w.Text, "-")
		switch {
		case strings.HasPrefix(flags, "-") && dash:
			if listed(" --create --append --update --concatenate ", w.Text) {
				return true
			}
		case (dash || i == 0) && strings.ContainsAny(flags, "cruA"):
			return true
		}
	}
	return false
}

// remote: HOST:PATH, or a URL.
func remote(s string) bool {
	before, _, ok := strings.Cut(s, ":")
	return ok && !strings.Contains(before, "/")
}
