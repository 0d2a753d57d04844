package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/toold/toold/scheduler/permission"
)

// A warning is what is wrong with a file, as a sentence for a person.
type warning struct {
	file string // empty: it is about no single file
	line int    // 0: it is about the file as a whole
	text string // with the place
}

func warningAt(at permission.Origin, format string, values ...any) warning {
	return warning{at.File, at.Line, at.String() + ": " + fmt.Sprintf(format, values...)}
}

// arrange orders the warnings by the files and their lines, each once. First come those about no single file, such as
// that a workspace is not trusted; those about a file as a whole come after its lines.
func (m *merger) arrange(v *view) {
	place := func(w warning) int {
		return slices.IndexFunc(v.layers, func(l layer) bool { return l.place.file != "" && l.place.file == w.file })
	}
	slices.SortStableFunc(m.warnings, func(a, b warning) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(cmp.Or(a.line, math.MaxInt), cmp.Or(b.line, math.MaxInt)))
	})
	for _, w := range m.warnings {
		if !slices.Contains(m.out.Warnings, w.text) {
			m.out.Warnings = append(m.out.Warnings, w.text)
		}
	}
}
