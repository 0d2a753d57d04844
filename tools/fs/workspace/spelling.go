// Spellings that a file system treats as one name: upper and lower case, composed and decomposed
// characters, short names for long ones. Rules are written for the spelling in the directory; this
// file finds it.

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"iter"
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
	var alike []string // entries that differ only in case
	for e, err := range Entries(os.OpenFile(parent, openDirectory, 0)) {
		switch {
		case err != nil:
		case e.Name() == part:
			return part
		case strings.EqualFold(e.Name(), part):
			alike = append(alike, e.Name())
		}
	}
	isIt := func(name string) bool {
		same, err := os.Lstat(filepath.Join(parent, name))
		return err == nil && os.SameFile(info, same)
	}
	if i := slices.IndexFunc(alike, isIt); i >= 0 {
		return alike[i]
	}
	for e, err := range Entries(os.OpenFile(parent, openDirectory, 0)) {
		if err == nil && isIt(e.Name()) {
			return e.Name()
		}
	}
	return part
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

// Entries returns the entries of a directory that was opened, and closes it. What ends them early
// comes last, as an error.
func Entries(dir *os.File, err error) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		defer dir.Close()
		for {
			list, err := dir.ReadDir(256)
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// respelled returns path with every component as its directory spells it; empty if there is a link
// on the path after all, or if it does not exist.
func respelled(path string) string {
	r, err := follow(machine, path)
	if err != nil || r.missing > 0 || len(r.passed) > 0 {
		return ""
	}
	return r.at
}
