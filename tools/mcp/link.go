//go:build !no_mcp

// One connection to a server, from its start to its end, and the calls on it.

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	// version is the protocol version that is requested first: the newest with a handshake. Many
	// servers do not answer at all to the one without.
	version = "2025-11-25"
	newest  = ""
	// maxTools and maxPages limit the list of one server. The numbers are our own, several times
	// what the largest servers list.
	maxTools = 512
	maxPages = 64
)

// A link is one connection.
type link struct {
	of      *server
	session *sdk.ClientSession
	process *stdio             // nil: the server is on the network
	origin  *origin            // nil: the server is a process
	cancel  context.CancelFunc // ends network activity
	gone    chan struct{}      // closed: the connection has ended
	relist  chan struct{}      // of size 1: the tools have changed
	broken  chan struct{}      // of size 1: a call has found that the server is gone
	waiter  sync.WaitGroup
	err     error        // why it has ended; set before gone is closed
	slow    atomic.Int64 // of a process: when it was last heard from before it failed to answer in time

	life  context.Context // ends with errLeft when the connection accepts no more calls
	leave context.CancelCauseFunc

	mu    sync.Mutex
	calls []*running // oldest first
	last  int        // number of the last call
}

// connect makes a connection and does the handshake. The connection lives as long as ctx.
func (s *server) connect(ctx context.Context) (*link, error) {
	l, err := s.handshake(ctx, version)
	refused, is := errors.AsType[*jsonrpc.Error](err)
	if !is || own(refused.Code) || ctx.Err() != nil {
		return l, err
	}
	// The server has no handshake, or not this version: any common version will do.
	if again, other := s.handshake(ctx, newest); other == nil {
		return again, nil
	}
	return nil, err
}

func (s *server) handshake(ctx context.Context, protocol string) (*link, error) {
	host := s.host()
	l := &link{of: s, gone: make(chan struct{}), relist: make(chan struct{}, 1), broken: make(chan struct{}, 1)}
	ctx, l.cancel = context.WithCancel(ctx)
	l.life, l.leave = context.WithCancelCause(context.Background())
	transport, err := l.reach(host)
	if err != nil {
		l.cancel()
		return nil, err
	}
	// The SDK itself waits for a server that neither reads nor ends, and ignores ctx.
	patient := context.AfterFunc(ctx, l.cut)
	l.session, err = l.client(host).Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	patient()
	if err != nil {
		l.release()
		if l.process != nil && errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w; %s", err, l.why())
		}
		return nil, fmt.Errorf("%w%s", err, l.complaint())
	}
	l.waiter.Go(func() {
		l.err = l.session.Wait()
		close(l.gone)
	})
	return l, nil
}

// reach starts the process, or prepares the network transport.
func (l *link) reach(host Host) (transport sdk.Transport, err error) {
	e := l.of.entry
	switch kind := e.transport(); kind {
	case Stdio:
		l.process, err = startProcess(e, host, l.of.heard, l.changed)
		return l.process, err
	case HTTP, SSE:
		if l.origin, err = newOrigin(e); err != nil {
			return nil, err
		}
		return l.origin.transport(e), nil
	default:
		return nil, fmt.Errorf("its transport %q is not one of stdio, http and sse", kind)
	}
}

// client makes the SDK's client for this connection: with the roots, forms for questions, and no
// other server features.
func (l *link) client(host Host) *sdk.Client {
	implementation := &sdk.Implementation{Name: "toold", Version: host.Version}
	client := sdk.NewClient(implementation, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		ElicitationHandler:     l.elicit,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { l.changed() },
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			l.of.receive(string(r.Params.Level), logged(r.Params))
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { l.progress(r.Params) },
	})
	client.AddReceivingMiddleware(sensible)
	for _, root := range host.Roots {
		client.AddRoots(&sdk.Root{URI: (&url.URL{Scheme: "file", Path: root}).String()})
	}
	return client
}

// logged formats a log message as a line of text.
func logged(p *sdk.LoggingMessageParams) string {
	text, ok := p.Data.(string)
	if !ok {
		text = fmt.Sprint(p.Data)
	}
	if p.Logger != "" {
		text = p.Logger + ": " + text
	}
	return ellipsis.Runes(line(text), 500)
}

