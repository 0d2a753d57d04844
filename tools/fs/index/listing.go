// Entries of directories. Whatever is made, removed or renamed in a directory changes its times.

package index

import (
	"cmp"
	"io/fs"
	"slices"
	"time"
)

// An Entry is one name in a directory.
type Entry struct {
	Name string
	Type fs.FileMode // type bits only
}

// A Listing is the entries of a directory, sorted by name. It is not changed.
type Listing struct{ Entries []Entry }

// Has reports whether the directory has an entry of that name.
func (l *Listing) Has(name string) bool {
	_, found := slices.BinarySearchFunc(l.Entries, name, func(e Entry, name string) int { return cmp.Compare(e.Name, name) })
	return found
}

// Listing returns the entries of the directory that has the stamp now; nil: they are not known.
func (x *Index) Listing(now Stamp) *Listing {
	if r := x.find(now); r != nil {
		return r.listing
	}
	return nil
}

// A Reading is a directory that is being read.
type Reading struct {
	index   *Index
	fd      int
	began   time.Time
	stamp   Stamp
	entries []Entry
}

// mostEntries is how many entries a directory has at most that are remembered. Larger ones are few,
// and reading them takes little beside what is done about their entries.
const mostEntries = 10_000

// Read begins to take note of a directory, before any of it is read. stamp is what the open
// directory fd has. nil: nothing will be remembered of it.
func (x *Index) Read(fd int, stamp Stamp) *Reading {
	now := time.Now()
	if x == nil || x.set.full() || !stamp.settled(now, x.set.Settle) {
		return nil
	}
	return &Reading{index: x, fd: fd, began: now, stamp: stamp}
}

// Add adds entries that were read.
func (r *Reading) Add(list []Entry) {
	if r != nil && len(r.entries) <= mostEntries {
		r.entries = append(r.entries, list...)
	}
}

// Keep remembers the entries. All of them have been added.
func (r *Reading) Keep() {
	if r == nil || len(r.entries) > mostEntries || !stampsTell(r.fd) {
		return
	}
	if now, err := stampAt(r.fd); err != nil || now != r.stamp {
		return
	}
	entries := slices.Clip(r.entries)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	bytes := int64(24 * len(entries))
	for _, e := range entries {
		bytes += int64(len(e.Name)+15) &^ 15
	}
	r.index.keep(&record{stamp: r.stamp, listing: &Listing{entries}, bytes: bytes})
}
