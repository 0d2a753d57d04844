package settings

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/toold/toold/scheduler/permission"
)

// A Line is one value that is in force because a file sets it.
type Line struct {
	Key    string // as a path into a settings file, such as permissions.allow
	Value  string
	Origin permission.Origin
}

// Lines returns every value that files set and that counts, grouped by key, the highest first within a list.
func (s *Settings) Lines() []Line { return s.lines }

// Print writes the lines and the warnings as text: a heading for each key, a value a line, and its place. Control
// and bidirectional characters are made visible.
func (s *Settings) Print(w io.Writer) error {
	var b strings.Builder
	heading := ""
	for _, l := range s.Lines() {
		key, value := l.Key, visible(l.Value)
		if name, ok := strings.CutPrefix(key, "env."); ok {
			key, value = "env", visible(name)+"="+value
		}
		if name, ok := strings.CutPrefix(key, "limits."); ok {
			key, value = "limits", name+" "+value
		}
		if key != heading {
			heading = key
			fmt.Fprintf(&b, "%s\n", visible(key))
		}
		fmt.Fprintf(&b, "  %-40s  %s\n", value, visible(l.Origin.String()))
	}
	if b.Len() == 0 {
		b.WriteString("No file sets anything.\n")
	}
	if len(s.Warnings) > 0 {
		b.WriteString("warnings\n")
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "  %s\n", visible(warning.Text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// visible returns a text in which an escape sequence stands for each character that a terminal would act upon.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
