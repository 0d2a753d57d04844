// Numbers with their nouns, in English.

package text

import (
	"strconv"
	"strings"
)

// Count writes a number with its noun: "1 file", "3 files".
func Count[N int | int64](n N, noun string) string { return string(AppendCount(nil, n, noun)) }

// AppendCount appends what Count returns.
func AppendCount[N int | int64](to []byte, n N, noun string) []byte {
	to = append(strconv.AppendInt(to, int64(n), 10), ' ')
	stem, ok := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
		return append(to, noun...)
	case ok:
		return append(append(to, stem...), "ies"...)
	}
	return append(append(to, noun...), 's')
}
