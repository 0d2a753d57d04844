// Which files below a directory a command comes to that searches it, or that gets their names from another one.

package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/grep/selection"
)

// unexpanded returns the pattern that the value of a flag is for its program; false if bash may make names of it.
func (s scene) unexpanded(flag shell.Flag) (glob string, ok bool) {
	if flag.Value.Literal {
		return flag.Value.Text, true
	}
	glob, word, ok := flag.Glob()
	return glob, ok && !s.steered && len(matching(s.places, shell.Quoted(s.dir)+"/"+word)) == 0
}

// given looks for something readDenied among the files below a directory that another command names to one; ok is false when
// that is not how it comes to them.
func (s scene) given(ctx context.Context, c *shell.Command, a *permission.Access, readDenied func(real string) string) (found, why string, sure, ok bool) {
	names := func(word shell.Word) bool { return word.Literal && at(word.Text, s.dir) == a.Named }
	if c.Picks == nil || slices.ContainsFunc(c.Words[min(1, len(c.Words)):], names) ||
		!slices.ContainsFunc(c.Picks.From, func(from string) bool { return at(from, s.dir) == a.Named }) {
		return "", "", false, false
	}
	taken := func(real string) string {
		rel, err := filepath.Rel(a.OnDisk(), real)
		switch {
		case err != nil || !fitsAll(c.Picks.Names, filepath.Base(rel)):
			return ""
		case c.Picks.Apart && strings.ContainsAny(rel, " \t\n'\"\\"):
			return "perhaps a rule, as its name comes apart at blanks and quotes into others,"
		case c.Picks.Kept && strings.HasPrefix(rel, "-"):
			return "perhaps a rule, as its name is taken for a flag,"
		}
		if why := readDenied(real); why != "" {
			return why
		}
		return s.behind(real, readDenied)
	}
	if c.Picks.Kept {
		found, why, sure = s.tracked(ctx, a.OnDisk(), taken)
	} else {
		found, why, sure = s.places.FindReadDenied(ctx, a.OnDisk(), taken)
	}
	return found, why, sure, true
}

// behind judges the target of a link; empty: it is not a link.
func (s scene) behind(real string, readDenied func(real string) string) string {
	if info, err := os.Lstat(real); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return ""
	}
	p, err := s.places.Resolve("/", real)
	if err != nil {
		return "" // nothing that could be read
	}
	return readDenied(p.Real)
}

// fitsAll reports whether a name fits every one of the patterns.
func fitsAll(globs []string, name string) bool {
	return !slices.ContainsFunc(globs, func(glob string) bool { return !selection.MayFit(glob, name) })
}
