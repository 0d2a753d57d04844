//go:build !no_mcp

// Cuts what a server prints into lines, and keeps the end of what it complains of. Neither holds more than its bound, however
// much comes.

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/toold/toold/tools/ellipsis"
	"github.com/toold/toold/tools/fault"
)

// A splitter is an io.Writer that gives lines. It is used from one goroutine.
type splitter struct {
	give   func(line []byte) // what it gives belongs to who takes it
	refuse func(line []byte) // learns the beginning of a line that is too long and answers nothing
	line   []byte            // not yet ended, at most maxLine; of one that is too long, the beginning
	end    []byte            // of one that is too long
	over   bool
}

// edge is how much of the beginning and the end of a line that is too long is kept: enough for the number of an answer.
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

// flush gives the line that has come.
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

// The number of an answer stands at the beginning of it or at its end, as the server's library has it. Elsewhere nothing is
// believed: text of the result could look like it.
var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,`)
	lastID  = regexp.MustCompile(`,\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// answered returns the id of the call that a line that is too long answers.
func answered(begin, end []byte) (id string, found bool) {
	if m := firstID.FindSubmatch(begin); m != nil {
		return string(m[1]), true
	}
	if m := lastID.FindSubmatch(end); m != nil {
		return string(m[1]), true
	}
	return "", false
}

// codeTooLarge marks an answer that was put in the place of one that is too long. The protocol leaves the numbers below
// -32000 to whoever implements it.
const codeTooLarge = -32098

func tooLarge(id string) []byte {
	text, _ := json.Marshal(fmt.Sprintf("the answer is one message of more than %d bytes", maxLine))
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, codeTooLarge, text)
}

// responseTooLarge is the fault of a call whose answer was not taken.
func responseTooLarge(server string) *fault.Error {
	return fault.Failedf("response_too_large", "The MCP server %s answered with more than %d MiB, which is not taken. The call was carried out. Ask for less at once.", server, maxLine>>20)
}

// A tail keeps the end of what is written to it.
type tail struct {
	most int

	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-t.most):]...)
	t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-t.most):]...)
	return len(p), nil
}

// text returns at most its last lines as one, fit to be shown.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 5
	lines := strings.Split(strings.TrimSpace(clean(string(t.kept))), "\n")
	return ellipsis.Runes(strings.Join(lines[max(0, len(lines)-most):], " | "), 1000)
}
