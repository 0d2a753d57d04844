//go:build !no_mcp

// One call, while a server carries it out.

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
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/ellipsis"
)

// A running call receives its progress and answers questions of its server. Its Env is not used
// after it has ended.
type running struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	env    *tools.Env
	token  string // marks the server's notifications about the call

	mu    sync.Mutex // held while the Env reports
	over  bool
	asked sync.WaitGroup // questions that are being asked
}

// call sends one call to the server and waits for its result.
func (s *server) call(ctx context.Context, env *tools.Env, tool string, input json.RawMessage) (tools.Result, error) {
	defer s.use()()
	l, err := s.reached(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	r := &running{env: env}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	defer context.AfterFunc(l.life, func() { r.cancel(errLeft) })()
	if l.life.Err() != nil { // nothing is sent any more
		r.cancel(errLeft)
	}
	l.begin(r)
	meta := sdk.Meta{"progressToken": r.token}
	if env.Trace != "" {
		meta["traceparent"] = env.Trace
	}
	given, err := l.session.CallTool(r.ctx, &sdk.CallToolParams{Meta: meta, Name: tool, Arguments: input})
	cause := context.Cause(r.ctx)
	l.end(r)
	r.cancel(nil) // open questions need no answer any more
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.asked.Wait() // nothing uses the Env after that
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
	// silence is how long a process may send nothing before it is pinged, ahead of a call. The
	// number is our own: far less than a user needs between two calls, and more than a server that
	// answers calls one after the other.
	silence = 100 * time.Millisecond
	// pingLimit is how long the server may take to answer the ping before the call is sent all the
	// same.
	pingLimit = time.Second
)

// reached returns the present connection. A call that is sent to a process that has just ended has
// an unknown outcome, so a process that has been silent is pinged first.
func (s *server) reached(ctx context.Context) (*link, error) {
	l, err := s.connected(ctx, nil)
	if err != nil || l.process == nil || l.answers(ctx) {
		return l, err
	}
	l.drop()
	return s.connected(ctx, l)
}

// answers reports whether a process is alive, as far as that can be found out: it was heard from,
// or answers, even with an error, or is too slow. One that was too slow is not pinged again until
// it is heard from.
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

// fault returns the fault of a call that has failed.
func (s *server) fault(l *link, err error) error {
	name := s.entry.Name
	var refused *jsonrpc.Error
	var unreached *url.Error
	switch said := errors.As(err, &refused); {
	case said && refused.Code == codeTooLarge:
		return responseTooLarge(name)
	case l.origin != nil && l.origin.burst.Swap(false):
		_ = l.lost(err) // the next call will notice, if it is lost
		return responseTooLarge(name)
	case said && refused.Code == codeRejected && !errors.As(err, &unreached):
		return fault.Failedf("server_unavailable", "The MCP server %s did not accept the call: %s. It was not carried out; try again later.", name, s.entry.brief(err))
	case said && !own(refused.Code):
		return fault.Failedf("tool_failed", "The MCP server %s did not carry the call out: %s", name, ellipsis.Runes(clean(refused.Message), maxDescription))
	}
	if !l.lost(err) {
		return fault.Failedf("bad_response", "The MCP server %s answered with something that is not a result: %s. The call may have been carried out.", name, s.entry.brief(err))
	}
	why := s.entry.brief(err)
	if l.ended() {
		why = l.why()
	}
	l.drop()
	return fault.Failedf("server_gone", "The MCP server %s was lost during the call: %s. It is unknown whether the call had effects, and it is not repeated automatically. The server is started again. Check the present state, then send the call again if it is still needed.", name, why)
}

// lost reports whether an error of a call means that the connection is lost, rather than that its
// result makes no sense. A connection that has ended reports so shortly after its calls do; for one
// over the network the error does not show it.
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

// own reports whether the SDK itself uses the code: for a server or a client that is closing, or a
// message that was not sent.
func own(code int64) bool { return code <= -32003 && code >= codeRejected }

// whole converts progress to an integer; some servers send fractions.
func whole(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(min(x, math.MaxInt32))
}

// ask asks a client the server's question, until the call ends or the server withdraws the
// question.
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
		return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // no answer is an answer to a server
	case !reply.Yes:
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	answer := &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}
	if len(reply.Content) > 0 {
		if err := json.Unmarshal(reply.Content, &answer.Content); err != nil {
			return &sdk.ElicitResult{Action: "cancel"}, nil //nolint:nilerr // the content does not match the form
		}
	}
	return answer, nil
}
