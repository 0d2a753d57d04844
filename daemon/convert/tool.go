// Tools of a pool, and changes of files.

package convert

import (
	"slices"
	"strings"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/pool"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
)

// Tool describes a tool of a pool. Of one that is deferred a model gets the name alone, and whole
// says to tell the rest all the same.
func Tool(e pool.Entry, whole bool) *tooldv1.Tool {
	s := e.Spec
	wire := &tooldv1.Tool{
		Name: Clean(s.Name), ReadOnly: s.ReadOnly, Destructive: s.Destructive, OpenWorld: s.OpenWorld, Deferred: e.Deferred,
		Unavailable: Clean(e.Unavailable), Level: highestLevel(s),
	}
	if e.Unlisted && e.Unavailable == "" {
		wire.Unavailable = "It can be called, and is listed where options.tools names it."
	}
	if e.Forbidden {
		wire.Level = tooldv1.Level_LEVEL_FORBIDDEN
	}
	if whole || !e.Deferred {
		wire.Description, wire.InputSchemaJson = Clean(s.Description), Clean(string(s.InputSchema))
	}
	return wire
}

// highestLevel is how far a call of the tool can reach at most.
func highestLevel(s tools.Spec) tooldv1.Level {
	switch {
	case s.OpenWorld || s.Origin == tools.MCP || s.Origin != tools.BuiltIn && !s.ReadOnly:
		return tooldv1.Level_LEVEL_DANGEROUS
	case s.ReadOnly:
		return tooldv1.Level_LEVEL_SAFE
	}
	return tooldv1.Level_LEVEL_CONFIRM
}

// VisibleDiff keeps a carriage return, which a patch needs where a file has it.
func VisibleDiff(diff string) string {
	return strings.Join(Each(strings.Split(diff, "\r"), Visible), "\r")
}

// ChangeKind returns what has happened to a file. One of which only the mode differs has its own kind.
func ChangeKind(d checkpoint.Delta) tooldv1.FileChangeKind {
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

// PathReasons puts gaps into messages as long as there is room, and counts the rest.
func PathReasons(gaps []workspace.Gap) (shown []*tooldv1.PathReason, more uint32) {
	left := Room(ShownNames / 2)
	for _, gap := range gaps {
		if reason := (&tooldv1.PathReason{Path: workspace.NameOf(gap.Real), Reason: sentence(gap.Why)}); left.Takes(reason.Path, reason.Reason) {
			shown = append(shown, reason)
		}
	}
	return shown, uint32(len(gaps) - len(shown))
}
