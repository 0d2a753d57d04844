package daemon

// Checkpoints and plans as messages. Knows nothing of how they came about.

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/daemon/checkpoint"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/workspace"
)

// A differ puts deltas into messages, with diffs as long as there is room for them.
type differ struct {
	store *checkpoint.Store
	roots []string
	left  int  // bytes of diffs
	none  bool // no diffs are wanted
}

func (d *differ) file(delta checkpoint.Delta) *tooldv1.FileChange {
	if !d.none && d.left > 0 {
		d.store.Compare(&delta, placeIn(d.roots, delta.Real))
	}
	wire := &tooldv1.FileChange{Path: workspace.NameOf(delta.Real), Kind: kindOfChange(delta), Note: visible(delta.Note), Added: uint32(delta.Added), Removed: uint32(delta.Removed)}
	diff := visibleDiff(delta.Diff)
	switch {
	case d.none:
	case d.left <= 0:
		wire.Diff = "(no diff, since there are many: ask for this file alone)\n"
	case len(diff) <= d.left:
		wire.Diff = diff
		d.left -= len(diff)
	case len(diff) > shownDiffs:
		wire.Diff = fmt.Sprintf("(a diff of %d bytes is not shown)\n", len(diff))
	default:
		wire.Diff, d.left = "(no diff, since there are many: ask for this file alone)\n", 0
	}
	return wire
}

// visibleDiff keeps a carriage return, which a patch needs where a file has it.
func visibleDiff(diff string) string {
	if !strings.Contains(diff, "\r") {
		return visible(diff)
	}
	parts := strings.Split(diff, "\r")
	for i := range parts {
		parts[i] = visible(parts[i])
	}
	return strings.Join(parts, "\r")
}

func kindOfChange(d checkpoint.Delta) tooldv1.FileChangeKind {
	switch {
	case d.Before.Kind == workspace.Absent:
		return tooldv1.FileChangeKind_FILE_CHANGE_KIND_CREATED
	case d.After.Kind == workspace.Absent:
		return tooldv1.FileChangeKind_FILE_CHANGE_KIND_REMOVED
	case d.Before.Kind == d.After.Kind && d.Before.Hash == d.After.Hash && slices.Equal(d.Before.Target, d.After.Target) && d.Before.Stamp == d.After.Stamp:
		return tooldv1.FileChangeKind_FILE_CHANGE_KIND_MODE
	}
	return tooldv1.FileChangeKind_FILE_CHANGE_KIND_CHANGED
}

// restoreOf is what a plan would do. What would be written is kept for the diffs' sake alone.
func (d *Daemon) restoreOf(r *restore) *tooldv1.RestoreResponse {
	wire := &tooldv1.RestoreResponse{PlanDigest: r.plan.Digest()}
	shown := differ{store: d.checkpoints, roots: r.roots, left: shownDiffs}
	hold := d.checkpoints.Hold()
	defer hold.Release()
	for _, step := range r.plan.Steps {
		delta := checkpoint.Delta{Real: step.Real, Before: step.Now, After: step.Want}
		if !d.checkpoints.Has(step.Now.Hash) && step.Now.Kind == workspace.Regular && d.limits.CheckpointBytes > 0 {
			_, _ = r.view.Image(d.camera(hold), step.Real) // without it there is no diff, and that is all
		}
		file := shown.file(delta)
		wire.Files, wire.Restored = append(wire.Files, file), append(wire.Restored, file.GetPath())
		if step.Conflict != "" {
			wire.Conflicts = append(wire.Conflicts, file.GetPath())
			wire.ConflictReasons = append(wire.ConflictReasons, &tooldv1.PathReason{Path: file.GetPath(), Reason: visible(step.Conflict)})
		}
	}
	for _, gap := range r.plan.Missing {
		wire.NotRestored = append(wire.NotRestored, &tooldv1.PathReason{Path: workspace.NameOf(gap.Real), Reason: sentence(gap.Why)})
	}
	for _, p := range slices.Backward(r.plan.Rows) {
		wire.UndoneToolUseIds = append(wire.UndoneToolUseIds, clean(p.ID))
	}
	return wire
}

// sentence makes a clause a sentence.
func sentence(clause string) string {
	letter, size := utf8.DecodeRuneInString(clause)
	return visible(string(unicode.ToUpper(letter)) + strings.TrimSuffix(clause[size:], ".") + ".")
}
