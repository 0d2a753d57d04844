// Checkpoints and plans as messages.

package daemon

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/daemon/checkpoint"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/fs/workspace"
)

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
	wire := &tooldv1.FileChange{Path: workspace.NameOf(delta.Real), Kind: kindOfChange(delta), Note: visible(delta.Note), Added: uint32(delta.Added), Removed: uint32(delta.Removed)}
	diff := visibleDiff(delta.Diff)
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

// shownNames is how many bytes of names and reasons of one kind an answer has. What is left out is counted.
const shownNames = 256 << 10

// shownCalls is how many calls an answer names that are undone.
const shownCalls = 1000

// A room is how many bytes are left.
type room int

// takes reports that texts that belong together have room. Once they have not, nothing has.
func (r *room) takes(texts ...string) bool {
	for _, text := range texts {
		*r -= room(len(text) + 16)
	}
	return *r >= 0
}

// reasons puts gaps into messages as long as there is room, and counts the rest.
func reasons(gaps []workspace.Gap) (shown []*tooldv1.PathReason, more uint32) {
	left := room(shownNames / 2)
	for _, gap := range gaps {
		if reason := (&tooldv1.PathReason{Path: workspace.NameOf(gap.Real), Reason: sentence(gap.Why)}); left.takes(reason.Path, reason.Reason) {
			shown = append(shown, reason)
		}
	}
	return shown, uint32(len(gaps) - len(shown))
}

// files puts deltas into messages as long as there is room, and counts the rest.
func (d *differ) files(deltas []checkpoint.Delta) (shown []*tooldv1.FileChange, more uint32) {
	left := room(shownNames)
	for _, delta := range deltas {
		if name := workspace.NameOf(delta.Real); !left.takes(name, name, manyDiffs, manyDiffs) {
			break
		}
		file := d.file(delta)
		left.takes(file.GetNote())
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
	conflicts := room(shownNames)
	for _, step := range r.plan.Steps {
		deltas = append(deltas, checkpoint.Delta{Real: step.Real, Before: step.Now, After: step.Want})
		name := workspace.NameOf(step.Real)
		switch {
		case step.Conflict == "":
		case conflicts.takes(name, name, step.Conflict):
			wire.Conflicts = append(wire.Conflicts, name)
			wire.ConflictReasons = append(wire.ConflictReasons, &tooldv1.PathReason{Path: name, Reason: visible(step.Conflict)})
		default:
			wire.MoreConflicts++
		}
	}
	wire.Files, wire.MoreRestored = shown.files(deltas)
	for _, file := range wire.Files {
		wire.Restored = append(wire.Restored, file.GetPath())
	}
	wire.NotRestored, wire.MoreNotRestored = reasons(r.plan.Missing)
	for _, p := range slices.Backward(r.plan.Takes) {
		if len(wire.UndoneToolUseIds) < shownCalls {
			wire.UndoneToolUseIds = append(wire.UndoneToolUseIds, clean(p.ID))
		}
	}
	return wire
}

// sentence makes a clause a sentence.
func sentence(clause string) string {
	letter, size := utf8.DecodeRuneInString(clause)
	return visible(string(unicode.ToUpper(letter)) + strings.TrimSuffix(clause[size:], ".") + ".")
}
