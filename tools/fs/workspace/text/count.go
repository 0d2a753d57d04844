// Numbers with their nouns, in English.

package text

import (
	"fmt"
	"strings"
)

// Count writes a number with its noun: "1 file", "3 files".
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
