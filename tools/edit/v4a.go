// The V4A format of patches: one text for several files, whose hunks are found by their context and
// not by line numbers. Parsing is pure.

package edit

import (
	"fmt"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// A patch is what a V4A text does to each file, in its order.
type patch []section

// An act is what a section does to its file.
type act uint8

const (
	update act = iota
	add
	remove
)

// The lines that are not content.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	endOfFile  = "*** End of File"
	moveTo     = "*** Move to:"
)

// headers begin a section each.
var headers = map[act]string{update: "*** Update File:", add: "*** Add File:", remove: "*** Delete File:"}

// A section is what a patch does to one file.
type section struct {
	act     act
	path    string
	to      string // where the file is moved; empty: it stays
	content string // of an added file
	hunks   []hunk
	line    int // of its header in the patch, from 1
}

// A hunk is one place of an update.
type hunk struct {
	anchors []string // lines that come before the place, from the outside in, as written behind @@
	marks   int      // how many lines with @@ it began with
	lines   []string // each with its first character: ' ', '-' or '+'
	atEnd   bool     // it ends where the file ends
	line    int      // of its first line in the patch, from 1
}

// old returns the lines that the file must have.
func (h *hunk) old() (lines []string) {
	for _, l := range h.lines {
		if l[0] != '+' {
			lines = append(lines, l[1:])
		}
	}
	return lines
}

// changes reports whether it adds or removes a line.
func (h *hunk) changes() bool {
	for _, l := range h.lines {
		if l[0] != ' ' {
			return true
		}
	}
	return false
}

// A patchReader reads a patch line by line.
type patchReader struct {
	lines []string
	at    int // index of the next line
}

// parsePatch parses a patch. Its error is a fault invalid_patch that names the line.
func parsePatch(input string) (patch, error) {
	r := &patchReader{lines: splitLines(input)}
	r.skipBlank()
	if !r.is(beginPatch) {
		return nil, r.wrong("a patch begins with %q", beginPatch)
	}
	r.at++
	var p patch
	for !r.is(endPatch) {
		s, err := r.section()
		if err != nil {
			return nil, err
		}
		p = append(p, s)
	}
	r.at++
	r.skipBlank()
	switch {
	case r.at < len(r.lines):
		return nil, r.wrong("nothing may follow %q", endPatch)
	case len(p) == 0:
		return nil, fault.Invalidf("invalid_patch", "The patch is empty: it names no file.").At("/patch")
	}
	return p, nil
}

// is reports whether the next line is text, but for blanks around it.
func (r *patchReader) is(text string) bool {
	return r.at < len(r.lines) && strings.TrimSpace(r.lines[r.at]) == text
}

func (r *patchReader) skipBlank() {
	for r.at < len(r.lines) && strings.TrimSpace(r.lines[r.at]) == "" {
		r.at++
	}
}

// wrong returns the fault for the next line.
func (r *patchReader) wrong(format string, args ...any) error {
	where := "The patch ends too early"
	if r.at < len(r.lines) {
		where = fmt.Sprintf("Line %d of the patch, %s, is wrong", r.at+1, excerpt(r.lines[r.at]))
	}
	return fault.Invalidf("invalid_patch", "%s: %s. Nothing was changed.", where, fmt.Sprintf(format, args...)).At("/patch")
}

// name returns what follows prefix on the next line, which it passes; false: another line is there.
func (r *patchReader) name(prefix string) (string, bool) {
	if r.at == len(r.lines) {
		return "", false
	}
	name, is := strings.CutPrefix(strings.TrimSpace(r.lines[r.at]), prefix)
	if name = strings.TrimSpace(name); !is || name == "" {
		return "", false
	}
	r.at++
	return name, true
}

// section reads the part for one file.
func (r *patchReader) section() (s section, err error) {
	s.line = r.at + 1
	found := false
	for s.act = range headers {
		if s.path, found = r.name(headers[s.act]); found {
			break
		}
	}
	switch {
	case !found:
		return s, r.wrong("expected %q, %q or %q with a path, or %q", headers[add], headers[update], headers[remove], endPatch)
	case s.act == add:
		s.content = r.added()
	case s.act == update:
		if s.to, _ = r.name(moveTo); s.to == s.path {
			s.to = ""
		}
		err = r.hunks(&s)
	}
	return s, err
}

// added reads the lines of a new file. Each of them ends in a line break.
func (r *patchReader) added() string {
	var content strings.Builder
	for ; r.at < len(r.lines) && strings.HasPrefix(r.lines[r.at], "+"); r.at++ {
		content.WriteString(r.lines[r.at][1:] + "\n")
	}
	return content.String()
}

// hunks reads the hunks of an update.
func (r *patchReader) hunks(s *section) error {
	changes := s.to != ""
	for r.at < len(r.lines) && (r.is(endOfFile) || !strings.HasPrefix(r.lines[r.at], "***")) {
		h, err := r.hunk(len(s.hunks) == 0)
		if err != nil {
			return err
		}
		s.hunks = append(s.hunks, h)
		changes = changes || h.changes()
	}
	if !changes {
		return fault.Invalidf("invalid_patch", "The part of the patch for %s, from its line %d on, changes nothing: no line in it begins with + or -. Nothing was changed.", s.path, s.line).At("/patch")
	}
	return nil
}

// hunk reads one hunk. first: it needs no @@.
func (r *patchReader) hunk(first bool) (h hunk, err error) {
	h.line = r.at + 1
	for ; r.at < len(r.lines); r.at++ {
		anchor, is := strings.CutPrefix(r.lines[r.at], "@@")
		if !is {
			break
		}
		h.marks++
		if anchor = strings.TrimPrefix(anchor, " "); strings.TrimSpace(anchor) != "" {
			h.anchors = append(h.anchors, anchor)
		}
	}
	if !first && h.marks == 0 {
		return h, r.wrong("a further hunk begins with @@")
	}
	for ; r.at < len(r.lines); r.at++ {
		switch line := r.lines[r.at]; {
		case r.is(endOfFile):
			r.at++
			h.atEnd = true
			return h, h.whole(r)
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "***"):
			return h, h.whole(r)
		case line == "":
			h.lines = append(h.lines, " ") // some models leave the blank out
		case strings.IndexByte(" +-", line[0]) >= 0:
			h.lines = append(h.lines, line)
		default:
			return h, r.wrong("a line of a hunk begins with a space, + or -")
		}
	}
	return h, h.whole(r)
}

// whole returns a fault for a hunk without lines.
func (h *hunk) whole(r *patchReader) error {
	if len(h.lines) == 0 {
		return r.wrong("the hunk before it, on line %d, has no lines", h.line)
	}
	return nil
}
