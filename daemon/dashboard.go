// The dashboard's listener: opened with the daemon or when a client asks for it, and who may ask.

package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/web"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A dashboard is what browsers are served by.
type dashboard struct {
	d *Daemon

	mu      sync.Mutex // guards the rest
	server  *web.Server
	url     string // "http://HOST:PORT/"; empty: it does not listen
	ended   bool   // it listens no more
	serving sync.WaitGroup
}

// open listens, unless it does, and returns where.
func (b *dashboard) open() (server *web.Server, url string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil, "", b.d.life.endError()
	}
	if b.url != "" {
		return b.server, b.url, nil
	}
	listener, err := access.ListenBrowser(cmp.Or(b.d.HTTP, "127.0.0.1:0"))
	if err != nil {
		return nil, "", err
	}
	config := web.Config{
		Services: b.d.services(),
		Refused:  []string{"ToolService/RunTool", "DaemonService/OpenDashboard", "DaemonService/Shutdown", "DaemonService/Upgrade"},
		Admit: func(ctx context.Context, grant web.Grant) context.Context {
			return context.WithValue(ctx, admissionKey{}, admission{grant.Who, b.d.admission.arrivals.Add(1), grant.Opener})
		},
		Codec: newCodec(), MessageBytes: b.d.limits.MessageBytes, Rescue: b.d.rescued, Log: b.d.admission.refusals,
	}
	if b.d.Metrics != nil {
		config.Metrics = b.d.Metrics.Handler()
		if config.MetricsToken, err = access.OpenTokens(b.d.inState("metrics-tokens"), "Who may read the metrics of toold"); err != nil {
			return nil, "", errors.Join(err, listener.Close())
		}
	}
	b.server = web.New(config)
	b.serve(b.server, listener)
	b.url = "http://" + listener.Addr().String() + "/"
	b.d.Log.Info("the dashboard listens", zap.String("url", b.url))
	return b.server, b.url, nil
}

// serve serves until the server is closed. When the listener fails before that, the next open listens again.
func (b *dashboard) serve(server *web.Server, listener net.Listener) {
	b.serving.Go(func() {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			return
		}
		b.d.Log.Error("the dashboard listens no more", zap.Error(err))
		b.mu.Lock()
		b.url = ""
		b.mu.Unlock()
		_ = server.Close(streamGrace)
	})
}

// close ends the listener and its connections.
func (b *dashboard) close() {
	b.mu.Lock()
	b.ended = true
	server := b.server
	b.mu.Unlock()
	if server != nil {
		_ = server.Close(streamGrace)
	}
	b.serving.Wait()
}

// OpenDashboard makes the dashboard reachable, and returns where.
func (x *daemonServer) OpenDashboard(ctx context.Context, _ *tooldv1.OpenDashboardRequest) (*tooldv1.OpenDashboardResponse, error) {
	who := principalOf(ctx)
	if who.Remote() {
		return nil, apierror.New(codes.PermissionDenied, "not_local", "The dashboard is opened over the Unix socket, not over TCP.")
	}
	server, url, err := x.daemon.endpoints.dashboard.open()
	if err != nil {
		return nil, apierror.New(codes.Unavailable, "no_dashboard", "The dashboard cannot be opened: %v.", err)
	}
	return &tooldv1.OpenDashboardResponse{Url: url, Code: server.Code(web.Grant{Who: who, Opener: access.AncestryOf(access.PIDOf(ctx))})}, nil
}
