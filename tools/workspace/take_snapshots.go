// Which paths a call may change, and images of all of them. It does not know why a call may change them.

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools/pathname"
)

// A Change is a real path at which a call may leave something else than was there.
type Change struct {
	Real    string
	Missing int  // how many components at the end of Real do not exist; they may come into being
	Tree    bool // and everything below it
	Guessed bool // nobody says so; of a large file it is then more likely that it is made again each time than that it is missed
}

// An SnapshotSet is images of all that a call may change.
type SnapshotSet struct {
	Snapshots map[string]Snapshot // by real path
	Gaps      []Gap               // what was left out; each begins with the real path of a directory
}

// A Gap is a directory of which not everything below was taken.
type Gap struct {
	Real string `json:"real"`
	Why  string `json:"why"` // as a clause
}

// TakeSnapshots takes images of all that the grant's Changes name, and of every path of before, which may be nil. A directory
// that holds more than the snapshotter takes becomes a gap, and nothing below it is taken; one that is a gap of before is not
// looked into. The error is the snapshotter's, or the cause of ctx.
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
		e.tree(ctx, tree)
	}
	return e.take(ctx)
}

// takingSnapshots is one Expose under way.
type takingSnapshots struct {
	walk    *snapshotWalk
	out     SnapshotSet
	paths   []string        // in the order in which they are taken
	said    map[string]bool // that somebody says will be changed
	entries int             // that directories may still bring
	bytes   int64
}

func (e *takingSnapshots) add(real string) {
	if _, known := e.out.Snapshots[real]; !known {
		e.out.Snapshots[real] = Snapshot{}
		e.paths = append(e.paths, real)
	}
}

// take takes the images of all paths that were added. Those that lie in one directory follow each other.
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
		image, err := e.walk.snapshot(real)
		if err != nil {
			return SnapshotSet{}, err
		}
		e.out.Snapshots[real] = image
	}
	return e.out, nil
}

// tree adds everything below a directory, if that is not too much.
func (e *takingSnapshots) tree(ctx context.Context, top string) {
	found, size, why := e.list(ctx, top)
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

// list returns the real paths of all that is below a directory; none when top is no directory. why says why not all could
// be given. Links are listed and not followed.
func (e *takingSnapshots) list(ctx context.Context, top string) (found []string, size int64, why string) {
	below := []string{top}
	for len(below) > 0 {
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
			return nil, 0, fmt.Sprintf("%s cannot be looked into", shown(dir))
		}
		each(root, func(name string, info fs.FileInfo) bool {
			real := filepath.Join(dir, name)
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
			return why == ""
		})
		root.Close()
		if why != "" {
			return nil, 0, why
		}
	}
	return found, size, ""
}

// each gives the entries of a directory to next until that is satisfied, which it says with false.
func each(root *os.Root, next func(name string, info fs.FileInfo) bool) {
	d, err := root.Open(".")
	if err != nil {
		return
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(256)
		for _, name := range names {
			info, err := root.Lstat(name)
			if err == nil && !next(name, info) {
				return
			}
		}
		if err != nil { // its end, as a rule
			return
		}
	}
}
