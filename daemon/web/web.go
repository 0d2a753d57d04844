// Package web serves the dashboard to a browser on this machine: static files, and the methods of the contract at
// /rpc/SERVICE/METHOD with ProtoJSON. It does not know what a method does. What a page of another site, another user or a process of a
// call could try is refused in guard.go.
package web

import (
	"context"
	"embed"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"github.com/toold/toold/daemon/access"
)

// Bounds of a connection. Ours.
const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 16 << 10 // bytes
)

//go:embed static
var embedded embed.FS

// A Service is a service of the contract and what serves it.
type Service struct {
	Desc *grpc.ServiceDesc
	Impl any
}

// A Config is what a Server needs.
type Config struct {
	Services []Service
	// Refused are methods that a page cannot call, such as "DaemonService/Shutdown". A method that takes a stream is refused anyway.
	Refused []string
	// Admit returns the context of a request with a token for the grant.
	Admit func(ctx context.Context, grant Grant) context.Context
	// Codec is how messages that are not proto.Message are marshalled.
	Codec encoding.CodecV2
	// MessageBytes is how long a request may be.
	MessageBytes int
	// Rescue logs what a method has panicked with, and returns the error for its caller.
	Rescue func(broken any) error
	// Metrics serves GET /metrics to those whose token MetricsToken admits, and who can do nothing else; nil: there are none.
	Metrics      http.Handler
	MetricsToken func(secret string) (bool, error)
	// Log receives refused requests; the caller bounds how many lines it takes.
	Log *zap.Logger
}

// A Server serves browsers. Its methods are safe for concurrent use.
type Server struct {
	Config
	tokens  tokens
	static  http.Handler
	http    *http.Server
	calls   sync.WaitGroup
	closing chan struct{} // closed by Close
	once    sync.Once
}

// New returns a server that serves nothing yet.
func New(config Config) *Server {
	files, err := fs.Sub(embedded, "static")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	s := &Server{Config: config, static: http.FileServerFS(files), closing: make(chan struct{})}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /token", s.token)
	routes.HandleFunc("POST /rpc/{service}/{method}", s.call)
	routes.HandleFunc("GET /", s.file)
	if config.Metrics != nil {
		routes.HandleFunc("GET /metrics", s.metrics)
	}
	s.http = &http.Server{
		Handler: s.guarded(routes), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ErrorLog: zap.NewStdLog(config.Log),
	}
	return s
}

// Serve serves on a listener of access.ListenBrowser until Close; then it returns http.ErrServerClosed.
func (s *Server) Serve(listener net.Listener) error { return s.http.Serve(listener) }

// Close takes no more requests, and ends the connections: those on which a method is under way when it has returned, and after the
// patience at the latest. It returns when no method is under way.
func (s *Server) Close(patience time.Duration) error {
	s.once.Do(func() { close(s.closing) })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.http.Shutdown(ctx) // what it leaves, the next line ends
	err := s.http.Close()
	s.calls.Wait()
	return err
}

// A Grant is whom a page acts for.
type Grant struct {
	Who    access.Principal
	Opener access.Ancestry // the process that has asked for the page, as it was then
}

// Code returns a code that one page may exchange for a token for the grant, within codeTime.
func (s *Server) Code(grant Grant) string { return s.tokens.code(grant) }

// file serves a static file. It holds nothing of any user.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/" { // no lists of files
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	s.static.ServeHTTP(w, r)
}
