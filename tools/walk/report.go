// This file puts into words what a walk found on its way. It does not know which tool says them.

package walk

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown is how a path is spelt in a result: as it is, or when it is not text or would break a line, as "base64:" and
// its bytes. Every path that a tool takes may be given either way.
func Shown(path string) string {
	if utf8.ValidString(path) && strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	return "base64:" + base64.StdEncoding.EncodeToString([]byte(path))
}

// Count writes a number with its noun: "1 file", "3 files".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// LeftOut says what ignore files left out, in phrases; none when they left out nothing.
func (t Tally) LeftOut() []string {
	var phrases []string
	if t.IgnoredFiles > 0 {
		phrases = append(phrases, Count(t.IgnoredFiles, "ignored file"))
	}
	if t.IgnoredDirs > 0 {
		shown := make([]string, len(t.Ignored))
		for i, path := range t.Ignored {
			shown[i] = Shown(path)
		}
		if t.IgnoredDirs > int64(len(shown)) {
			shown = append(shown, "...")
		}
		phrases = append(phrases, fmt.Sprintf("%s (%s)", Count(t.IgnoredDirs, "ignored directory"), strings.Join(shown, ", ")))
	}
	return phrases
}

// Unseen lists in lines what could not be read; none when all could.
func (t Tally) Unseen() []string {
	const named = 10 // a longer list tells a model no more
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

// String names what could not be read, and why.
func (f Fault) String() string { return fmt.Sprintf("could not read %s: %v", Shown(f.Path), f.Err) }
