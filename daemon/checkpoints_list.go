// ListCheckpoints: what calls have changed, with diffs, newest first, from the rows of sessions in
// the journal. It changes nothing.

package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
)

// How many checkpoints one answer has, and how many bytes of diffs they have together, which stand
// there twice. With as many for all of them in one, and with twice shownNames of names and once of
// those, it is still less than the 4 MiB that most clients take.
const (
	listedCheckpoints     = 100
	mostListedCheckpoints = 1000
	shownDiffs            = 1 << 20
)

// ListCheckpoints returns what the calls of a session have changed.
func (x *sessionServer) ListCheckpoints(ctx context.Context, request *tooldv1.ListCheckpointsRequest) (*tooldv1.ListCheckpointsResponse, error) {
	look, err := x.daemon.sessions.view(ctx, request)
	if err != nil {
		return nil, err
	}
	roots, err := look.roots()
	if err != nil {
		return nil, err
	}
	history, err := x.daemon.history(look.name)
	if err != nil {
		return nil, journalRefusal(err)
	}
	paths, err := realPaths(request.GetPaths(), roots)
	if err != nil {
		return nil, err
	}
	l := &listing{
		request: request, history: history, undone: history.Undone(), paths: paths,
		differ: differ{store: x.daemon.checkpoints, roots: roots, left: shownDiffs, none: request.GetNoDiffs()},
	}
	return l.list()
}

// A listing is one ListCheckpoints under way.
type listing struct {
	request *tooldv1.ListCheckpointsRequest
	history checkpoint.History
	undone  []bool
	paths   []string
	differ  differ
}

func (l *listing) list() (*tooldv1.ListCheckpointsResponse, error) {
	response := &tooldv1.ListCheckpointsResponse{}
	limit := cmp.Or(int(min(l.request.GetLimit(), mostListedCheckpoints)), listedCheckpoints)
	from, named := len(l.history), 0
	if token := l.request.GetPageToken(); token != "" {
		from = slices.IndexFunc(l.history, func(p checkpoint.Past) bool { return tokenOf(p) == token })
		if from < 0 {
			return nil, apierror.Invalidf("invalid_page_token", "page_token", "The page_token is none that an earlier answer gave, or what it stands for is not kept any more. Leave it out to begin again.")
		}
	}
	for i, p := range slices.Backward(l.history) {
		if i >= from || !l.wants(p) {
			continue
		}
		if listed := len(response.Checkpoints); listed < limit {
			wire := l.checkpoint(p, l.undone[i])
			if named += bytesBesideDiffs(wire); listed == 0 || named <= 2*convert.ShownNames {
				response.Checkpoints = append(response.Checkpoints, wire)
				continue
			}
		}
		response.NextPageToken = tokenOf(l.history[i+1])
		break
	}
	if l.request.GetNet() {
		shown := &differ{store: l.differ.store, roots: l.differ.roots, left: shownDiffs}
		wanted := slices.DeleteFunc(slices.Clone(l.history), func(p checkpoint.Past) bool { return !l.wants(p) })
		response.Net, response.MoreNet = shown.files(wanted.Net(l.paths)) // on whatever page they are
	}
	return response, nil
}

// tokenOf names the checkpoint behind which a page begins.
func tokenOf(p checkpoint.Past) string { return p.Session + "/" + p.Key }

func (l *listing) wants(p checkpoint.Past) bool {
	switch {
	case l.request.Turn != nil && (p.Turn != l.request.GetTurn() || p.Session != l.request.GetSessionId()),
		l.request.GetToolUseId() != "" && p.ID != l.request.GetToolUseId():
		return false
	case len(l.paths) == 0 || !p.Ended:
		return true
	}
	return len(p.Deltas(l.paths)) > 0
}

// bytesBesideDiffs is how large a checkpoint is but for its diffs, which have a limit of their own.
func bytesBesideDiffs(wire *tooldv1.Checkpoint) int {
	size := proto.Size(wire) - len(wire.GetDiff())
	for _, file := range wire.GetFiles() {
		size -= len(file.GetDiff())
	}
	return size
}

