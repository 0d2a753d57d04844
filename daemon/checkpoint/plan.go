// What has to be done to put files back: a pure function of a history and of what stands there now.

package checkpoint

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/toold/toold/tools/fs/workspace"
)

// A Step puts one path back.
type Step struct {
	workspace.Put
	// Conflict is why this needs the user's consent, as a sentence; empty: it does not.
	Conflict string
}

// A Plan puts files back to how they were before a row. Its steps are by path.
type Plan struct {
	Steps []Step
	// Missing are paths that calls have changed and that are not put back, each with the reason, by path.
	Missing []workspace.Gap
	Rows    History // that are undone
	Paths   []string
	// Takes are those rows of which something is taken back: they have changed a path that was asked for, are not undone
	// already, and are not themselves undoings, unless the first is.
	Takes History
}

// Conflicts returns the paths that are not as the last call left them, as far as that is known.
func (p *Plan) Conflicts() (paths []string) {
	for _, s := range p.Steps {
		if s.Conflict != "" {
			paths = append(paths, s.Real)
		}
	}
	return paths
}

// Wants is what shall stand at each path when the plan has been carried out.
func (p *Plan) Wants() (wants []Wanted) {
	for _, s := range p.Steps {
		wants = append(wants, Wanted{Real: []byte(s.Real), Image: s.Want})
	}
	return wants
}

// Digest identifies what the plan would do, what it would do it to, and what it leaves out.
func (p *Plan) Digest() string {
	type step struct {
		Real      []byte
		Now, Want workspace.Snapshot
		Conflict  bool
	}
	steps := make([]step, 0, len(p.Steps))
	for _, s := range p.Steps {
		one := step{[]byte(s.Real), s.Now, s.Want, s.Conflict != ""}
		for _, i := range []*workspace.Snapshot{&one.Now, &one.Want} {
			i.ID, i.Names = workspace.FileID{}, 0
		}
		steps = append(steps, one)
	}
	missing := make([][]byte, 0, len(p.Missing))
	for _, gap := range p.Missing {
		missing = append(missing, []byte(gap.Real))
	}
	text, err := json.Marshal([]any{steps, missing})
	if err != nil {
		panic("BUG: a plan that cannot be marshalled: " + err.Error())
	}
	return hashOf(text)
}

// A planner is one plan in the making.
type planner struct {
	history History
	from    int // the first row that is undone
	paths   []string
	has     func(hash string) bool
	now     map[string]workspace.Snapshot
	want    map[string]workspace.Snapshot
	left    map[string]workspace.Snapshot // what the last call left
	kept    map[string]workspace.FileID   // of which file a path was a name, where only the other names were changed
	files   map[workspace.FileID]*fileState
	missing map[string]string
}

// A fileState is what is known of one file, whatever its names. The snapshots are nil as long as there is none.
type fileState struct {
	first  *workspace.Snapshot // what it held first
	last   *workspace.Snapshot // the last state that calls left in it
	inside *workspace.Snapshot // what is written into it, since it has several names
	users  []string            // which paths have it, or are to have it; in order
	had    map[string]bool     // which paths ever had it
	made   string              // where it is made again, if it has several names; empty: not yet
}

// file returns the state of a file. That of an unknown one is empty.
func (p *planner) file(id workspace.FileID) *fileState {
	f := p.files[id]
	if f == nil {
		f = &fileState{had: map[string]bool{}}
		if id.Known() {
			p.files[id] = f
		}
	}
	return f
}

// Plan computes how to restore what the rows from from on have changed, of the files at or below
// paths, or of all if paths is empty. now returns what stands at a path, has reports whether a
// content is kept.
func (h History) Plan(from int, paths []string, now func(real string) (workspace.Snapshot, error), has func(hash string) bool) (*Plan, error) {
	p := &planner{
		history: h, from: from, paths: paths, has: has, files: map[workspace.FileID]*fileState{}, missing: map[string]string{},
		now: map[string]workspace.Snapshot{}, want: map[string]workspace.Snapshot{}, left: map[string]workspace.Snapshot{},
		kept: map[string]workspace.FileID{},
	}
	p.rewind()
	if err := p.look(now); err != nil {
		return nil, err
	}
	plan := p.plan()
	plan.Takes = h.takes(from, paths)
	return plan, nil
}

