// An HTTP proxy for processes that have no other way out. It forwards plain HTTP itself and leaves CONNECT to tunnel.go. It
// keeps nothing of what passes, and it does not authenticate: whoever reaches its listener may use it.

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

// limits are a proxy's bounds; tests have smaller ones.
type limits struct {
	connections int           // at once; more wait to be accepted
	header      int           // bytes of a request's header, and of an answer's
	headerTime  time.Duration // from the beginning of a connection or request to the end of its header
	idle        time.Duration // a tunnel in which nothing moves, a connection without a request
	request     time.Duration // a plain request with its answer
}

// usual are for one call's processes: package managers open up to some fifty connections at once.
var usual = limits{connections: 256, header: 64 << 10, headerTime: 10 * time.Second, idle: 10 * time.Minute, request: 30 * time.Minute}

// A Proxy is an HTTP/1.1 proxy: CONNECT to any port, and plain http:// requests in absolute form. What its policy does not
// permit is answered with 403 and a sentence that says what would allow it.
type Proxy struct {
	dialer  Dialer
	refused func(Refusal)
	limits  limits
	forward httputil.ReverseProxy // copied for each request
	server  *http.Server
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	slots   chan struct{} // one for each connection that may be open

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{} // accepted, tunnels included
	active sync.WaitGroup     // requests and tunnels; grows only while not closed
}

// NewProxy makes a proxy. Each refusal is told to refused, which may be nil, on the goroutine of the request and before its
// answer; several at once, and Close waits for it. The policy's lists are not to be changed any more. A client names itself by the user name of basic proxy credentials (http://user@host:port as its
// proxy); the password is not looked at. The caller closes the proxy.
func NewProxy(policy Policy, refused func(Refusal)) *Proxy { return newProxy(policy, refused, usual) }

func newProxy(policy Policy, refused func(Refusal), l limits) *Proxy {
	p := &Proxy{
		dialer: Dialer{Policy: policy}, refused: refused, limits: l,
		slots: make(chan struct{}, l.connections), open: map[*conn]struct{}{},
	}
	p.ctx, p.end = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0) // what a client or a host does wrong is theirs to know
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ErrorLog: quiet, BaseContext: func(net.Listener) context.Context { return p.ctx },
		MaxHeaderBytes: l.header, ReadHeaderTimeout: l.headerTime, IdleTimeout: l.idle,
		DisableGeneralOptionsHandler: true,
		// A little more than a request may take, so that one that takes too long is still answered.
		ReadTimeout: l.request + l.headerTime, WriteTimeout: l.request + l.headerTime,
	}
	p.forward = httputil.ReverseProxy{
		Rewrite: rewrite, ModifyResponse: noUpgrade, ErrorLog: quiet, FlushInterval: -1,
		Transport: &http.Transport{
			DialContext: p.dialer.DialContext, MaxResponseHeaderBytes: int64(l.header),
			ExpectContinueTimeout: time.Second, DisableCompression: true,
			// Each request has a connection of its own, so that each is checked, and none reads another's answer.
			DisableKeepAlives: true,
		},
	}
	return p
}

// Serve accepts connections until Close, then gives nil, or the listener's error. It closes the listener, and may be called
// for several at once.
func (p *Proxy) Serve(l net.Listener) error {
	err := p.server.Serve(&gate{Listener: l, proxy: p})
	if p.ctx.Err() != nil {
		return nil
	}
	return err
}

// Close ends all requests and tunnels, and returns when none is left. It may be called several times.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.end()
	for c := range p.open {
		_ = c.Conn.Close() // c itself is closed by whoever serves it
	}
	p.mu.Unlock()
	err := p.server.Close()
	p.active.Wait()
	return err
}

// begin counts a request in, unless the proxy is closed.
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
	if refusal := p.dialer.Policy.Check(r.URL.Hostname(), port); refusal != nil {
		p.fail(w, r, refusal)
		return
	}
	if r.Method == http.MethodConnect {
		p.connect(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.limits.request)
	defer cancel()
	forward := p.forward
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			http.Error(w, "There was no answer in "+p.limits.request.String()+", the longest that a request may take.", http.StatusGatewayTimeout)
			return
		}
		p.fail(w, r, err)
	}
	forward.ServeHTTP(w, r.WithContext(ctx))
}

// portOf returns the port that a request is for, or says what is wrong with its form.
func portOf(r *http.Request) (number uint16, wrong string) {
	port, connect := r.URL.Port(), r.Method == http.MethodConnect
	switch {
	case r.URL.Host == "" || r.URL.User != nil || connect && (r.URL.Path != "" || r.URL.RawQuery != "" || r.ContentLength != 0):
		return 0, "This is a proxy: it takes CONNECT host:port without a body, and requests for http://host/path."
	case !connect && r.URL.Scheme != "http":
		return 0, "This proxy takes plain requests for http:// alone; everything else goes through CONNECT host:port."
	case !connect && port == "":
		return 80, ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return 0, "The host needs a port from 1 to 65535 behind it."
	}
	return uint16(n), ""
}

// rewrite makes the request for the host. Hop-by-hop headers, those to the proxy among them, are gone already. The host is
// the URL's, whatever a Host header says, in the form that was checked.
func rewrite(r *httputil.ProxyRequest) {
	name, _ := canonical(r.In.URL.Hostname(), nameBytes)
	host := bracket(name)
	if port := r.In.URL.Port(); port != "" {
		host += ":" + port
	}
	out := *r.In.URL // its query too, as it was written
	out.Host = host
	r.Out.URL, r.Out.Host = &out, host
	r.Out.Header.Del("Connection") // no upgrades: a tunnel is made by CONNECT alone
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

// fail answers a request that came to nothing.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		http.Error(w, "The proxy could not get an answer: "+err.Error(), http.StatusBadGateway)
		return
	}
	said := *refusal
	said.User = user(r)
	if p.refused != nil {
		p.refused(said)
	}
	http.Error(w, said.Error(), http.StatusForbidden)
}

// user returns the name by which the client calls itself.
func user(r *http.Request) string {
	credentials := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	name, _, _ := credentials.BasicAuth()
	return name
}
