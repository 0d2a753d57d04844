// The paths that a call may change, and snapshots of all of them.

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Change is a real path that a call may change.
type Change struct {
	Real    string
	Missing int  // how many components at the end of Real do not exist; they may be created
	Tree    bool // includes everything below it
	Guessed bool // the call does not declare it; a large file is then probably generated, so its content is not kept
}

// A SnapshotSet holds snapshots of everything that a call may change.
type SnapshotSet struct {
	Snapshots map[string]Snapshot // by real path
	Gaps      []Gap               // what was left out; each has the real path of a directory
	// New are real paths at which nothing was: everything that is found below them was made since.
	New []string
}

// A Gap is a directory whose content was only partly recorded, or a path that was left out.
type Gap struct {
	Real string `json:"real"`
	Why  string `json:"why"` // as a clause
}

// TakeSnapshots takes snapshots of all of the grant's Changes, and of every path of before, which
// may be nil. A directory with more content than the Snapshotter's limits becomes a gap, and
// nothing below it is recorded. A gap of before is not read again. The error is the Snapshotter's,
// or the cause of ctx.
func (v *View) TakeSnapshots(ctx context.Context, c Snapshotter, before *SnapshotSet) (SnapshotSet, error) {
	e := takingSnapshots{
		walk: &snapshotWalk{view: v, snapshotter: c, left: c.Bytes}, out: SnapshotSet{Snapshots: map[string]Snapshot{}}, said: map[string]bool{},
		entries: c.Entries, bytes: c.Bytes,
	}
	defer e.walk.close()
	var trees []string
	for _, change := range v.grant.Changes {
		real := change.Real
		for range change.Missing {
			e.add(real)
			real = filepath.Dir(real)
		}
		e.add(change.Real)
		e.said[change.Real] = e.said[change.Real] || !change.Guessed
		if change.Tree {
			trees = append(trees, change.Real)
		}
	}
	if before != nil {
		for real := range before.Snapshots {
			e.add(real)
		}
		trees = slices.DeleteFunc(trees, func(tree string) bool {
			return slices.ContainsFunc(before.Gaps, func(g Gap) bool { return pathname.Within(g.Real, tree) })
		})
	}
	for _, tree := range trees {
		e.tree(ctx, tree, takeAll)
	}
	if c.Skip == nil {
		c.Skip = takeAll
	}
	if before != nil {
		for _, tree := range before.New {
			e.tree(ctx, tree, c.Skip)
		}
	}
	return e.take(ctx)
}

func takeAll(string, bool) bool { return false }

// takingSnapshots is the state of one TakeSnapshots.
type takingSnapshots struct {
	walk    *snapshotWalk
	out     SnapshotSet
	paths   []string        // in the order in which they are recorded
	said    map[string]bool // paths that the call declares it changes
	entries int             // entries that directories may still add
	bytes   int64
}

func (e *takingSnapshots) add(real string) {
	if _, known := e.out.Snapshots[real]; !known {
		e.out.Snapshots[real] = Snapshot{}
		e.paths = append(e.paths, real)
	}
}

// take takes the snapshots of all added paths. Paths in one directory follow each other.
func (e *takingSnapshots) take(ctx context.Context) (SnapshotSet, error) {
	slices.SortFunc(e.paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(filepath.Dir(a), filepath.Dir(b)), cmp.Compare(a, b))
	})
	for _, real := range e.paths {
		if err := context.Cause(ctx); err != nil {
			return SnapshotSet{}, err
		}
		said, named := e.said[real]
		e.walk.guessed = named && !said
		taken, err := e.walk.snapshot(real)
		if err != nil {
			return SnapshotSet{}, err
		}
		e.out.Snapshots[real] = taken
	}
	return e.out, nil
}

// tree adds everything below a directory, unless it is too much, and without what skip leaves out.
// Links are added but not followed.
func (e *takingSnapshots) tree(ctx context.Context, top string, skip func(real string, isDir bool) bool) {
	found, size, why := []string(nil), int64(0), ""
	below := []string{top}
	for len(below) > 0 && why == "" {
		dir := below[0]
		below = below[1:]
		if e.walk.view.ws.Place(dir) == Hidden {
			continue
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		root, err := e.walk.view.ws.openRoot(dir)
		if err != nil {
			why = fmt.Sprintf("%s cannot be looked into", shown(dir))
			break
		}
		for entry, err := range Entries(root.Open(".")) {
			if err != nil {
				break // as far as it can be listed
			}
			info, err := root.Lstat(entry.Name())
			if err != nil {
				continue
			}
			real := filepath.Join(dir, entry.Name())
			if skip(real, info.IsDir()) {
				continue
			}
			found = append(found, real)
			switch {
			case info.IsDir():
				below = append(below, real)
			case info.Mode().IsRegular():
				size += info.Size()
			}
			switch {
			case len(found) > e.entries:
				why = fmt.Sprintf("more than %d files and directories would have to be kept", e.walk.snapshotter.Entries)
			case e.walk.snapshotter.Bytes > 0 && size > e.bytes:
				why = fmt.Sprintf("more than %d bytes would have to be kept", e.walk.snapshotter.Bytes)
			case ctx.Err() != nil:
				why = "the call was stopped"
			}
			if why != "" {
				break
			}
		}
		root.Close()
	}
	if why != "" {
		e.out.Gaps = append(e.out.Gaps, Gap{Real: top, Why: why})
		return
	}
	e.entries -= len(found)
	e.bytes -= size
	for _, real := range found {
		e.add(real)
	}
}
