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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// A caseMemory remembers which directories tell upper from lower case, so that each is asked about
// once. It is safe for concurrent use.
type caseMemory struct {
	mu   sync.Mutex
	tell map[inode]time.Time // by the time of the directory's last change
}

// maxRemembered limits a caseMemory, which begins again then. A directory takes some 60 bytes.
const maxRemembered = 10_000

// settled is how old the last change of a directory is before it is remembered: another one that
// follows in the same tick of the file system's clock has the same time.
const settled = 2 * time.Second

// A directory is one that names are spelled in, as it was at a moment. The zero value is one that
// nothing is known of.
type directory struct {
	id      inode
	changed time.Time
	memory  *caseMemory
}

// directory returns the directory that here is of.
func (l *Locks) directory(here *syscall.Stat_t) directory {
	return directory{inode{uint64(here.Dev), here.Ino}, changeTime(here), &l.cases}
}

// tellsCase reports whether the directory is known to tell upper from lower case. A file system
// lets that change only of a directory without entries, and writes the time of the change.
func (d directory) tellsCase() bool {
	if d.memory == nil {
		return false
	}
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	at, known := d.memory.tell[d.id]
	return known && at.Equal(d.changed)
}

// remember notes that the directory tells upper from lower case.
func (d directory) remember() {
	if d.memory == nil || time.Since(d.changed) < settled {
		return
	}
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	if d.memory.tell == nil || len(d.memory.tell) >= maxRemembered {
		d.memory.tell = map[inode]time.Time{}
	}
	d.memory.tell[d.id] = d.changed
}

// spelled returns part as it is spelled in its directory, the real path parent. info is what part
// leads to there.
func spelled(parent, part string, info *syscall.Stat_t, in directory) string {
	if !mayBeAlias(parent, part, info, in) {
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
		var same syscall.Stat_t
		err := lstat(below(parent, name), &same)
		return err == nil && info.Dev == same.Dev && info.Ino == same.Ino
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
func mayBeAlias(parent, part string, info *syscall.Stat_t, in directory) bool {
	if strings.ContainsFunc(part, func(r rune) bool { return r >= utf8.RuneSelf || r == '~' }) || strings.TrimRight(part, ". ") != part {
		return true
	}
	other := strings.Map(swapCase, part)
	if other == part || in.tellsCase() {
		return false
	}
	var same syscall.Stat_t
	switch err := lstat(below(parent, other), &same); {
	case err == nil && info.Dev == same.Dev && info.Ino == same.Ino:
		return true
	case err == nil, errors.Is(err, fs.ErrNotExist):
		in.remember()
	}
	return false
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
