// Unified diffs, at a cost that depends on the size of the change.

package text

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxPatch is how many bytes of either side, without equal beginnings and ends, are compared. The
// number is our own: a larger diff helps no reader.
const maxPatch = 2 << 20

// Patch returns the unified diff from old to next, labelled with the path on both sides. It is
// valid UTF-8. It is empty for equal texts, and a sentence in parentheses if they are too large to
// compare.
func Patch(path, old, next string) string {
	if old == next {
		return ""
	}
	from, end := changed(old, next)
	a, b := old[from:end], next[from:len(next)-(len(old)-end)]
	if len(a) > maxPatch || len(b) > maxPatch {
		return fmt.Sprintf("(no diff: more than %d MiB differ)\n", maxPatch>>20)
	}
	edits := udiff.Lines(a, b)
	first := lineStart(old, from, udiff.DefaultContextLines)
	for i := range edits {
		edits[i].Start += from - first
		edits[i].End += from - first
	}
	diff, err := udiff.ToUnifiedDiff(path, path, old[first:lineEnd(old, end, udiff.DefaultContextLines)], edits, udiff.DefaultContextLines)
	if err != nil {
		panic("BUG: a computed diff does not apply to what it was computed from: " + err.Error())
	}
	skip := strings.Count(old[:first], "\n")
	for _, h := range diff.Hunks {
		h.FromLine += skip
		h.ToLine += skip
	}
	return strings.ToValidUTF8(diff.String(), "\ufffd")
}

// changed returns where the lines of old begin and end outside of which next is the same. The cost of a diff is then that
// of the change, not of the file.
func changed(old, next string) (from, end int) {
	head, tail := Ends(old, next)
	return lineStart(old, head, 0), lineEnd(old, len(old)-tail, 0)
}

// Ends returns how many bytes two texts have in common at their beginnings and, after those, at
// their ends.
func Ends[S string | []byte](a, b S) (head, tail int) {
	const block = 4096
	shorter := min(len(a), len(b))
	for head+block <= shorter && string(a[head:head+block]) == string(b[head:head+block]) {
		head += block
	}
	for head < shorter && a[head] == b[head] {
		head++
	}
	x, y := a[head:], b[head:]
	shorter -= head
	for tail+block <= shorter && string(x[len(x)-tail-block:len(x)-tail]) == string(y[len(y)-tail-block:len(y)-tail]) {
		tail += block
	}
	for tail < shorter && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	return head, tail
}

// lineStart returns the beginning of the line at at, or of the line so many lines before it.
func lineStart(s string, at, lines int) int {
	for at = strings.LastIndexByte(s[:at], '\n') + 1; lines > 0 && at > 0; lines-- {
		at = strings.LastIndexByte(s[:at-1], '\n') + 1
	}
	return at
}

// lineEnd returns the end of the line at at, or of the line so many lines after it.
func lineEnd(s string, at, lines int) int {
	for ; lines >= 0 && at < len(s); lines-- {
		n := strings.IndexByte(s[at:], '\n')
		if n < 0 {
			return len(s)
		}
		at += n + 1
	}
	return at
}
