//go:build !no_mcp

// One call while a server carries it out. It does not know how the server was reached.

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/ellipsis"
	"github.com/toold/toold/tools/fault"
)

// A running call learns of its progress and answers questions for its server. Its Env is not used once it has ended.
type running struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	env    *tools.Env
	token  string // what the server's news of it are marked with

	mu    sync.Mutex // held while the Env reports
	over  bool
	asked sync.WaitGroup // questions that somebody is being asked
}

// call carries one call to the server.
func (s *server) call(ctx context.Context, env *tools.Env, tool string, input json.RawMessage) (tools.Result, error) {
	l, err := s.reached(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	r := &running{env: env}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	err = errLeft
	var given *sdk.CallToolResult
	if l.begin(r) {
		given, err = l.session.CallTool(r.ctx, &sdk.CallToolParams{
			Meta: sdk.Meta{"progressToken": r.token}, Name: tool, Arguments: input,
		})
	}
	cause := context.Cause(r.ctx)
	l.end(r)
	r.cancel(nil) // whoever is still being asked need not answer
	r.finish()
	switch {
	case err == nil:
		return resultOf(ctx, s.entry.Name, given)
	case errors.Is(cause, errLeft):
		err = cause
	case cause != nil:
		return tools.Result{}, cause
	}
	return tools.Result{}, s.fault(l, err)
}

const (
	// silence is how long a process may not have been heard of before it is asked, in front of a call, whether it is there. Ours:
	// far less than a person needs between two calls, and more than a server needs that answers one after the other.
	silence = 100 * time.Millisecond
	// pingLimit is how long it may take to answer that before the call is sent all the same.
	pingLimit = time.Second
)

// reached returns the present connection. To a process that has just ended calls could be sent still, and what became of them
// would not be known: one that has been silent is asked before.
func (s *server) reached(ctx context.Context) (*link, error) {
	l, err := s.connected(ctx, nil)
	if err != nil || l.process == nil || l.answers(ctx) {
		return l, err
	}
	l.drop()
	return s.connected(ctx, l)
}

// answers reports that a process is there, as far as can be told: it was heard of, or answers, though perhaps not what it was
// asked, or is too slow for that. One that was too slow is not asked again until it has been heard of.
func (l *link) answers(ctx context.Context) bool {
	heard := l.process.heard.Load()
	if time.Since(l.process.began)-time.Duration(heard) < silence || l.slow.Load() == heard {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	err := l.session.Ping(ctx, nil)
	if err == nil {
		return true
	}
	if ctx.Err() != nil && !l.ended() {
		l.slow.Store(heard)
		return true
	}
	return !l.lost(err)
}

// fault puts into words why a call has come to nothing.
func (s *server) fault(l *link, err error) error {
	name := s.entry.Name
	var refused *jsonrpc.Error
	var unreached *url.Error
	switch said := errors.As(err, &refused); {
	case said && refused.Code == codeTooLarge:
		return responseTooLarge(name)
	case l.origin != nil && l.origin.burst.Swap(false):
		_ = l.lost(err) // the next call is to see it, if it is
		return responseTooLarge(name)
	case said && refused.Code == codeRejected && !errors.As(err, &unreached):
		return fault.Failedf("server_unavailable", "The MCP server %s did not take the call: %s. It was not carried out; try again later.", name, ellipsis.Runes(line(s.entry.words(err)), 300))
	case said && !own(refused.Code):
		return fault.Failedf("tool_failed", "The MCP server %s did not carry the call out: %s", name, ellipsis.Runes(clean(refused.Message), maxDescription))
	}
	if !l.lost(err) {
		return fault.Failedf("bad_response", "The MCP server %s answered with what is no result: %s. The call may have been carried out.", name, ellipsis.Runes(line(s.entry.words(err)), 300))
	}
	why := ellipsis.Runes(line(s.entry.words(err)), 300)
	if l.ended() {
		why = l.why()
	}
	l.drop()
	return fault.Failedf("server_gone", "The MCP server %s was lost while it carried the call out: %s. Whether the call had effects is not known, and it is not sent again by itself. The server is started again; look at the present state, then send the call again if it is still wanted.", name, why)
}

// lost reports that an error of a call means that the connection is, and not that its result makes no sense. A connection that
// has ended says so a moment after its calls do; one to the network says of neither what it is.
func (l *link) lost(err error) bool {
	var unreached *url.Error
	if errors.Is(err, errLeft) || errors.As(err, &unreached) {
		return true
	}
	ended := false
	for _, end := range []error{io.EOF, sdk.ErrConnectionClosed, os.ErrClosed, syscall.EPIPE} {
		ended = ended || errors.Is(err, end)
	}
	if l.process != nil && !ended {
		return false
	}
	const moment = 2 * time.Second
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-l.gone:
		return true
	case <-timer.C:
		return ended
	}
}

// codeRejected is the SDK's code for a message that was not sent.
const codeRejected = -32005

// own reports codes that the SDK gives errors of its own: a server that is closing, a client that is, a message that was not
// sent.
func own(code int64) bool { return code <= -32003 && code >= codeRejected }

// finish waits until nobody uses the Env any more.
func (r *running) finish() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.asked.Wait()
}

// report publishes a step.
func (r *running) report(p *sdk.ProgressNotificationParams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.env.Report(tools.Step{Message: ellipsis.Runes(line(p.Message), 500), Done: whole(p.Progress), Total: whole(p.Total)})
	}
}

// whole makes a number of what is a fraction for some servers.
func whole(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(min(x, math.MaxInt32))
}

// ask puts a question to whoever can answer, for as long as the call runs and the server wants to know.
func (r *running) ask(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return &sdk.ElicitResult{Action: "cancel"}, nil
	}
	r.asked.Add(1)
	r.mu.Unlock()
	defer r.asked.Done()
	asking, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	form := tools.Form{Message: ellipsis.Runes(clean(p.Message), maxDescription)}
	if p.RequestedSchema != nil {
		form.Schema, _ = json.Marshal(p.RequestedSchema)
	}
	reply, err := r.env.Ask(asking, form)
	switch {
	case err != nil:
		return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // nobody has answered, which is an answer to a server
	case !reply.Yes:
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	answer := &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}
	if len(reply.Content) > 0 {
		if err := json.Unmarshal(reply.Content, &answer.Content); err != nil {
			return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // what was given is no form
		}
	}
	return answer, nil
}