func (h History) takes(from int, paths []string) (takes History) {
	undone := h.Undone()
	for i, row := range h {
		gap := slices.ContainsFunc(row.Gaps, func(g workspace.Gap) bool { return chosen(paths, g.Real) })
		if i >= from && !undone[i] && (row.Restored == nil || i == from) && (gap || len(row.Deltas(paths)) > 0) {
			takes = append(takes, row)
		}
	}
	return takes
}

// look finds out what stands at all paths that are to be put back, and at those that a file which is wanted there ever had.
func (p *planner) look(now func(real string) (workspace.Snapshot, error)) error {
	looked := map[string]bool{}
	for real := range p.want {
		looked[real] = true
	}
	for _, row := range p.history[p.from:] {
		for _, f := range row.Files {
			if f.Before.Kind == workspace.Unkept {
				looked[string(f.Real)] = true
			}
		}
	}
	for _, row := range p.history {
		for _, f := range row.Files {
			for _, id := range []workspace.FileID{f.Before.ID, f.After.ID} {
				if file := p.file(id); file.first != nil {
					file.had[string(f.Real)], looked[string(f.Real)] = true, true
				}
			}
		}
	}
	for _, real := range slices.Sorted(maps.Keys(looked)) {
		image, err := now(real)
		if err != nil {
			return err
		}
		p.now[real] = image
	}
	return nil
}

// rewind goes back through the rows to the first state of each path.
func (p *planner) rewind() {
	for _, row := range slices.Backward(p.history[p.from:]) {
		for _, f := range row.Files {
			switch {
			case !chosen(p.paths, string(f.Real)):
			case f.moved():
				p.back(f)
			default:
				p.keep(f)
			}
		}
		for _, gap := range row.Gaps {
			if chosen(p.paths, gap.Real) {
				p.missing[gap.Real] = gap.Why
			}
		}
	}
}

func (p *planner) back(f File) {
	real := string(f.Real)
	if _, known := p.want[real]; !known {
		p.left[real] = f.After
	}
	p.want[real] = f.Before
	p.file(f.Before.ID).first = &f.Before
	if after := p.file(f.After.ID); after.last == nil {
		after.last = &f.After
	}
}

func (p *planner) plan() *Plan {
	out := &Plan{Rows: p.history[p.from:], Paths: p.paths}
	p.succeed()
	p.spare()
	reals := slices.Sorted(maps.Keys(p.want))
	wanted := map[workspace.FileID]bool{} // under a name that it has not
	for _, real := range reals {
		if id := p.want[real].ID; id.Known() && id != p.now[real].ID {
			wanted[id] = true
		}
	}
	for _, real := range reals {
		p.settle(real, wanted)
	}
	for _, real := range slices.Sorted(maps.Keys(p.now)) {
		now, want := p.file(p.now[real].ID), p.file(p.want[real].ID)
		now.users = append(now.users, real)
		if want != now {
			want.users = append(want.users, real)
		}
	}
	for _, real := range reals {
		want, wanted := p.want[real]
		if !wanted {
			continue
		}
		put, needed := p.put(real, want)
		if needed && p.possible(put) {
			out.Steps = append(out.Steps, Step{Put: put, Conflict: p.conflict(real)})
		}
	}
	for _, real := range slices.Sorted(maps.Keys(p.missing)) {
		out.Missing = append(out.Missing, workspace.Gap{Real: real, Why: p.missing[real]})
	}
	return out
}

// settle completes what is wanted at a path, and what is to be written into the file that stands there.
func (p *planner) settle(real string, wanted map[workspace.FileID]bool) {
	want, now := p.want[real], p.now[real]
	if first := p.file(want.ID).first; first != nil {
		want.Hash, want.Size, want.Mode = first.Hash, first.Size, first.Mode
		p.want[real] = want
	}
	if want.Kind == workspace.Unkept {
		if !now.Same(want) {
			p.missing[real] = want.Why
		}
		delete(p.want, real)
	}
	// All names of a file show what is written into it. By one in whose place a directory comes it cannot be reached.
	f := p.file(now.ID)
	if f.first != nil && want.Kind != workspace.Directory && (now.Names > 1 || wanted[now.ID]) && !now.Same(*f.first) && p.has(f.first.Hash) {
		f.inside = f.first
	}
}

