// A turn state is what a turn's calls look like from outside, made from the events that the daemon sends. It is pure:
// each event brings its time.

package terminal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A State is where a call stands.
type state uint8

const (
	Sent    state = iota // not accepted yet
	waiting              // for its turn
	asking               // for an answer
	running              //
	Ended                // with a result
	Refused              // never accepted: there will be no result
)

// A Call is one Call of a turn.
type Call struct {
	ID, Name, Subject string
	batch             uint32
	after             []string // ids of the calls that it waited for, in the dependency order
	State             state
	begun             time.Time // by the client's clock, for what runs now
	started, finished time.Time // by the daemon's clock; zero: never
	last              string    // the newest line of its output, or its newest step
	replayed          bool      // its records come from an earlier run
	result            *tooldv1.ToolResult
	refusal           string
}

// A TurnState holds the calls in the order in which they were added.
type TurnState struct {
	Calls   []*Call
	ByID    map[string]*Call
	dir     string // paths below it are shown without it
	TurnID  string // events of other turns are not for this turn
	Turn    *tooldv1.TurnEnded
	Notices []*tooldv1.Notice
}

// NewTurnState returns the state of a turn whose working directory is dir.
func NewTurnState(turnID, dir string) *TurnState {
	return &TurnState{ByID: map[string]*Call{}, TurnID: turnID, dir: dir}
}

// Add appends a tool use that was not accepted yet. input is its JSON text, valid or not.
func (b *TurnState) Add(id, name, input string) {
	c := &Call{ID: id, Name: name, Subject: Subject(input, b.dir)}
	b.Calls = append(b.Calls, c)
	b.ByID[c.ID] = c
}

// Apply brings one event in, which came at now by the client's clock.
func (b *TurnState) Apply(event *tooldv1.ExecuteResponse, now time.Time) {
	if event.GetTurnId() != b.TurnID {
		return
	}
	at := event.GetTime().AsTime()
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Accepted:
		if c := b.move(e.Accepted.GetToolUseId(), waiting); c != nil {
			c.batch, c.replayed = e.Accepted.GetBatch(), e.Accepted.GetReplayed()
			c.after = e.Accepted.GetWaitsFor()
		}
	case *tooldv1.ExecuteResponse_Question:
		b.move(e.Question.GetToolUseId(), asking)
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		if c := b.move(e.QuestionWithdrawn.GetToolUseId(), waiting); c != nil && !c.begun.IsZero() {
			c.State = running // it was asked in the middle
		}
	case *tooldv1.ExecuteResponse_Started:
		if c := b.move(e.Started.GetToolUseId(), running); c != nil {
			c.begun, c.started = now, at
		}
	case *tooldv1.ExecuteResponse_Progress:
		b.progress(e.Progress)
	case *tooldv1.ExecuteResponse_ToolResult:
		if c := b.move(e.ToolResult.GetToolUseId(), Ended); c != nil {
			c.result, c.finished = e.ToolResult, at
		}
	case *tooldv1.ExecuteResponse_TurnEnded:
		b.Turn = e.TurnEnded
	case *tooldv1.ExecuteResponse_Notice:
		b.notice(e.Notice)
	}
}

// move changes a call's state; an ended call stays ended.
func (b *TurnState) move(id string, to state) *Call {
	c := b.ByID[id]
	if c == nil || c.Over() {
		return nil
	}
	if to == waiting && c.State == running {
		return c
	}
	c.State = to
	return c
}

func (b *TurnState) progress(p *tooldv1.Progress) {
	c := b.ByID[p.GetToolUseId()]
	if c == nil || c.State != running {
		return
	}
	if line := LastLine(progressText(p)); line != "" {
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

// notice keeps what the user should know. A tool use that was not accepted has no other trace.
func (b *TurnState) notice(n *tooldv1.Notice) {
	b.Notices = append(b.Notices, n)
	if c := b.ByID[n.GetToolUseId()]; c != nil && c.State == Sent && n.GetCode() == "duplicate_id" {
		c.State, c.refusal = Refused, n.GetMessage()
	}
}

// Over reports whether nothing more comes of the call.
func (c *Call) Over() bool { return c.State == Ended || c.State == Refused }

// Settled reports that no call waits for anything any more.
func (b *TurnState) Settled() bool { return b.count((*Call).Over) == len(b.Calls) }

// Failures counts the calls that a model should be told went wrong, and those that were never accepted.
func (b *TurnState) Failures() int {
	return b.count(func(c *Call) bool { return c.State == Refused || c.result.GetIsError() })
}

// Ended reports whether a call has ended with the error of that code.
func (b *TurnState) Ended(code string) bool {
	return b.count(func(c *Call) bool { return c.result.GetError().GetCode() == code }) > 0
}

// Replays counts the calls that were run before and not now.
func (b *TurnState) Replays() int { return b.count(func(c *Call) bool { return c.replayed }) }

func (b *TurnState) count(is func(*Call) bool) (n int) {
	for _, c := range b.Calls {
		if is(c) {
			n++
		}
	}
	return n
}

// subjectKeys are the parts of an input that show the user what a call is about, the best first.
var subjectKeys = []string{"command", "file_path", "notebook_path", "pattern", "path", "query", "url", "bash_id", "shell_id", "task_id"}

// Subject returns one line about a call: its best part, and where when that is another one.
func Subject(input, dir string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return VisibleLine(input)
	}
	text := func(key string) string {
		var s string
		if json.Unmarshal(fields[key], &s) != nil {
			return ""
		}
		if key != "command" && dir != "" {
			s = strings.TrimPrefix(s, dir+"/")
		}
		return VisibleLine(s)
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

// Answer returns the call's result. For a tool use that was refused it is a result with the refusal, since a conversation
// with a model cannot go on without one.
func (c *Call) Answer() *tooldv1.ToolResult {
	if c.result != nil {
		return c.result
	}
	return &tooldv1.ToolResult{
		ToolUseId: c.ID, IsError: true, Outcome: tooldv1.Outcome_OUTCOME_INVALID,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: c.refusal}}},
		Error:   &tooldv1.Error{Code: "duplicate_id", Message: c.refusal},
	}
}
