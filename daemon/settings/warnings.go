// In which order a person reads what is wrong with the files. Warnings begin with the file and the line that they are about,
// if they are about one; what they say is not known here.

package settings

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// arrange puts the warnings into the order of the files and of their lines, each once. In front stands what is about no file
// alone, such as that a workspace is not trusted.
func (m *merger) arrange(v *view) {
	slices.SortStableFunc(m.out.Warnings, func(a, b string) int {
		fileA, lineA := v.spotOf(a)
		fileB, lineB := v.spotOf(b)
		return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB))
	})
	seen := map[string]bool{}
	m.out.Warnings = slices.DeleteFunc(m.out.Warnings, func(warning string) bool {
		again := seen[warning]
		seen[warning] = true
		return again
	})
}

// spotOf gives the index of the file that a warning is about, or -1, and the line. What names no line comes behind the lines.
func (v *view) spotOf(warning string) (file, line int) {
	for i, l := range v.layers {
		rest, found := strings.CutPrefix(warning, l.place.file+":")
		if !found || l.place.file == "" {
			continue
		}
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		if line, err := strconv.Atoi(number); err == nil {
			return i, line
		}
		return i, math.MaxInt
	}
	return -1, 0
}
