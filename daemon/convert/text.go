// Texts as messages show them: valid, with everything visible, and no longer than there is room
// for.

package convert

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/tools/text/ellipsis"
	"github.com/toold/toold/tools/text/redact"
)

// How many bytes of a text stand in a message: a person reads less, and the message stays far below
// 4 MiB, which is as much as most clients take.
const (
	shownName   = 100
	ShownReason = 4 << 10
	ShownInput  = 64 << 10
	ShownDiff   = 512 << 10
	shownFault  = 64 << 10
	shownLines  = 100 // of what a call would do
)

// ShownNames is how many bytes of names and reasons of one kind an answer has. What is left out is
// counted.
const ShownNames = 256 << 10

// ShownAnswer is how many bytes of what a user says with a no stand in the result.
const ShownAnswer = 16 << 10

// Clean makes text valid UTF-8, as the wire wants it.
func Clean(text string) string {
	if utf8.ValidString(text) { // a fifth of the cost
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// displayed is Visible with marks in place of what looks like a secret: for what the daemon itself
// says of a call. What a call was given and what it gives back stay as they are.
func displayed(text string) string { return Visible(redact.Text(text)) }

// Visible makes control and bidirectional characters visible, so that what is shown is what is
// there.
func Visible(text string) string {
	text = Clean(text)
	if strings.IndexFunc(text, isInvisible) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !isInvisible(r):
			out.WriteRune(r)
		case r < 0x80:
			out.WriteRune(0x2400 + min(r, 0x21)) // the pictures of control characters; 0x7f has the one after those
		default:
			const hex = "0123456789ABCDEF"
			out.WriteString("<U+" + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]}) + ">")
		}
	}
	return out.String()
}

// isInvisible reports whether r is a control character other than those of lines, or shows nothing
// itself and changes how others look.
func isInvisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r == 0x61c:
		return true
	}
	return false
}

// Shortened makes text valid UTF-8 of at most max bytes and, when it was longer, notes how many are
// left out.
func Shortened(text string, max int) string {
	text = Clean(text)
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "") + fmt.Sprintf("\n[%d more bytes are not shown]", len(text)-max)
}

// Short is a name that a client has made up, fit for one line of a message.
func Short(name string) string {
	return ellipsis.Bytes(Clean(name), shownName)
}

// Each returns what f makes of each element; nil: there are none.
func Each[T, U any](list []T, f func(T) U) (made []U) {
	for _, element := range list {
		made = append(made, f(element))
	}
	return made
}

// A Room is how many bytes are left.
type Room int

// Takes reports whether texts that belong together have room. Once they have not, nothing has.
func (r *Room) Takes(texts ...string) bool {
	for _, text := range texts {
		*r -= Room(len(text) + 16)
	}
	return *r >= 0
}

// sentence makes a clause a sentence.
func sentence(clause string) string {
	letter, size := utf8.DecodeRuneInString(clause)
	return Visible(string(unicode.ToUpper(letter)) + strings.TrimSuffix(clause[size:], ".") + ".")
}
