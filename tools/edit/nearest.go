// The message if nothing matches: the most similar region, and what differs there.

package edit

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// Nearest are the Details of no_match: the lines of the file that are most similar to old_string.
// FirstLine is 0 if none is.
type Nearest struct {
	FirstLine   int      `json:"firstLine"`
	LastLine    int      `json:"lastLine"`
	Differences []string `json:"differences,omitempty"` // one for each line that differs, the first ten
}

const (
	maxNearest  = 12     // lines of the nearest region that are shown
	maxCompared = 50_000 // lines of a file that are searched
)

// noMatch returns the error for an old_string that s does not contain.
func noMatch(s, old string) error {
	lines, wanted := splitLines(s), splitLines(old)
	n := nearest(lines, wanted, "old_string")
	var b strings.Builder
	b.WriteString("old_string does not occur in the file.")
	if hint := mistake(s, old); hint != "" {
		b.WriteString(" " + hint)
	}
	if n.FirstLine == 0 {
		b.WriteString(" No region of it is similar. Read the file again and copy the text exactly.")
		return fault.Invalidf("no_match", "%s", b.String()).With(n)
	}
	b.WriteString(" " + n.shown(lines) + "Correct old_string and send the call again.")
	return fault.Invalidf("no_match", "%s", b.String()).With(n)
}

// shown returns the region for a message; empty: there is none.
func (n Nearest) shown(lines []string) string {
	if n.FirstLine == 0 {
		return ""
	}
	var b strings.Builder
	if n.FirstLine == n.LastLine {
		fmt.Fprintf(&b, "The most similar line is %d:\n", n.FirstLine)
	} else {
		fmt.Fprintf(&b, "The most similar region is lines %d to %d:\n", n.FirstLine, n.LastLine)
	}
	for i := n.FirstLine; i <= min(n.LastLine, n.FirstLine+maxNearest-1); i++ {
		b.Write(text.AppendNumbered(nil, i, text.Shown(lines[i-1])))
	}
	if len(n.Differences) > 0 {
		b.WriteString("What differs: " + strings.Join(n.Differences, "; ") + ".\n")
	}
	return b.String()
}

// splitLines returns the lines without their breaks; a break at the very end begins no further
// line.
func splitLines(s string) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

var numbered = regexp.MustCompile(`(?m)^ *\d+\t`)

// mistake returns a mistake that old_string itself shows.
func mistake(s, old string) string {
	switch {
	case strings.Contains(s, numbered.ReplaceAllString(old, "")) && numbered.MatchString(old):
		return "It begins its lines with the numbers that Read adds; without them it would match."
	case strings.Contains(old, "\ufffd") && !utf8.ValidString(s):
		return "It holds U+FFFD, which Read shows for bytes that are not text; leave those out."
	case strings.TrimRight(old, "\r\n") != old && strings.Contains(s, strings.TrimRight(old, "\r\n")):
		return "It ends in a line break, where the line in the file continues or the file ends."
	}
	return ""
}

// nearest finds the region with the most lines in common, ignoring spaces, quotes and case; if
// there is none, the line that is most similar to the longest line of wanted. source is where wanted
// is from, for the differences.
func nearest(lines, wanted []string, source string) Nearest {
	lines = lines[:min(len(lines), maxCompared)]
	first, ok := bySharedLines(lines, wanted)
	if !ok {
		first, ok = byLongestLine(lines, wanted)
	}
	if !ok {
		return Nearest{}
	}
	first = max(first, 0)
	n := Nearest{FirstLine: first + 1, LastLine: min(first+len(wanted), len(lines))}
	for i := first; i < n.LastLine && len(n.Differences) < 10; i++ {
		if w := i - first; w < len(wanted) && lines[i] != wanted[w] {
			n.Differences = append(n.Differences, fmt.Sprintf("line %d: %s", i+1, difference(lines[i], wanted[w], source)))
		}
	}
	return n
}

// loose returns a line without details that are often wrong.
func loose(line string) string {
	return strings.ToLower(strings.Join(strings.Fields(fold(line, quotes).text), " "))
}

// bySharedLines lets each common line vote for the beginning of the region.
func bySharedLines(lines, wanted []string) (first int, ok bool) {
	places := map[string][]int{}
	for i, w := range wanted {
		if l := loose(w); l != "" {
			places[l] = append(places[l], i)
		}
	}
	votes := map[int]int{}
	best := 0
	for i, line := range lines {
		for _, at := range places[loose(line)] {
			start := i - at
			if votes[start]++; votes[start] > best {
				first, best = start, votes[start]
			}
		}
	}
	return first, best > 0
}

// byLongestLine compares pairs of neighbouring characters, of which the two lines must share half.
func byLongestLine(lines, wanted []string) (first int, ok bool) {
	at := 0
	for i, w := range wanted {
		if len(loose(w)) > len(loose(wanted[at])) {
			at = i
		}
	}
	want := bigrams(loose(wanted[at]))
	best := 0.5
	for i, line := range lines {
		l := loose(text.Shown(line))
		if len(l) > 4*len(want)+40 && !strings.Contains(l, loose(wanted[at])) {
			continue
		}
		if score := resemblance(want, bigrams(l)); score > best {
			first, best, ok = i-at, score, true
		}
	}
	return first, ok
}

func bigrams(s string) map[string]int {
	out := map[string]int{}
	for i := 0; i+2 <= len(s); i++ {
		out[s[i:i+2]]++
	}
	return out
}

// resemblance returns the share of pairs that two texts have in common, from 0 to 1.
func resemblance(a, b map[string]int) float64 {
	common, all := 0, 0
	for pair, n := range a {
		common += 2 * min(n, b[pair])
		all += n
	}
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return 0
	}
	return float64(common) / float64(all)
}

// difference returns how the file's line and the wanted one, which is from source, differ.
func difference(have, want, source string) string {
	indentH, indentW := indentation(have), indentation(want)
	bodyH, bodyW := have[len(indentH):], want[len(indentW):]
	switch {
	case bodyH == bodyW:
		return fmt.Sprintf("indentation is %s in the file, %s in %s", blanks(indentH), blanks(indentW), source)
	case strings.TrimRightFunc(bodyH, unicode.IsSpace) == strings.TrimRightFunc(bodyW, unicode.IsSpace):
		return "white space at the end"
	case strings.Join(strings.Fields(have), "") == strings.Join(strings.Fields(want), ""):
		return "white space"
	case fold(bodyH, quotes).text == fold(bodyW, quotes).text:
		return "quotes"
	case strings.EqualFold(bodyH, bodyW):
		return "upper and lower case"
	}
	at := 0
	for at < min(len(bodyH), len(bodyW)) && bodyH[at] == bodyW[at] {
		at++
	}
	for at > 0 && (at < len(bodyH) && !utf8.RuneStart(bodyH[at]) || at < len(bodyW) && !utf8.RuneStart(bodyW[at])) {
		at--
	}
	return fmt.Sprintf("the file has %s where %s has %s", excerpt(bodyH[at:]), source, excerpt(bodyW[at:]))
}

func indentation(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }

// blanks describes an indentation.
func blanks(s string) string {
	tabs, spaces := strings.Count(s, "\t"), strings.Count(s, " ")
	switch {
	case s == "":
		return "nothing"
	case spaces == 0:
		return text.Count(tabs, "tab")
	case tabs == 0:
		return text.Count(spaces, "space")
	}
	return text.Count(tabs, "tab") + " and " + text.Count(spaces, "space")
}

// excerpt quotes the beginning of s, so that invisible characters are shown.
func excerpt(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%+q", string(r[:min(len(r), 20)]))
}
