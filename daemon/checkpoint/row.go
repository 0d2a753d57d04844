// A row: what one call has changed. And the history that rows make, of one session and of those in which it was restored.

package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
)

// A Row is what one call has changed, as the journal keeps it.
type Row struct {
	Key    string    `json:"key"` // of the call, in its session
	ID     string    `json:"id"`  // the client's
	Turn   uint64    `json:"turn"`
	TurnID string    `json:"turn_id,omitempty"`
	Tool   string    `json:"tool"`
	Title  string    `json:"title,omitempty"`
	Start  time.Time `json:"start"` // later than that of every earlier row of the session
	// Files are what the call changed; before it has ended, what it may change. By path.
	Files []File          `json:"files,omitempty"`
	Gaps  []workspace.Gap `json:"gaps,omitempty"`
	// Open is where the call may change something, for as long as it has not ended.
	Open []workspace.Change `json:"open,omitempty"`
	// Ended: Files have what the call left.
	Ended bool `json:"ended,omitempty"`
	// Restored is set when the call put back what others had changed.
	Restored *Restored `json:"restored,omitempty"`

	fresh []string // see workspace.SnapshotSet.New; set by Extend
}

// A File is what a call found at a path, and what it left there.
type File struct {
	Real   []byte             `json:"real"` // a name need not be text
	Before workspace.Snapshot `json:"before"`
	After  workspace.Snapshot `json:"after,omitzero"` // zero: the call has not ended
}

// Restored is what a call has restored.
type Restored struct {
	Session string   `json:"session"` // whose calls were asked about
	Calls   []Call   `json:"calls"`   // that were undone
	Paths   []string `json:"paths,omitempty"`
	Wants   []Wanted `json:"wants,omitempty"` // what shall stand where, by path, for as long as the call has not ended
	Short   [][]byte `json:"short,omitempty"` // where something else stands all the same, in order
}

// A Wanted is what shall stand at a path.
type Wanted struct {
	Real  []byte             `json:"real"`
	Image workspace.Snapshot `json:"image"`
}

// A Call is named by its session and its key there.
type Call struct {
	Session string `json:"session"`
	Key     string `json:"key"`
}

