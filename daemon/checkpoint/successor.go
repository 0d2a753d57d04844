// Files that were replaced by others that hold the same, as `sed -i` does: the new file takes over the
// other names of the old one, which is gone.

package checkpoint

import (
	"maps"
	"slices"

	"github.com/toold/toold/tools/fs/workspace"
)

// keep goes back through a call that changed only which other names the file at a path has. A later
// call that put the same content into another file there may have left no row.
func (p *planner) keep(f File) {
	real := string(f.Real)
	p.kept[real] = f.Before.ID
	if want, known := p.want[real]; known && want.ID != f.Before.ID {
		want.ID, want.Names = f.Before.ID, f.Before.Names
		p.want[real] = want
	}
}

// succeed lets the file that now stands at a path take the part of the one that stood there, where
// that is gone, is wanted under other names, and held the same.
func (p *planner) succeed() {
	exists, wanted := map[workspace.FileID]bool{}, map[workspace.FileID][]string{}
	for _, now := range p.now {
		exists[now.ID] = true
	}
	for real, want := range p.want {
		wanted[want.ID] = append(wanted[want.ID], real)
	}
	for _, real := range slices.Sorted(maps.Keys(p.kept)) {
		id, now := p.kept[real], p.now[real]
		first := p.file(id).first
		_, changes := p.want[real]
		if changes || exists[id] || first == nil || !now.ID.Known() || wanted[now.ID] != nil || !now.Same(*first) {
			continue
		}
		next := p.file(now.ID)
		next.first = first
		maps.Copy(next.had, p.file(id).had)
		for _, other := range wanted[id] {
			want := p.want[other]
			want.ID = now.ID
			p.want[other] = want
		}
		exists[id], wanted[now.ID] = true, wanted[id] // once
	}
}
