// Package ellipsis cuts texts that are too long for a message and marks the cut with "…". It does
// not know what they mean.
package ellipsis

import (
	"strings"
	"unicode/utf8"
)

// Bytes returns text, or its first whole characters within most bytes and the mark.
func Bytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Runes returns text if it has no more than most characters, otherwise the first most-1 of them and the mark.
func Runes(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
