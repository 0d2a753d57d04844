// An HTTP proxy for processes that have no other way out. It forwards plain HTTP itself; tunnel.go
// handles CONNECT. It stores nothing of what passes. What a process may reach, and whether it is
// asked about, is its client's: the proxy serves several, and finds the client of each request.

package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"time"
)

// limits are a proxy's limits; tests use smaller ones.
type limits struct {
	connections int           // at once; more wait to be accepted
	header      int           // bytes of the header of a request or a response
	headerTime  time.Duration // from the start of a connection or request to the end of its header
	idle        time.Duration // without data in a tunnel, or without a request on a connection
	request     time.Duration // a plain request with its response
}

// usual are the limits for one call's processes: package managers open up to some fifty connections
// at once.
var usual = limits{connections: 256, header: 64 << 10, headerTime: 10 * time.Second, idle: 10 * time.Minute, request: 30 * time.Minute}

// A Proxy is an HTTP/1.1 proxy: CONNECT to any port, and plain http:// requests in absolute form.
// It answers what the client's policy does not permit with 403 and a sentence with the setting that
// would allow it.
type Proxy struct {
	clients  Clients
	resolver *net.Resolver // nil: the system's
	limits   limits
	forward  httputil.ReverseProxy // copied for each request
	server   *http.Server
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	slots    chan struct{} // one for each connection that may be open

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{} // accepted, tunnels included
	active sync.WaitGroup     // requests and tunnels; grows only while not closed
}

// NewProxy returns a proxy for clients. The caller closes it.
func NewProxy(clients Clients) *Proxy { return newProxy(clients, usual) }

func newProxy(clients Clients, l limits) *Proxy {
	p := &Proxy{clients: clients, limits: l, slots: make(chan struct{}, l.connections), open: map[*conn]struct{}{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0) // errors of clients and hosts are reported to the client
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ErrorLog: quiet, BaseContext: func(net.Listener) context.Context { return p.ctx },
		MaxHeaderBytes: l.header, ReadHeaderTimeout: l.headerTime, IdleTimeout: l.idle,
		DisableGeneralOptionsHandler: true,
		// A little more than a request may take, so that one that takes too long still gets a
		// response.
		ReadTimeout: l.request + l.headerTime, WriteTimeout: l.request + l.headerTime,
	}
	p.forward = httputil.ReverseProxy{
		Rewrite: rewrite, ModifyResponse: noUpgrade, ErrorLog: quiet, FlushInterval: -1,
	}
	return p
}

// transport returns the way of one plain request.
func (p *Proxy) transport(d *Dialer) http.RoundTripper {
	return &http.Transport{
		DialContext: d.DialContext, MaxResponseHeaderBytes: int64(p.limits.header),
		ExpectContinueTimeout: time.Second, DisableCompression: true,
		// Each request has its own connection, so that each is checked and none can read the
		// response of another.
		DisableKeepAlives: true,
	}
}

// Serve accepts connections and closes the listener at the end. It returns nil after Close, or the
// listener's error. It may be called for several listeners at once.
func (p *Proxy) Serve(l net.Listener) error {
	err := p.server.Serve(&gate{Listener: l, proxy: p})
	if p.ctx.Err() != nil {
		return nil
	}
	return err
}

// Close ends all requests and tunnels, and returns when none is left. It may be called more than
// once.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.end()
	for c := range p.open {
		_ = c.Conn.Close() // the goroutine that serves c closes c itself
	}
	p.mu.Unlock()
	err := p.server.Close()
	p.active.Wait()
	return err
}

// begin counts a request, and returns false if the proxy is closed.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.active.Add(1)
	}
	return !p.closed
}

// serve answers one request.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.active.Done()
	port, wrong := portOf(r)
	if wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	client, known := p.clients(r.RemoteAddr, user(r))
	if !known {
		http.Error(w, "This proxy does not know whose connection this is.", http.StatusForbidden)
		return
	}
	policy, refusal := client.permit(r.Context(), r.URL.Hostname(), port)
	if refusal != nil {
		client.fail(w, refusal)
		return
	}
	d := &Dialer{Policy: policy, Resolver: p.resolver}
	if r.Method == http.MethodConnect {
		p.connect(w, r, client, d)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.limits.request)
	defer cancel()
	forward := p.forward
	forward.Transport = p.transport(d)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			http.Error(w, "There was no answer in "+p.limits.request.String()+", the longest that a request may take.", http.StatusGatewayTimeout)
			return
		}
		client.fail(w, err)
	}
	forward.ServeHTTP(w, r.WithContext(ctx))
}

// portOf returns the port of a request, or what is wrong with its form.
func portOf(r *http.Request) (number uint16, wrong string) {
	port, connect := r.URL.Port(), r.Method == http.MethodConnect
	switch {
	case r.URL.Host == "" || r.URL.User != nil || connect && (r.URL.Path != "" || r.URL.RawQuery != "" || r.ContentLength != 0):
		return 0, "This is a proxy: it accepts CONNECT host:port without a body, and requests for http://host/path."
	case !connect && r.URL.Scheme != "http":
		return 0, "This proxy accepts plain requests only for http://; use CONNECT host:port for everything else."
	case !connect && port == "":
		return 80, ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return 0, "The host needs a port from 1 to 65535."
	}
	return uint16(n), ""
}

// rewrite directs the request to the host. Hop-by-hop and proxy headers are already removed. The
// host is the URL's, in the form that was checked, whatever a Host header contains.
func rewrite(r *httputil.ProxyRequest) {
	name, _ := canonical(r.In.URL.Hostname(), nameBytes)
	host := bracket(name)
	if port := r.In.URL.Port(); port != "" {
		host += ":" + port
	}
	out := *r.In.URL // the query too, as it was written
	out.Host = host
	r.Out.URL, r.Out.Host = &out, host
	r.Out.Header.Del("Connection") // no upgrades: only CONNECT makes a tunnel
	r.Out.Header.Del("Upgrade")
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

var errUpgrade = errors.New("the host left HTTP without being asked")

func noUpgrade(r *http.Response) error {
	if r.StatusCode == http.StatusSwitchingProtocols {
		return errUpgrade
	}
	return nil
}

// user returns the client's name for itself.
func user(r *http.Request) string {
	credentials := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	name, _, _ := credentials.BasicAuth()
	return name
}