// changed records that the tools have changed. It does not block.
func (l *link) changed() { signal(l.relist) }

// list returns the server's tools, and a sentence for each part that was not read.
func (l *link) list(ctx context.Context) (offered []*sdk.Tool, leftOut []string, err error) {
	can := l.session.InitializeResult()
	if can == nil || can.Capabilities == nil || can.Capabilities.Tools == nil {
		return nil, nil, nil
	}
	var seen []string
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := l.session.ListTools(ctx, params)
		if err != nil {
			return nil, nil, err
		}
		if offered = append(offered, page.Tools...); len(offered) > maxTools {
			return offered[:maxTools], []string{fmt.Sprintf("It lists more than %d tools, and the rest is left out.", maxTools)}, nil
		}
		if page.NextCursor == "" {
			return offered, nil, nil
		}
		if slices.Contains(seen, page.NextCursor) {
			return offered, []string{"Its list of tools leads back to a page that was read, and the rest is left out."}, nil
		}
		seen = append(seen, page.NextCursor)
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return offered, []string{fmt.Sprintf("Its list of tools has more than %d pages, and the rest is left out.", maxPages)}, nil
}

// attention is how long a server may take to accept a log level.
const attention = 2 * time.Second

// quieten sets the server's log level to what is passed on. Its answer is ignored.
func (l *link) quieten(ctx context.Context) {
	can := l.session.InitializeResult()
	if can == nil || can.Capabilities == nil || can.Capabilities.Logging == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, attention)
	defer cancel()
	_ = l.session.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: "warning"})
}

// begin registers a call. The caller ends it.
func (l *link) begin(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	r.token = "call-" + strconv.Itoa(l.last)
	l.calls = append(l.calls, r)
}

func (l *link) end(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = slices.DeleteFunc(l.calls, func(other *running) bool { return other == r })
}

// progress reports a step of the call that it belongs to.
func (l *link) progress(p *sdk.ProgressNotificationParams) {
	r := l.oldest(func(r *running) bool { return r.token == p.ProgressToken })
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.env.Report(tools.Step{Message: ellipsis.Runes(line(p.Message), 500), Done: whole(p.Progress), Total: whole(p.Total)})
	}
}

// oldest returns the oldest call that meant reports true for; nil: there is none.
func (l *link) oldest(meant func(*running) bool) *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.calls, meant); i >= 0 {
		return l.calls[i]
	}
	return nil
}

// elicit asks a client a server's question, for the oldest call that can ask. The protocol does not
// identify the call that a question belongs to.
func (l *link) elicit(ctx context.Context, request *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	r := l.oldest(func(r *running) bool { return r.env.Ask != nil })
	if r == nil || request.Params.Mode == "url" {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	return r.ask(ctx, request.Params)
}

// ended reports whether the connection has ended.
func (l *link) ended() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// drop reports that the server is gone, if the connection itself does not notice.
func (l *link) drop() { signal(l.broken) }

// errLeft is the cause of the calls' contexts when their connection is abandoned.
var errLeft = errors.New("the connection was abandoned")

// release ends the connection, the calls on it, and the process; nothing of it is left when it
// returns. The goroutine that made the link calls it.
func (l *link) release() {
	if l.process != nil {
		l.cut()
	}
	l.leave(errLeft)                       // the SDK waits for the calls
	late := time.AfterFunc(parting, l.cut) // notifies a server on the network that the session is over
	if l.session != nil {
		_ = l.session.Close()
	}
	late.Stop()
	l.cancel()
	l.waiter.Wait()
	l.cut()
}

// cut closes the transport, and ends everything that waits for it. It is safe for concurrent use,
// and may be called more than once.
func (l *link) cut() {
	switch {
	case l.process != nil:
		_ = l.process.Close()
	case l.origin != nil:
		l.origin.cut()
	}
}

// why returns why the connection has ended, or why it was abandoned.
func (l *link) why() string {
	if l.process != nil {
		return l.process.why()
	}
	if l.ended() && l.err != nil {
		return l.of.entry.brief(l.err)
	}
	return "it closed the connection"
}

// complaint returns what a process has printed to its standard error, for the end of an error
// message.
func (l *link) complaint() string {
	if l.process == nil || l.process.complaint() == "" {
		return ""
	}
	return "; its last output on standard error was: " + l.process.complaint()
}