// Decode parses a row. The error describes what is wrong with it.
func Decode(text []byte) (*Row, error) {
	r := &Row{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	if r.Key == "" {
		return nil, fmt.Errorf("it names no call")
	}
	for _, f := range r.Files {
		if !filepath.IsAbs(string(f.Real)) || filepath.Clean(string(f.Real)) != string(f.Real) {
			return nil, fmt.Errorf("%q is not the real path of anything", f.Real)
		}
		if err := check(f.Before); err != nil {
			return nil, fmt.Errorf("%q before: %w", f.Real, err)
		}
		if f.After.Kind == "" && !r.Ended {
			continue
		}
		if err := check(f.After); err != nil {
			return nil, fmt.Errorf("%q after: %w", f.Real, err)
		}
	}
	return r, nil
}

// maxRead is the total length of the texts whose rows are held in memory, in bytes. The number is
// our own: all rows of most sessions.
const maxRead = 8 << 20

// Row does what Decode does, and remembers rows that do not change any more: who lists pages or goes back turn by turn
// asks for the same ones again. The row is shared, and not to be changed.
func (s *Store) Row(text []byte) (*Row, error) {
	key := sha256.Sum256(text)
	s.reading.Lock()
	defer s.reading.Unlock()
	if r := s.read[key]; r != nil {
		return r, nil
	}
	r, err := Decode(text)
	if err != nil || !r.Ended || len(text) > maxRead {
		return r, err
	}
	if s.readAll += len(text); s.read == nil || s.readAll > maxRead {
		s.read, s.readAll = map[[sha256.Size]byte]*Row{}, len(text)
	}
	s.read[key] = r
	return r, nil
}

func check(i workspace.Snapshot) error {
	switch i.Kind {
	case workspace.Absent, workspace.Directory, workspace.Unkept:
		return nil
	case workspace.Link:
		if len(i.Target) > 0 {
			return nil
		}
	case workspace.Regular:
		if hashForm.MatchString(i.Hash) {
			return nil
		}
	}
	return fmt.Errorf("it is not a snapshot: kind %q, hash %q", i.Kind, i.Hash)
}

// Begin makes the row's files of what the call found.
func (r *Row) Begin(found workspace.SnapshotSet) {
	r.Files, r.Gaps = nil, found.Gaps
	for _, real := range slices.Sorted(maps.Keys(found.Snapshots)) {
		r.Files = append(r.Files, File{Real: []byte(real), Before: found.Snapshots[real]})
	}
}

// Found returns what Begin was given.
func (r *Row) Found() *workspace.SnapshotSet {
	found := &workspace.SnapshotSet{Snapshots: map[string]workspace.Snapshot{}, Gaps: r.Gaps, New: r.fresh}
	for _, f := range r.Files {
		found.Snapshots[string(f.Real)] = f.Before
	}
	return found
}

// End records what the call has left; only files that differ stay in the row. died: the call was
// interrupted, so it may have changed less than it intended. End returns false if the call changed
// nothing, as far as was examined, so that the row is not needed.
func (r *Row) End(left workspace.SnapshotSet, died bool) bool {
	r.Restored.end(left, died)
	found := r.Found().Snapshots
	r.Files = nil
	for _, real := range slices.Sorted(maps.Keys(left.Snapshots)) {
		before, known := found[real]
		if !known { // of a directory that was looked into, so it was not there
			before = workspace.Snapshot{Kind: workspace.Absent}
		}
		f := File{Real: []byte(real), Before: before, After: left.Snapshots[real]}
		if f.moved() || before.Names != f.After.Names { // a new name is how the others are found again
			r.Files = append(r.Files, f)
		}
	}
	for _, gap := range left.Gaps {
		if !slices.Contains(r.Gaps, gap) {
			r.Gaps = append(r.Gaps, gap)
		}
	}
	r.Ended, r.Open = true, nil
	return len(r.Gaps) > 0 || slices.ContainsFunc(r.Files, File.differs)
}

// end notes where a call that puts back has fallen short. That a directory stays since it is not empty is no shortfall.
func (r *Restored) end(left workspace.SnapshotSet, died bool) {
	if r == nil {
		return
	}
	for _, want := range r.Wants {
		image, known := left.Snapshots[string(want.Real)]
		stays := image.Kind == workspace.Directory && want.Image.Kind == workspace.Absent
		if known && image.Kind != workspace.Unkept && !image.Same(want.Image) && (died || !stays) {
			r.Short = append(r.Short, want.Real)
		}
	}
	r.Wants = nil
}

// did reports that a path was among those that were put back, and is.
func (r *Restored) did(real string) bool {
	_, short := slices.BinarySearchFunc(r.Short, []byte(real), bytes.Compare)
	return chosen(r.Paths, real) && !short
}

// differs reports whether the call changed the file, as far as that is known: its content, or which
// other names it has.
func (f File) differs() bool {
	return f.After.Kind == "" || !f.Before.Same(f.After) || f.Before.ID != f.After.ID && max(f.Before.Names, f.After.Names) > 1
}

// moved reports the same, or that the path has another file with the same content: by its other names that may count later.
func (f File) moved() bool { return f.differs() || f.Before.ID != f.After.ID }

// NotKept returns what the call has changed and cannot be put back, each with the reason.
func (r *Row) NotKept() (missing []workspace.Gap) {
	for _, f := range r.Files {
		if f.Before.Kind == workspace.Unkept && f.differs() {
			missing = append(missing, workspace.Gap{Real: string(f.Real), Why: f.Before.Why})
		}
	}
	return append(missing, r.Gaps...)
}

// Names calls visit with every hash in the row.
func (r *Row) Names(visit func(hash string)) {
	for _, f := range r.Files {
		for _, hash := range []string{f.Before.Hash, f.After.Hash} {
			if hash != "" {
				visit(hash)
			}
		}
	}
}

// A Past is a row with the session that it is of.
type Past struct {
	Session string
	*Row
}

// A History is rows in the order in which their calls started.
type History []Past

// NewHistory returns the rows of a session, and those of other sessions in which it was restored.
func NewHistory(session string, rows []Past) History {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Past) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Key, b.Key))
	})
	ours := map[string]bool{session: true}
	return slices.DeleteFunc(rows, func(p Past) bool {
		if p.Restored != nil && ours[p.Restored.Session] {
			ours[p.Session] = true
		}
		return !ours[p.Session]
	})
}

// Undone returns, for each row, whether all of its changes that can be restored have been restored
// since, and not made again. A restore that failed in part has not undone that part.
func (h History) Undone() []bool {
	back := map[Call][]Restored{}
	undone := make([]bool, len(h))
	for i, p := range slices.Backward(h) {
		undone[i] = p.covered(back[Call{p.Session, p.Key}])
		if undone[i] || p.Restored == nil || !p.Ended {
			continue
		}
		for _, call := range p.Restored.Calls {
			back[call] = append(back[call], *p.Restored)
		}
	}
	return undone
}

// covered reports that every file which the row changed was put back by one of those.
func (r *Row) covered(by []Restored) bool {
	if len(by) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Files, func(f File) bool {
		return f.differs() && !slices.ContainsFunc(by, func(b Restored) bool { return b.did(string(f.Real)) })
	})
}

// chosen reports that a path is among those that were asked for, or below one; none means all.
func chosen(paths []string, real string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return pathname.Within(p, real) })
}
