// The messages about what a walk left out or could not read.

package walk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// LeftOut returns phrases about what ignore files and rules left out.
func (t Tally) LeftOut() []string {
	var phrases []string
	if t.IgnoredFiles > 0 {
		phrases = append(phrases, text.Count(t.IgnoredFiles, "ignored file"))
	}
	if t.IgnoredDirs > 0 {
		shown := make([]string, len(t.Ignored))
		for i, path := range t.Ignored {
			shown[i] = workspace.NameOf(path)
		}
		if t.IgnoredDirs > int64(len(shown)) {
			shown = append(shown, "...")
		}
		phrases = append(phrases, fmt.Sprintf("%s (%s)", text.Count(t.IgnoredDirs, "ignored directory"), strings.Join(shown, ", ")))
	}
	return append(phrases, t.denied()...)
}

// denied returns a phrase about what rules left out, if anything.
func (t Tally) denied() []string {
	var kinds []string
	if t.DeniedFiles > 0 {
		kinds = append(kinds, text.Count(t.DeniedFiles, "file"))
	}
	if t.DeniedDirs > 0 {
		kinds = append(kinds, text.Count(t.DeniedDirs, "directory"))
	}
	if kinds == nil {
		return nil
	}
	them := "them"
	if t.DeniedFiles+t.DeniedDirs == 1 {
		them = "it"
	}
	return []string{strings.Join(kinds, " and ") + " because a rule denies reading " + them}
}

// Unseen returns lines about what could not be read.
func (t Tally) Unseen() []string {
	const named = 10 // a longer list is of no more use to a model
	var lines []string
	for _, f := range t.Faults {
		lines = append(lines, f.String())
	}
	slices.Sort(lines)
	lines = lines[:min(named, len(lines))]
	if more := t.Unread - int64(len(lines)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// Remarks returns lines about why a search is incomplete, and about what it left out.
func Remarks(reasons, leftOut []string) (lines []string) {
	if len(reasons) > 0 {
		lines = append(lines, "Incomplete: "+strings.Join(reasons, "; ")+".")
	}
	if len(leftOut) > 0 {
		lines = append(lines, "Left out: "+strings.Join(leftOut, ", ")+".")
	}
	return lines
}

// String returns what could not be read, and why.
func (f Fault) String() string {
	return fmt.Sprintf("could not read %s: %v", workspace.NameOf(f.Path), f.Err)
}