// put returns how a path gets what is wanted there; false: it has it.
func (p *planner) put(real string, want workspace.Snapshot) (put workspace.Put, needed bool) {
	now := p.now[real]
	put = workspace.Put{Real: real, Now: now, Want: want}
	there := p.file(now.ID)
	if there.inside != nil && p.writer(now.ID) == real {
		put.Into, needed = there.inside, true
	}
	same := now.Same(want)
	if there.inside != nil && now.ID == want.ID {
		return put, needed // and that is all
	}
	if want.Kind != workspace.Regular || now.ID == want.ID || same && now.Names < 2 && !p.shared(real, want.ID) && !p.shared(real, now.ID) {
		return put, needed || !same
	}
	// Another file than it was, and names of files count. Two paths that are to have one file both had it when the first
	// undone call began, since a path keeps its file until a call touches it.
	put.From = p.source(real, want)
	if f := p.file(want.ID); put.From == "" && want.ID.Known() {
		if f.made != "" {
			put.From, put.Twin = f.made, true
		} else {
			f.made, put.Parted = real, want.Names > len(f.had)
		}
	}
	return put, needed || !same || put.From != "" || now.Names > 1 || p.shared(real, now.ID)
}

// writer returns the path by which a file is written in place, that is not to become a directory: if
// possible one that keeps the file, so that the restore records what it changes.
func (p *planner) writer(id workspace.FileID) (found string) {
	for _, user := range p.file(id).users {
		want, wanted := p.want[user]
		switch {
		case !wanted || p.now[user].ID != id || want.Kind == workspace.Directory:
		case want.ID == id:
			return user
		case found == "":
			found = user
		}
	}
	return found
}

// shared reports that another path has the file, or is to have it.
func (p *planner) shared(real string, id workspace.FileID) bool {
	return slices.ContainsFunc(p.file(id).users, func(other string) bool { return other != real })
}

// source finds another name that the wanted file has now, with what is wanted in it; at worst one in whose place a
// directory comes.
func (p *planner) source(real string, want workspace.Snapshot) (found string) {
	f := p.file(want.ID)
	for _, other := range f.users {
		now := p.now[other]
		switch {
		case other == real || now.ID != want.ID:
		case f.inside == nil && !now.Same(want):
		case p.want[other].Kind != workspace.Directory:
			return other
		default:
			found = other
		}
	}
	return found
}

// possible reports that the content of a step is kept, unless it needs none.
func (p *planner) possible(put workspace.Put) bool {
	if put.Want.Kind != workspace.Regular || put.From != "" || put.Now.Hash == put.Want.Hash || put.Now.ID == put.Want.ID && put.Into != nil || p.has(put.Want.Hash) {
		return true
	}
	p.missing[put.Real] = ErrGone.Error()
	return false
}

// conflict returns why a path is not to be touched unasked.
func (p *planner) conflict(real string) string {
	now, left := p.now[real], p.left[real]
	if left.Kind == "" { // the daemon died before it could look
		return ""
	}
	if last := p.file(left.ID).last; last != nil {
		left.Hash, left.Size, left.Mode = last.Hash, last.Size, last.Mode
	}
	switch {
	case now.Same(left):
		return ""
	case left.Kind == workspace.Unkept:
		return "The state after the last call was not kept, so it is unknown whether another program has changed it since."
	case now.Kind == workspace.Absent:
		return "Another program has removed it since."
	case left.Kind == workspace.Absent:
		return "Another program has made it since."
	case now.Kind == left.Kind && now.Hash == left.Hash && slices.Equal(now.Target, left.Target):
		return "Another program has changed its mode since."
	case now.Kind == workspace.Link:
		return "Another program has put a link in its place since."
	}
	return "Another program has changed it since."
}