func (l *listing) checkpoint(p checkpoint.Past, undone bool) *tooldv1.Checkpoint {
	wire := &tooldv1.Checkpoint{
		Turn: p.Turn, ToolUseId: convert.Clean(p.ID), TurnId: convert.Clean(p.TurnID), ToolName: convert.Clean(p.Tool), Title: convert.Visible(p.Title), Started: timestamppb.New(p.Start),
		Undone: undone, Restore: p.Restored != nil, SessionId: p.Session, Running: !p.Ended,
	}
	deltas := p.Deltas(l.paths)
	wire.Files, wire.MoreFiles = l.differ.files(deltas)
	wire.Paths = convert.Each(wire.Files, (*tooldv1.FileChange).GetPath)
	wire.Diff = strings.Join(convert.Each(wire.Files, (*tooldv1.FileChange).GetDiff), "")
	var missing []workspace.Gap
	for _, delta := range deltas {
		if delta.Before.Kind == workspace.Unkept {
			missing = append(missing, workspace.Gap{Real: delta.Real, Why: delta.Before.Why})
		} else if hash := delta.Before.Hash; hash != "" && !l.differ.store.Has(hash) {
			missing = append(missing, workspace.Gap{Real: delta.Real, Why: checkpoint.ErrGone.Error()})
		}
	}
	wire.NotKept, wire.MoreNotKept = convert.PathReasons(append(missing, p.Gaps...))
	return wire
}

// A differ puts deltas into messages, with diffs as long as there is room for them.
type differ struct {
	store *checkpoint.Store
	roots []string
	left  int  // bytes of diffs
	none  bool // no diffs are wanted
	// before is called before a diff is made; nil: there is nothing to be done.
	before func(checkpoint.Delta)
}

const manyDiffs = "(no diff, since there are many: ask for this file alone)\n"

func (d *differ) file(delta checkpoint.Delta) *tooldv1.FileChange {
	if !d.none && d.left > 0 {
		if d.before != nil {
			d.before(delta)
		}
		d.store.Compare(&delta, placeIn(d.roots, delta.Real))
	}
	wire := &tooldv1.FileChange{Path: workspace.NameOf(delta.Real), Kind: convert.ChangeKind(delta), Note: convert.Visible(delta.Note), Added: uint32(delta.Added), Removed: uint32(delta.Removed)}
	diff := convert.VisibleDiff(delta.Diff)
	switch {
	case d.none:
	case d.left <= 0:
		wire.Diff = manyDiffs
	case len(diff) <= d.left:
		wire.Diff = diff
		d.left -= len(diff)
	case len(diff) > shownDiffs:
		wire.Diff = fmt.Sprintf("(a diff of %d bytes is not shown)\n", len(diff))
	default:
		wire.Diff, d.left = manyDiffs, 0
	}
	return wire
}

// shownCalls is how many calls an answer names that are undone.
const shownCalls = 1000

// files puts deltas into messages as long as there is room, and counts the rest.
func (d *differ) files(deltas []checkpoint.Delta) (shown []*tooldv1.FileChange, more uint32) {
	left := convert.Room(convert.ShownNames)
	for _, delta := range deltas {
		if name := workspace.NameOf(delta.Real); !left.Takes(name, name, manyDiffs, manyDiffs) {
			break
		}
		file := d.file(delta)
		left.Takes(file.GetNote())
		shown = append(shown, file)
	}
	return shown, uint32(len(deltas) - len(shown))
}

