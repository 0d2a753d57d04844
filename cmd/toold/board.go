// A board is what a turn's calls look like from outside, made from the events that the daemon sends. It is pure: it
// knows no clock (each event brings its time), no terminal and no wire.

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A state is where a call stands.
type state uint8

const (
	sent    state = iota // not accepted yet
	waiting              // for its turn
	asking               // for an answer
	running              //
	ended                // with a result
	refused              // never accepted: there will be no result
)

// A call is one line on the board.
type call struct {
	id, name, subject string
	batch             uint32
	state             state
	begun             time.Time // by the client's clock, for what runs now
	started, finished time.Time // by the daemon's clock; zero: never
	last              string    // the newest line of its output, or its newest step
	replayed          bool      // its records come from an earlier run
	result            *tooldv1.ToolResult
	refusal           string
}

// A board shows the calls in the order in which they were put on it.
type board struct {
	calls   []*call
	byID    map[string]*call
	dir     string // paths below it are shown without it
	turnID  string // events of other turns are not for this board
	turn    *tooldv1.TurnEnded
	notices []*tooldv1.Notice
}

// newBoard makes a board for a turn whose working directory is dir.
func newBoard(turnID, dir string, uses []use) *board {
	b := &board{byID: map[string]*call{}, turnID: turnID, dir: dir}
	for _, u := range uses {
		b.add(u)
	}
	return b
}

func (b *board) add(u use) {
	c := &call{id: u.id, name: u.name, subject: subject(u.input, b.dir)}
	b.calls = append(b.calls, c)
	b.byID[c.id] = c
}

// apply brings one event in, which came at now by the client's clock.
func (b *board) apply(event *tooldv1.ExecuteResponse, now time.Time) {
	if event.GetTurnId() != b.turnID {
		return
	}
	at := event.GetTime().AsTime()
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Accepted:
		b.accepted(e.Accepted)
	case *tooldv1.ExecuteResponse_Question:
		b.move(e.Question.GetToolUseId(), asking)
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		b.move(e.QuestionWithdrawn.GetToolUseId(), waiting)
	case *tooldv1.ExecuteResponse_Started:
		if c := b.move(e.Started.GetToolUseId(), running); c != nil {
			c.begun, c.started = now, at
		}
	case *tooldv1.ExecuteResponse_Progress:
		b.progress(e.Progress)
	case *tooldv1.ExecuteResponse_ToolResult:
		if c := b.move(e.ToolResult.GetToolUseId(), ended); c != nil {
			c.result, c.finished = e.ToolResult, at
		}
	case *tooldv1.ExecuteResponse_TurnEnded:
		b.turn = e.TurnEnded
	case *tooldv1.ExecuteResponse_Notice:
		b.notice(e.Notice)
	}
}

func (b *board) accepted(a *tooldv1.Accepted) {
	c := b.byID[a.GetToolUseId()]
	if c == nil {
		return
	}
	c.batch, c.replayed = a.GetBatch(), a.GetReplayed()
	b.move(c.id, waiting)
}

// move changes a call's state; an ended call stays ended.
func (b *board) move(id string, to state) *call {
	c := b.byID[id]
	if c == nil || c.state == ended || c.state == refused {
		return nil
	}
	if to == waiting && c.state == running {
		return c
	}
	c.state = to
	return c
}

func (b *board) progress(p *tooldv1.Progress) {
	c := b.byID[p.GetToolUseId()]
	if c == nil || c.state != running {
		return
	}
	if line := lastLine(progressText(p)); line != "" {
		c.last = line
	}
}

func progressText(p *tooldv1.Progress) string {
	switch u := p.GetUpdate().(type) {
	case *tooldv1.Progress_Output:
		return u.Output.GetText() + string(u.Output.GetRaw())
	case *tooldv1.Progress_Step:
		if total := u.Step.GetTotal(); total > 0 {
			return fmt.Sprintf("%s %d/%d", u.Step.GetMessage(), u.Step.GetDone(), total)
		}
		return u.Step.GetMessage()
	default:
		return ""
	}
}

// notice keeps what a person should know. A tool use that was not accepted has no other trace.
func (b *board) notice(n *tooldv1.Notice) {
	b.notices = append(b.notices, n)
	if c := b.byID[n.GetToolUseId()]; c != nil && c.state == sent && n.GetCode() == "duplicate_id" {
		c.state, c.refusal = refused, n.GetMessage()
	}
}

// settled reports that no call waits for anything any more.
func (b *board) settled() bool {
	for _, c := range b.calls {
		if c.state != ended && c.state != refused {
			return false
		}
	}
	return true
}

// failures counts the calls that a model should be told went wrong, and those that were never accepted.
func (b *board) failures() int {
	n := 0
	for _, c := range b.calls {
		if c.state == refused || c.result.GetIsError() {
			n++
		}
	}
	return n
}

// ended reports whether a call has ended with the error of that code.
func (b *board) ended(code string) bool {
	return slices.ContainsFunc(b.calls, func(c *call) bool { return c.result.GetError().GetCode() == code })
}

// replays counts the calls that were run before and not now.
func (b *board) replays() int {
	n := 0
	for _, c := range b.calls {
		if c.replayed {
			n++
		}
	}
	return n
}

// subjectKeys are the parts of an input that tell a person what a call is about, the best first.
var subjectKeys = []string{"command", "file_path", "notebook_path", "pattern", "path", "query", "url", "bash_id", "shell_id", "task_id"}

// subject returns one line about a call: its best part, and where when that is another one.
func subject(input, dir string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return visibleLine(input)
	}
	text := func(key string) string {
		var s string
		if json.Unmarshal(fields[key], &s) != nil {
			return ""
		}
		if key != "command" && dir != "" {
			s = strings.TrimPrefix(s, dir+"/")
		}
		return visibleLine(s)
	}
	for _, key := range subjectKeys {
		best := text(key)
		if best == "" {
			continue
		}
		if where := text("path"); key == "pattern" && where != "" {
			return best + " in " + where
		}
		return best
	}
	return ""
}
