package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Over HTTP the SDK serves calls too: it alone knows which of a client's requests an answer belongs to. Each of MCP's sessions
// has a bridge of its own, and so a session with the daemon.

const (
	// httpHeaders is how long a client may take for the head of a request, httpIdle how long a session may be silent before it
	// ends, httpLastWords how long requests may still be answered when a signal comes. Ours.
	httpHeaders   = 10 * time.Second
	httpIdle      = 30 * time.Minute
	httpLastWords = 2 * time.Second
	// sessionHeader names the session of a request; one that begins a session has none.
	sessionHeader = "Mcp-Session-Id"
)

// An Admit returns whether a token is one of those that may use the server. The error is why none can be told.
type Admit func(secret string) (bool, error)

// ServeHTTP serves every client that shows a token, over MCP's streamable HTTP, until a signal comes. It closes the listener.
// Sessions without a name end with their client's, or after half an hour without a request.
func ServeHTTP(ctx context.Context, o Options, listener net.Listener, admit Admit) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var sessions sync.WaitGroup
	versionsOnly := newServer(newBridge(o, nil))
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if r.Header.Get(sessionHeader) != "" {
			return versionsOnly // what the SDK asks of each request; the session has its own
		}
		own := o
		own.Attach, own.AskRoots = proto.CloneOf(o.Attach), false
		b := newBridge(own, undecoded(o.Daemon.Redial(nil)))
		b.attended = make(chan struct{})
		server := newServer(b)
		var once sync.Once
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(request context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if ctx.Err() != nil {
					return nil, errBridgeEnded
				}
				once.Do(func() {
					b.client, _ = r.GetSession().(*mcp.ServerSession) // a server's requests are of no other kind
					sessions.Go(func() { b.attend(ctx) })
				})
				<-b.attended
				return next(request, method, r)
			}
		})
		return server
	}, &mcp.StreamableHTTPOptions{SessionTimeout: httpIdle})
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	server := &http.Server{
		Handler: http.NewCrossOriginProtection().Handler(admitted(mux, admit)), ReadHeaderTimeout: httpHeaders,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), httpLastWords)
	defer cancel()
	var ended sync.WaitGroup
	// At once no client comes any more. It waits for what sessions still say: a client that does not take that in time is no error.
	ended.Go(func() { _ = server.Shutdown(last) })
	sessions.Wait()
	ended.Wait()
	return server.Close()
}

// attend has the bridge work for as long as the client's session lasts.
func (b *bridge) attend(ctx context.Context) {
	working, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	end := b.start(working)
	close(b.attended)
	gone := make(chan struct{})
	go func() { _ = b.client.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-ctx.Done():
		_ = b.client.Close()
	}
	end()
	b.depart()
}

// depart leaves the session: one without a name ends.
func (b *bridge) depart() {
	if b.Attach.GetSessionId() == "" {
		b.leave()
	} else {
		b.giveUp()
		b.close()
	}
}

// admitted refuses requests without a token that is admitted.
func admitted(next http.Handler, admit Admit) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		known, err := false, error(nil)
		if is {
			known, err = admit(secret)
		}
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !known:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token of the server's token file is needed: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// serveCall runs a call that the SDK passes on. On a pipe that is one that is not well-formed: the wire has taken the others.
func (b *bridge) serveCall(ctx context.Context, request mcp.Request) (mcp.Result, error) {
	params, is := request.GetParams().(*mcp.CallToolParamsRaw)
	if !is || b.attended == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the parameters are not those of a call"}
	}
	ended, told := make(chan *tooldv1.ToolResult, 1), make(chan struct{}, 1)
	c := &call{
		name: params.Name, input: cmp.Or(string(params.Arguments), "{}"), ctx: ctx,
		answer: func(result *tooldv1.ToolResult) { ended <- result },
		progress: func() {
			select {
			case told <- struct{}{}:
			default:
			}
		},
	}
	c.trace, _ = params.GetMeta()["traceparent"].(string)
	if token := params.GetProgressToken(); token != nil {
		c.meter.token, _ = json.Marshal(token) // it came as JSON
	}
	b.called(c)
	for {
		select {
		case result := <-ended:
			answer := &mcp.CallToolResult{}
			return answer, json.Unmarshal(appendResult(nil, result), answer)
		case <-told:
			if p := c.newest.Swap(nil); p != nil {
				_ = b.client.NotifyProgress(ctx, c.meter.step(p)) // the client is gone, which ends the call
			}
		case <-b.ended:
			return nil, errBridgeEnded
		case <-ctx.Done():
			b.cancelled(c)
			return nil, context.Cause(ctx)
		}
	}
}