// response is what the plan would do. What would be written over is kept for the diffs' sake alone.
func (r *restore) response() *tooldv1.RestoreResponse {
	d := r.daemon
	wire := &tooldv1.RestoreResponse{PlanDigest: r.plan.Digest(), UndoneCalls: uint32(len(r.plan.Takes))}
	shown := &differ{store: d.checkpoints, roots: r.judge.meta.Roots, left: shownDiffs}
	hold := d.checkpoints.Hold()
	defer hold.Release()
	shown.before = func(delta checkpoint.Delta) {
		if !d.checkpoints.Has(delta.Before.Hash) && delta.Before.Kind == workspace.Regular && d.limits.CheckpointBytes > 0 {
			snapshotter := r.judge.snapshotter(true)
			snapshotter.Keep = hold.KeepShown
			_, _ = r.judge.view(nil).Snapshot(snapshotter, delta.Real) // without it there is no diff, and that is all
		}
	}
	var deltas []checkpoint.Delta
	conflicts := convert.Room(convert.ShownNames)
	for _, step := range r.plan.Steps {
		deltas = append(deltas, checkpoint.Delta{Real: step.Real, Before: step.Now, After: step.Want})
		name := workspace.NameOf(step.Real)
		switch {
		case step.Conflict == "":
		case conflicts.Takes(name, name, step.Conflict):
			wire.Conflicts = append(wire.Conflicts, name)
			wire.ConflictReasons = append(wire.ConflictReasons, &tooldv1.PathReason{Path: name, Reason: convert.Visible(step.Conflict)})
		default:
			wire.MoreConflicts++
		}
	}
	wire.Files, wire.MoreRestored = shown.files(deltas)
	wire.Restored = convert.Each(wire.Files, (*tooldv1.FileChange).GetPath)
	wire.NotRestored, wire.MoreNotRestored = convert.PathReasons(r.plan.Missing)
	newest := r.plan.Takes[max(0, len(r.plan.Takes)-shownCalls):]
	for _, p := range slices.Backward(newest) {
		wire.UndoneToolUseIds = append(wire.UndoneToolUseIds, convert.Clean(p.ID))
	}
	return wire
}

// A stored row and how many bytes of the journal it takes.
type stored struct {
	*checkpoint.Row
	bytes int
}

// rowsOf reads the checkpoints of a session; with mark only those in whose text that stands. Those
// that cannot be read are left out. The rows are shared, and not to be changed.
func (d *Daemon) rowsOf(name string, mark []byte) (rows []stored, log *journal.Log, err error) {
	if log, err = d.journal.Log(name); err != nil {
		return nil, nil, err
	}
	state, err := log.State(keyCheckpoint)
	if err != nil {
		return nil, nil, err
	}
	for key, text := range state {
		if !bytes.Contains(text, mark) {
			continue
		}
		row, err := d.checkpoints.Row(text)
		if err != nil || keyCheckpoint+row.Key != key {
			d.Log.Warn("a checkpoint cannot be read", zap.String("session", name), zap.String("key", key), zap.Error(err))
			continue
		}
		rows = append(rows, stored{row, len(text)})
	}
	return rows, log, nil
}

// restoredMark stands in the text of every row of a call that put something back.
var restoredMark = []byte(`"restored":{`)

// history returns the checkpoints of a session, and where it is closed also those by which it was
// restored.
func (d *Daemon) history(name string) (checkpoint.History, error) {
	var all []checkpoint.Past
	add := func(session string, mark []byte) error {
		rows, _, err := d.rowsOf(session, mark)
		for _, row := range rows {
			if mark == nil || row.Restored != nil && row.Restored.Session != session {
				all = append(all, checkpoint.Past{Session: session, Row: row.Row})
			}
		}
		return err
	}
	if err := add(name, nil); err != nil {
		return nil, err
	}
	infos, err := d.journal.Logs()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(infos, func(i journal.Info) bool { return i.Name == name })
	if at >= 0 && infos[at].Sealed.IsZero() {
		return checkpoint.NewHistory(name, all), nil
	}
	for _, info := range infos {
		if info.Name == name || info.Created.Before(infos[max(at, 0)].Created) {
			continue
		}
		if err := add(info.Name, restoredMark); err != nil && !errors.Is(err, journal.ErrNotFound) {
			return nil, err
		}
	}
	return checkpoint.NewHistory(name, all), nil
}

// placeIn names a file in a diff: relative to the root that it lies in.
func placeIn(roots []string, real string) string {
	best := ""
	for _, root := range roots {
		if pathname.Within(root, real) && len(root) > len(best) {
			best = root
		}
	}
	if best == "" || best == real {
		return strings.TrimPrefix(real, "/")
	}
	return strings.TrimPrefix(strings.TrimPrefix(real, best), "/")
}
