// Doors, and the table of them.

package escape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Door is one way out of the sandbox, tried.
type Door struct {
	Name   string
	Group  string
	Open   bool   // the attempt had its effect
	Inside string // what the probe said: an errno, or what it did
	Seen   string // what was seen from outside; "" if nothing
}

// MustOpen distinguishes the doors that a build needs from those that must be shut. In a root that must not be written, those of
// WritableRoot may be shut too.
func (d Door) MustOpen() bool { return d.Group == "works" || d.WritableRoot() }

// WritableRoot reports that the door must be open only where the root may be written.
func (d Door) WritableRoot() bool { return d.Group == "works in a root that may be written" }

// Find returns the door of that name; ok is false if it was not tried.
func Find(doors []Door, name string) (d Door, ok bool) {
	i := slices.IndexFunc(doors, func(d Door) bool { return d.Name == name })
	if i < 0 {
		return Door{}, false
	}
	return doors[i], true
}

// Table shows doors by group, the open ones of each first, with a line of counts at the end.
func Table(doors ...Door) string {
	sorted := slices.SortedStableFunc(slices.Values(doors), func(a, b Door) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), -cmp.Compare(word(a), word(b)))
	})
	var b strings.Builder
	var open, needed int
	for _, d := range sorted {
		fmt.Fprintf(&b, "%-5s %-20.20s %-64s %s\n", word(d), d.Group, d.Name, d.detail())
		switch {
		case d.MustOpen() && d.Open:
			needed++
		case d.Open:
			open++
		}
	}
	fmt.Fprintf(&b, "%d doors: %d open that should be shut, %d open as they must be, %d shut\n", len(doors), open, needed, len(doors)-open-needed)
	return b.String()
}

func word(d Door) string {
	if d.Open {
		return "OPEN"
	}
	return "shut"
}

func (d Door) detail() string {
	if d.Seen == "" {
		return d.Inside
	}
	return d.Inside + "; outside: " + d.Seen
}
