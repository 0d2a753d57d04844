//go:build !no_lsp

// One running language server: its process, the connection to it, and how both end.

package language

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/ellipsis"
)

// errSilent is why a server is ended that has sent nothing at all while a request waited.
var errSilent = errors.New("it does not answer")

// A goneError means that the server ended before it had answered.
type goneError struct{ words string }

func (e *goneError) Error() string { return e.words }

// A server is one process. It is safe for concurrent use.
type server struct {
	spec    Server
	root    string
	limits  limits
	process *sandbox.Process
	output  *io.PipeReader // its standard output
	stream  *stream
	conn    *jsonrpc2.Conn
	stderr  *sandbox.Ending
	units   unit
	can     map[string]json.RawMessage // its capabilities
	ids     atomic.Uint64
	proven  atomic.Bool // it has answered a request, so it is not a server that cannot start
	life    context.Context
	end     context.CancelCauseFunc // ends the server, with why as the cause; gone is closed when that is done
	gone    chan struct{}           // closed when nothing of it is left; why is set then
	why     string

	documents documents
	news      news
}

// attend waits for the end of the server. It runs on the goroutine that has started the server.
func (s *server) attend(printed *io.PipeWriter) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.stream.drain()
	}()
	select {
	case <-s.process.Done():
		_ = printed.Close() // everything was read: the connection gets the rest, and then the end
		<-s.stream.ended
	case <-s.conn.DisconnectNotify():
	case <-drained: // it has closed its standard input
	}
	_ = s.conn.Close()
	_ = s.output.Close()
	s.process.Stop()
	exit := s.process.Wait()
	<-s.stream.ended
	<-drained
	s.why = s.obituary(exit)
	s.end(nil)
	close(s.gone)
}

// obituary returns how the server has ended, as a phrase. The daemon's own reason, or an error in
// what the server sent, comes first.
func (s *server) obituary(exit sandbox.Exit) string {
	cause := context.Cause(s.life)
	if cause == nil && errors.Is(s.stream.failure, errFraming) {
		cause = s.stream.failure
	}
	var words string
	switch {
	case cause != nil:
		words = fmt.Sprintf("was stopped because %v", cause)
	case exit.Stopped:
		words = "closed its connection, and was stopped"
	case exit.Signal != "":
		words = "was ended by " + exit.Signal
	default:
		words = fmt.Sprintf("ended with exit code %d", exit.Code)
	}
	if last := s.lastWords(); last != "" {
		words += fmt.Sprintf("; its last output: %q", last)
	}
	return words
}

// dying reports whether the server has ended, or is about to.
func (s *server) dying() bool {
	select {
	case <-s.conn.DisconnectNotify(): // also if it is gone
		return true
	default:
		return s.life.Err() != nil
	}
}

// loss waits until the server is gone and returns its goneError.
func (s *server) loss(ctx context.Context) error {
	select {
	case <-s.gone:
		return &goneError{fmt.Sprintf("%s %s", s.spec.name(), s.why)}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Error codes by which a server asks for a retry, and how often the request is repeated.
const (
	contentModified = -32801
	serverCancelled = -32802
	askedAgain      = 5
)

// call sends a request and waits for its answer.
func (s *server) call(ctx context.Context, method string, params, result any) error {
	for range askedAgain {
		err := s.once(ctx, s.limits.answer, method, params, result)
		refusal, refused := errors.AsType[*jsonrpc2.Error](err)
		if err == nil || refused {
			s.proven.Store(true)
		}
		if !refused {
			return err
		}
		if refusal.Code != contentModified && refusal.Code != serverCancelled {
			return fault.Failedf("language_server_refused", "%s answered: %s", s.spec.name(), printable(refusal.Message, 1000))
		}
	}
	return failedf("%s has postponed the request %d times. Send the call again.", s.spec.name(), askedAgain)
}

// once sends one request and waits for the answer. Its error is the server's refusal, its end,
// ctx's cause, or a fault.
func (s *server) once(ctx context.Context, limit time.Duration, method string, params, result any) error {
	heard := s.stream.heard.Load()
	id := jsonrpc2.ID{Num: s.ids.Add(1)}
	pending, err := s.conn.DispatchCall(ctx, method, params, jsonrpc2.PickID(id))
	if err != nil {
		s.unsent(err)
		return s.loss(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	var answer json.RawMessage
	switch err := pending.Wait(limited, &answer); {
	case errors.Is(err, jsonrpc2.ErrClosed):
		return s.loss(ctx)
	case limited.Err() != nil && err != nil:
		_ = s.conn.Notify(ctx, "$/cancelRequest", map[string]any{"id": id})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.stream.heard.Load() == heard {
			s.end(errSilent)
		}
		return failedf("%s has not answered within %s. Send the call again, or do without.", s.spec.name(), limit)
	case err != nil:
		return err
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return s.misfit(err)
	}
	return nil
}

// misfit returns the fault for an answer that JSON's err is about.
func (s *server) misfit(err error) error {
	why := err.Error()
	if other, is := errors.AsType[*json.UnmarshalTypeError](err); is { // whose own text has names of Go types
		why = fmt.Sprintf("it has a %s where something else belongs", other.Value)
	}
	return failedf("The answer of %s does not conform to the protocol: %s.", s.spec.name(), why)
}

// unsent ends a server that reads nothing, which is one reason why a message could not be sent.
func (s *server) unsent(err error) {
	if errors.Is(err, errClogged) {
		s.end(errClogged)
	}
}

// notify sends a notification. An error shows with the next request.
func (s *server) notify(method string, params any) {
	s.unsent(s.conn.Notify(context.Background(), method, params))
}

// lastWords returns the end of the server's standard error, for one line of a message.
func (s *server) lastWords() string {
	const most = 500
	text := strings.TrimSpace(strings.ToValidUTF8(s.stderr.String(), "\uFFFD"))
	return strings.ToValidUTF8(text[max(0, len(text)-most):], "")
}

// printable cuts external text to a number of bytes, at the border of a character.
func printable(text string, most int) string {
	return ellipsis.Bytes(strings.ToValidUTF8(text, "\uFFFD"), most)
}
