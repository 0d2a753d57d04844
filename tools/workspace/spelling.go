// Names that a file system takes for each other: upper and lower case, composed and decomposed characters, short names
// for long ones. A rule speaks of the one that the directory holds; this finds it. It knows no rules.

package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spelled returns part as its directory, the real path parent, spells it. info is what part leads to there.
func spelled(parent, part string, info fs.FileInfo) string {
	if !mayBeAlias(parent, part, info) {
		return part
	}
	listed, alike := lookUp(parent, part)
	if listed {
		return part
	}
	isIt := func(name string) bool {
		same, err := os.Lstat(filepath.Join(parent, name))
		return err == nil && os.SameFile(info, same)
	}
	if i := slices.IndexFunc(alike, isIt); i >= 0 {
		return alike[i]
	}
	found := part
	eachName(parent, func(name string) bool {
		if isIt(name) {
			found = name
		}
		return found == part
	})
	return found
}

// lookUp reports that dir lists part in this very spelling, and otherwise what it lists that differs by case alone.
func lookUp(dir, part string) (listed bool, alike []string) {
	eachName(dir, func(name string) bool {
		if strings.EqualFold(name, part) {
			alike = append(alike, name)
		}
		listed = name == part
		return !listed
	})
	return listed, alike
}

// mayBeAlias reports that only the directory can tell whether part is its own spelling: the other case of the name leads
// to the same file, or the name is of a kind that some file systems translate whatever its case: with characters beyond
// ASCII, like a short name, or with an ending that is not kept.
func mayBeAlias(parent, part string, info fs.FileInfo) bool {
	if strings.ContainsFunc(part, func(r rune) bool { return r >= utf8.RuneSelf || r == '~' }) || strings.TrimRight(part, ". ") != part {
		return true
	}
	other := strings.Map(swapCase, part)
	if other == part {
		return false
	}
	same, err := os.Lstat(filepath.Join(parent, other))
	return err == nil && os.SameFile(info, same)
}

func swapCase(r rune) rune {
	if upper := unicode.ToUpper(r); upper != r {
		return upper
	}
	return unicode.ToLower(r)
}

// eachName gives the names in a directory to next until that is satisfied, which it says with false.
func eachName(dir string, next func(name string) bool) {
	d, err := os.OpenFile(dir, openDirectory, 0)
	if err != nil {
		return
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if !next(name) {
				return
			}
		}
		if err != nil { // its end, as a rule
			return
		}
	}
}

// respelled returns path, on which there is no link, with every component as its directory spells it; empty when there is
// a link on it after all, or nothing.
func respelled(path string) string {
	r := resolver{named: path, at: "/"} // may lead through no link
	if r.follow(path) != nil || r.missing > 0 {
		return ""
	}
	return r.at
}
