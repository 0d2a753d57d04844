// Numbers, modes, and peers in words, and words in tables.

package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/reflect/protoreflect"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// PeerWords names who uses a session. Of a session in a cluster only the client is known.
func PeerWords(p *tooldv1.Peer) string {
	var parts []string
	switch who := p.GetPrincipal(); {
	case who != "" && !strings.HasPrefix(who, "uid:"):
		parts = append(parts, VisibleLine(who))
	case who != "" || p.GetUid() != 0:
		parts = append(parts, fmt.Sprintf("user %d", p.GetUid()))
	}
	if name := p.GetClientName(); name != "" {
		parts = append(parts, VisibleLine(strings.TrimSpace(name+" "+p.GetClientVersion())))
	}
	return cmp.Or(strings.Join(parts, ", "), "a client")
}

// ModeName returns the name of a permission mode, as settings have it.
func ModeName(mode tooldv1.PermissionMode) string {
	for name, m := range Modes {
		if m == mode {
			return name
		}
	}
	return mode.String()
}

// Word returns a value of an enum of the wire as the documentation writes it: "ok", "timed_out", "forbidden".
func Word(value protoreflect.Enum) string {
	prefix, _ := strings.CutSuffix(string(value.Descriptor().Values().ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.TrimPrefix(fmt.Sprint(value), prefix))
}

// Count is a number with its noun: "1 call", "2 calls".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ModeNames returns the names of the permission modes, sorted.
func ModeNames() []string { return slices.Sorted(maps.Keys(Modes)) }

// Modes are the permission modes by their names in settings.
var Modes = map[string]tooldv1.PermissionMode{
	"default":           tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT,
	"acceptEdits":       tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS,
	"plan":              tooldv1.PermissionMode_PERMISSION_MODE_PLAN,
	"dontAsk":           tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK,
	"bypassPermissions": tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS,
}

// Table returns rows of cells in columns.
func Table(rows ...[]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = VisibleLine(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // a Builder takes everything
	return b.String()
}
