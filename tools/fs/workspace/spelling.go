// Spellings that a file system treats as one name: upper and lower case, composed and decomposed
// characters, short names for long ones. Rules are written for the spelling in the directory; this
// file finds it.

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

// spelled returns part as it is spelled in its directory, the real path parent. info is what part
// leads to there.
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

// lookUp reports whether dir lists part in exactly this spelling. Otherwise alike holds the entries
// that differ only in case.
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

// mayBeAlias reports whether only the directory listing can show if part is its own spelling. That
// is so if the other case of the name leads to the same file, or if some file systems translate
// such names regardless of case: names with characters beyond ASCII, like a short name, or with an
// ending that is not kept.
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

// eachName calls next with each name in a directory until next returns false.
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
		if err != nil { // usually the end
			return
		}
	}
}

// respelled returns path with every component as its directory spells it; empty if there is a link
// on the path after all, or if it does not exist.
func respelled(path string) string {
	r := resolver{named: path, at: "/"} // it may lead through no link
	if r.follow(path) != nil || r.missing > 0 {
		return ""
	}
	return r.at
}
