// A program's standard error: each line is progress while it runs, and the last lines are part of
// the error if it fails.

package program

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	// maxTail is how many bytes at the end are kept: enough for the end of a stack trace.
	maxTail = 4 << 10
	// maxLine is the longest line of progress, in characters.
	maxLine = 200
)

// A speech receives standard error, from one goroutine. It keeps only what is reported.
type speech struct {
	report func(tools.Step)
	total  int64
	tail   sandbox.Ending
	line   []byte // the beginning of a line that has not ended
}

// Write reports the last complete line of p: a program that prints much must not cost much.
func (s *speech) Write(p []byte) (int, error) {
	s.total += int64(len(p))
	_, _ = s.tail.Write(p) // it never fails
	end := bytes.LastIndexByte(p, '\n')
	if end < 0 {
		s.begin(p)
		return len(p), nil
	}
	if start := bytes.LastIndexByte(p[:end], '\n'); start >= 0 {
		s.line = append(s.line[:0], p[start+1:end]...)
	} else {
		s.begin(p[:end])
	}
	s.end()
	s.begin(p[end+1:])
	return len(p), nil
}

// begin keeps as much of a line as may be shown.
func (s *speech) begin(p []byte) {
	const most = 4 * maxLine // bytes of as many characters
	s.line = append(s.line, p[:min(len(p), max(0, most-len(s.line)))]...)
}

// end reports the completed line, unless it is empty.
func (s *speech) end() {
	text := ellipsis.Runes(strings.TrimSpace(readable(string(s.line))), maxLine+1)
	s.line = s.line[:0]
	if text != "" {
		s.report(tools.Step{Message: text})
	}
}

// last returns the last complete lines, and how much is left out; empty: there was no output.
func (s *speech) last() string {
	text, head := s.tail.String(), "On standard error:\n"
	if s.total > maxTail {
		if _, rest, found := strings.Cut(text, "\n"); found && rest != "" {
			text = rest
		}
		head = fmt.Sprintf("On standard error, after %d bytes that are left out:\n", s.total-int64(len(text)))
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return head + readable(text)
}

// escape is how colours and the like are switched, ECMA-48's control sequences.
var escape = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// readable makes untrusted bytes fit to be shown: UTF-8, without control characters of terminals.
func readable(text string) string {
	text = escape.ReplaceAllString(text, "")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		if r == '\r' {
			return -1
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
