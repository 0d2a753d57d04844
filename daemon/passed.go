// What is passed on of a session: the form in which another program gets it.

package daemon

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/dialect"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
)

// A passedSession is a session at rest, for another program: messages of the contract are in their wire format.
type passedSession struct {
	Name      string            `json:"name"`
	Created   time.Time         `json:"created"`
	Meta      meta              `json:"meta"`
	Listed    []byte            `json:"listed"`
	Used      time.Time         `json:"used"`
	Bytes     int64             `json:"bytes"`
	Env       map[string]string `json:"env,omitempty"`
	Owner     access.Owner      `json:"owner"`
	Client    []byte            `json:"client,omitempty"`
	Peer      *pipeline.Peer    `json:"peer,omitempty"`
	Detached  time.Time         `json:"detached"`
	CanAsk    bool              `json:"can_ask,omitempty"`
	Proposed  map[string]bool   `json:"proposed,omitempty"`
	Mentioned map[string]bool   `json:"mentioned,omitempty"`
	Open      *openWork         `json:"open,omitempty"`
}

// An openWork is what is under way in a session that another program goes on with.
type openWork struct {
	Attached bool           `json:"attached,omitempty"` // a main stream was, so calls wait a moment for it
	Turns    []passedTurn   `json:"turns"`              // oldest first
	Calls    []passedCall   `json:"calls"`              // in the order in which they were accepted
	Deferred []passedChange `json:"deferred,omitempty"`
}

// A passedTurn is an open turn.
type passedTurn struct {
	Number    uint64                   `json:"number"`
	ID        string                   `json:"id,omitempty"`
	Options   []byte                   `json:"options"`
	Begun     time.Time                `json:"begun"`
	Calls     int                      `json:"calls"`
	Batches   int                      `json:"batches"`
	Numbering scheduler.Numbering      `json:"numbering"`
	Takes     bool                     `json:"takes,omitempty"` // the main stream's tool uses
	Ended     bool                     `json:"ended,omitempty"`
	Outcomes  map[pipeline.Outcome]int `json:"outcomes"`
	Work      time.Duration            `json:"work"`
	HookCalls map[int]hook.Call        `json:"hook_calls,omitempty"`
	Stopped   *pipeline.Stop           `json:"stopped,omitempty"` // why each further call is skipped
	Next      int                      `json:"next,omitempty"`    // index of the next result, if they are ordered
	Waiting   map[int]journal.Entry    `json:"waiting,omitempty"` // results behind it
}

// A passedCall is a call that has not started.
type passedCall struct {
	pipeline.Passed
	Trace   string       `json:"trace,omitempty"`
	Listing *dialect.Use `json:"listing,omitempty"`
	Asked   *passedAsked `json:"asked,omitempty"` // nil: nothing is
}

// A passedAsked is a call's question: open, or answered with yes.
type passedAsked struct {
	ID, Tool, Title        string
	Digest, Shown, Touched string
	Text                   string
	Level                  permission.Level
	Suggestions            []string
	Yes                    bool
	Input                  string // of a yes
}

// A passedChange is what a concurrent call leaves behind, until its batch has ended.
type passedChange struct {
	Use     pipeline.Use
	Changes tools.Changes
	Given   []string
}

// passed returns the session for another program.
func (r *resting) passed() (passedSession, error) {
	p := passedSession{
		Name: r.info.Name, Created: r.info.Created, Meta: r.meta, Used: r.used, Bytes: r.bytes, Owner: r.owner, Peer: r.peer, Detached: r.detached,
		CanAsk: r.canAsk, Proposed: r.proposed, Mentioned: r.mentioned, Open: r.open,
	}
	var err, wrong error
	if p.Listed, err = proto.Marshal(r.listed); err == nil && r.client != nil {
		p.Client, err = proto.Marshal(r.client)
	}
	if r.env != nil {
		var text []byte
		if text, wrong = r.env.Read(); wrong == nil {
			wrong = json.Unmarshal(text, &p.Env)
		}
	}
	return p, errors.Join(err, wrong)
}

// restingFrom returns a session at rest that the program before has passed on; dir is for its environment.
func restingFrom(p passedSession, dir string) (*resting, error) {
	r := &resting{
		info: journal.Info{Name: p.Name, Created: p.Created}, meta: p.Meta, listed: &tooldv1.Session{}, used: p.Used, bytes: p.Bytes, owner: p.Owner, peer: p.Peer,
		detached: p.Detached, canAsk: p.CanAsk, proposed: map[string]bool{}, mentioned: map[string]bool{}, open: p.Open,
	}
	maps.Copy(r.proposed, p.Proposed)
	maps.Copy(r.mentioned, p.Mentioned)
	err := proto.Unmarshal(p.Listed, r.listed)
	if err == nil && p.Client != nil {
		r.client = &tooldv1.ClientInfo{}
		err = proto.Unmarshal(p.Client, r.client)
	}
	if err == nil {
		r.env, err = seal(dir, p.Env)
	}
	return r, err
}

func passedCallOf(its *state, c *pipeline.Call) passedCall {
	p := passedCall{Passed: pipeline.PassOn(c), Trace: its.ledger.calls[c.Key].watched.trace}
	if v, is := c.Tool.(*viewer); is {
		p.Listing = &dialect.Use{Name: v.listing.Spec().Name, Input: string(v.input)}
	}
	if a := its.questions.asked[c.Key]; a != nil {
		q := a.question
		p.Asked = &passedAsked{
			ID: q.ID, Tool: q.Tool, Title: q.Title, Digest: q.Digest, Shown: q.Shown, Touched: q.Touched, Text: q.Verdict.Text, Level: q.Verdict.Level,
			Suggestions: q.Suggestions, Yes: a.done, Input: a.input,
		}
	}
	return p
}
