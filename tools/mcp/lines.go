//go:build !no_mcp

// Splitting what a server prints into lines, and keeping the end of its standard error. Both have a
// limit of memory.

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/toold/toold/tools/fault"
)

// A splitter is an io.Writer that splits into lines. It is not safe for concurrent use.
type splitter struct {
	give   func(line []byte) // receives each line, and owns it
	refuse func(line []byte) // receives the beginning of a line that is too long and answers no call
	line   []byte            // unfinished, at most maxLine; the beginning, if the line is too long
	end    []byte            // the end of a line that is too long
	over   bool
}

// edge is how much of the beginning and the end of such a line is kept: enough for the id of an
// answer.
const edge = 512

// Write implements io.Writer.
func (s *splitter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		s.add(piece)
		if rest = after; ended {
			s.flush()
		}
	}
	return len(p), nil
}

func (s *splitter) add(piece []byte) {
	if !s.over && len(s.line)+len(piece) <= maxLine {
		s.line = append(s.line, piece...)
		return
	}
	if !s.over {
		s.over = true
		s.end = append(s.end, s.line[max(0, len(s.line)-edge):]...)
		s.line = append([]byte(nil), s.line[:min(edge, len(s.line))]...)
	}
	s.end = append(s.end, piece[max(0, len(piece)-edge):]...)
	s.end = append(s.end[:0], s.end[max(0, len(s.end)-edge):]...)
}

// flush passes on the line.
func (s *splitter) flush() {
	line, end, over := s.line, s.end, s.over
	s.line, s.end, s.over = nil, nil, false
	switch {
	case len(line) == 0:
	case !over:
		s.give(line)
	default:
		if id, found := answered(line, end); found {
			s.give(tooLarge(id))
		} else {
			s.refuse(line)
		}
	}
}

// The id of an answer stands at its beginning or its end, depending on the server's library. Other
// places are not searched: the text of the result could look like an id.
var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,`)
	lastID  = regexp.MustCompile(`,\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// answered returns the id of the call that a line answers, if the line is too long to be parsed.
func answered(begin, end []byte) (id string, found bool) {
	for _, m := range [][][]byte{firstID.FindSubmatch(begin), lastID.FindSubmatch(end)} {
		if m != nil {
			return string(m[1]), true
		}
	}
	return "", false
}

// codeTooLarge marks an answer that replaces one that is too long. The protocol reserves the
// numbers below -32000 for implementations.
const codeTooLarge = -32098

func tooLarge(id string) []byte {
	text, _ := json.Marshal(fmt.Sprintf("the answer is one message of more than %d bytes", maxLine))
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, codeTooLarge, text)
}

// responseTooLarge returns the fault of a call whose answer was too long.
func responseTooLarge(server string) *fault.Error {
	return fault.Failedf("response_too_large", "The MCP server %s answered with more than %d MiB, the most that is accepted. The call was carried out. Request less at once.", server, maxLine>>20)
}
