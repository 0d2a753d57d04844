// What a plan does not change, even by force: files that could not be restored any more.

package checkpoint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
)

// A loss is what a call found at a path, what was not kept of it, and what is not there any more.
type loss struct {
	real  string
	found workspace.Snapshot
	gone  bool // nothing is at the path
}

// spare takes out what is neither to be removed nor overwritten: what cannot be kept first, and what may be the only copy
// of something that cannot be put back. What would lie below such a thing goes with it.
func (p *planner) spare() {
	losses, gaps := p.losses()
	var spared []string
	for _, real := range slices.Sorted(maps.Keys(p.want)) {
		now, want := p.now[real], p.want[real]
		if want.Kind == workspace.Unkept || now.Same(want) {
			continue
		}
		why := ""
		if now.Kind == workspace.Unkept {
			why = fmt.Sprintf("what stands there cannot be kept (%s), so it is neither removed nor overwritten", now.Why)
		} else if gaps || len(losses) > 0 {
			why = p.onlyCopy(now, want, losses)
		}
		if why == "" && slices.ContainsFunc(spared, func(over string) bool { return pathname.Within(over, real) }) {
			why = "something on the way to it stays as it is"
		}
		if why == "" {
			continue
		}
		if p.missing[real] = why; now.Kind != workspace.Directory {
			spared = append(spared, real)
		}
		delete(p.want, real)
	}
}

// losses returns what the undone calls found and cannot be restored, of all paths. gaps: the
// content of some directories is unknown.
func (p *planner) losses() (losses []loss, gaps bool) {
	seen := map[string]bool{}
	for _, row := range p.history[p.from:] {
		gaps = gaps || len(row.Gaps) > 0
		for _, f := range row.Files {
			real := string(f.Real)
			now := p.now[real]
			if f.Before.Kind != workspace.Unkept || seen[real] || now.Same(f.Before) {
				continue
			}
			seen[real] = true
			losses = append(losses, loss{real, f.Before, now.Kind == workspace.Absent})
		}
	}
	return losses, gaps
}

// clockGrain is by how many nanoseconds a file's birth may precede the moment at which it was made:
// file systems use the time of the latest tick. The number is our own: more than Linux's longest
// tick.
const clockGrain = 20e6

// onlyCopy returns, as a clause, what a file may be the only copy of; empty: nothing. A moved file
// is older than the calls, and nothing of its earlier names is kept; a copy of a lost file has the
// same length.
func (p *planner) onlyCopy(now, want workspace.Snapshot, losses []loss) string {
	if now.Kind != workspace.Regular || now.ID.Known() && now.ID == want.ID {
		return ""
	}
	for _, l := range losses {
		if l.gone && l.found.Size > 0 && l.found.Size == now.Size {
			return fmt.Sprintf("it may be the only copy of %s, which is not kept (%s)", workspace.NameOf(l.real), l.found.Why)
		}
	}
	if p.file(now.ID).first == nil && now.ID.Known() && now.ID.Born < p.history[p.from].Start.UnixNano()-clockGrain {
		return "it was there before under another name, of which nothing was kept, so it may be the only copy"
	}
	return ""
}
