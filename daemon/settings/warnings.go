package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/toold/toold/scheduler/permission"
)

// A WarningCode is what a warning is about. Codes are part of the contract with clients;
// docs/settings.md lists them.
type WarningCode string

// The codes.
const (
	Wrong       WarningCode = "wrong"        // something in a file makes no sense or has no effect
	NotInForce  WarningCode = "not_in_force" // a file cannot be read; nothing new of it is in force
	Untrusted   WarningCode = "untrusted"    // a workspace is not trusted, and something in its files does not count for that
	UnknownTool WarningCode = "unknown_tool" // a rule is about a tool that the daemon does not have
	NoSandbox   WarningCode = "no_sandbox"   // settings switch the sandbox off, or the mode bypassPermissions on
	InDaemon    WarningCode = "daemon"       // it is about the daemon's journal, sockets or sessions
	NotUpgraded WarningCode = "not_upgraded" // the last upgrade has failed; the daemon goes on as it was
)

// A Warning is what is wrong, as a sentence for a person.
type Warning struct {
	Code WarningCode
	File string // empty: it is about no single file
	Line int    // 0: it is about the file as a whole
	Tool string // the tool that it is about, in an unknown_tool or a warning about a rule; empty: none
	Text string // with the place
}

func warningAt(at permission.Origin, format string, values ...any) Warning {
	return Warning{Code: Wrong, File: at.File, Line: at.Line, Text: at.String() + ": " + fmt.Sprintf(format, values...)}
}

// arrange orders the warnings by the files and their lines, each once. First come those about no single file, such as
// that a workspace is not trusted; those about a file as a whole come after its lines.
func (m *merger) arrange(v *view) {
	place := func(w Warning) int {
		return slices.IndexFunc(v.layers, func(l layer) bool { return l.place.file != "" && l.place.file == w.File })
	}
	slices.SortStableFunc(m.warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(cmp.Or(a.Line, math.MaxInt), cmp.Or(b.Line, math.MaxInt)))
	})
	for _, w := range m.warnings {
		if !slices.ContainsFunc(m.out.Warnings, func(o Warning) bool { return o.Text == w.Text }) {
			m.out.Warnings = append(m.out.Warnings, w)
		}
	}
}

// WarningTexts returns the sentences of the warnings, in their order.
func (s *Settings) WarningTexts() (texts []string) {
	for _, w := range s.Warnings {
		texts = append(texts, w.Text)
	}
	return texts
}
