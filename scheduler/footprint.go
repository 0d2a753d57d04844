// What calls touch, and when two of them conflict. It is pure: where names lead
// is found out by the maker of a Footprint.

package scheduler

import (
	"slices"
	"strings"
)

// A Footprint is what a call touches. The zero value touches nothing.
type Footprint struct {
	// Everything means that the call may change anything, or that it is unknown. It conflicts
	// with every call.
	Everything bool
	// Reads and Writes are the places that it reads and changes. A place that it changes need not
	// be among Reads.
	Reads, Writes []Place
}

// A Place is a file, a directory with all that is below it, or a part of the session's state.
type Place struct {
	// Path is absolute and clean, has no links in it, and ends in a slash, also for a file.
	Path string
	// File identifies the file or directory at Path; zero: there is none, or it is not known.
	File FileID
	// Dir means that there is a directory. Linked means that the file there has further names,
	// which may be anywhere.
	Dir, Linked bool
}

// A FileID identifies a file on this machine, whatever its names.
type FileID struct{ Device, Inode uint64 }

// Anywhere is every file and all of the session's state.
var Anywhere = Place{Path: "/"}

// StateOf returns the place of a part of the session's state. Its path is one that no file has.
func StateOf(name string) Place { return Place{Path: "/\x00" + name + "/"} }

// Changes reports whether the call changes anything.
func (f *Footprint) Changes() bool { return f.Everything || len(f.Writes) > 0 }

// Conflicts reports whether two calls must keep their order: one of them changes what the other
// reads or changes.
func (f *Footprint) Conflicts(g *Footprint) bool {
	return f.Everything || g.Everything ||
		meet(f.Writes, g.Writes) || meet(f.Writes, g.Reads) || meet(g.Writes, f.Reads)
}

func meet(written, others []Place) bool {
	for i := range written {
		for j := range others {
			if written[i].meets(&others[j]) {
				return true
			}
		}
	}
	return false
}

// meets reports whether changing one of two places may change the other.
func (p *Place) meets(q *Place) bool {
	return strings.HasPrefix(p.Path, q.Path) || strings.HasPrefix(q.Path, p.Path) ||
		p.File != FileID{} && p.File == q.File || p.Linked && q.Dir || q.Linked && p.Dir
}

// Covers reports whether a call that was ordered by f may touch g: nothing that g conflicts with
// can run beside f.
func (f *Footprint) Covers(g *Footprint) bool {
	return f.Everything || !g.Everything && within(g.Writes, f.Writes) && within(g.Reads, slices.Concat(f.Reads, f.Writes))
}

func within(places, wider []Place) bool {
	return !slices.ContainsFunc(places, func(p Place) bool {
		return !slices.ContainsFunc(wider, func(w Place) bool {
			return strings.HasPrefix(p.Path, w.Path) && (w.Path != p.Path || !p.Linked || w.Linked)
		})
	})
}
