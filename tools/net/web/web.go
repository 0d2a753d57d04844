// Package web makes one request to a web server through the daemon's own way out: within limits of
// time and size, without cookies, proxies or redirects, and only to addresses that the policy
// allows. It does not know what is requested, nor what becomes of the response.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/net/egress"
)

// Limits are the limits of one request. All must be set.
type Limits struct {
	Connect time.Duration // until there is a connection, TLS included; has an effect only if it is shorter than Header
	Header  time.Duration // from the start to the end of the response's header, connecting included
	Idle    time.Duration // without a byte of the body
	Bytes   int64         // of the body, both as it is sent and as it is decompressed
}

// Standard returns the limits that tools use. Bytes is part of the contract. The times are our own:
// a browser's user would not wait longer either.
func Standard() Limits {
	return Limits{Connect: 15 * time.Second, Header: 30 * time.Second, Idle: 20 * time.Second, Bytes: 10 << 20}
}

// headerBytes is the longest header of a response. Browsers accept as much.
const headerBytes = 256 << 10

// A Client makes requests. It is safe for concurrent use; its fields must not change after the
// first one.
type Client struct {
	Limits   Limits
	Agent    string         // of the User-Agent header
	Resolver *net.Resolver  // nil: the system's
	Roots    *x509.CertPool // the trusted certificates; nil: the system's
}

// An Answer is a server's response.
type Answer struct {
	Status int    // 200 to 599
	Reason string // the status with our own text, since a server's could be anything: "404 Not Found"
	Header http.Header
	Body   []byte // decompressed; empty for a redirect
	Cut    bool   // Body is only the beginning, up to the limit
}

// Get requests the target, an http or https URL, once, with the header added to the request. While
// the body is read, it calls progress with the number of bytes received and the total, 0 if that is
// unknown. The error is a *fault.Error, which wraps ErrNoConnection if no connection was made, or
// the cause of ctx's end.
func (c *Client) Get(ctx context.Context, policy egress.Policy, target *url.URL, header http.Header, progress func(done, total int64)) (*Answer, error) {
	q := question{client: c, target: target, progress: progress}
	asked, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun := time.Now()
	q.timer = time.AfterFunc(min(c.Limits.Connect, c.Limits.Header), func() { stop(errSlow) })
	defer q.timer.Stop()
	transport := c.transport(policy)
	defer transport.CloseIdleConnections()
	asked = httptrace.WithClientTrace(asked, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		q.connected.Store(true)
		q.timer.Reset(max(c.Limits.Header-time.Since(begun), 0))
	}})
	request, err := http.NewRequestWithContext(asked, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fault.Invalidf("invalid_input", "%s cannot be requested: %v.", target.Redacted(), err)
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", c.Agent)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, q.failure(asked, err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	q.timer.Reset(c.Limits.Idle)
	answer, err := q.read(response)
	if err != nil {
		return nil, q.failure(asked, err)
	}
	return answer, nil
}

// transport makes a new connection for each request, so that each address is checked for the
// permitted host. It uses only HTTP/1.1, whose costs are predictable.
func (c *Client) transport(policy egress.Policy) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &egress.Dialer{Policy: policy, Resolver: c.Resolver}
	return &http.Transport{
		DialContext: dialer.DialContext, Protocols: protocols, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: headerBytes, TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
	}
}

// ErrNoConnection means that the server was not reached, so it has not received the request.
var ErrNoConnection = errors.New("no connection was made")

// errSlow ends a request whose server takes too long.
var errSlow = errors.New("the server is too slow")

// A question is one GET request.
type question struct {
	client    *Client
	target    *url.URL
	timer     *time.Timer
	connected atomic.Bool
	progress  func(done, total int64)
	body      io.Reader
	received  int64 // bytes of the body as received
	total     int64 // as announced; 0: unknown
}

func (q *question) read(response *http.Response) (*Answer, error) {
	answer := &Answer{Status: response.StatusCode, Reason: strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", http.StatusText(response.StatusCode))), Header: response.Header}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return answer, nil
	}
	q.body, q.total = response.Body, max(response.ContentLength, 0)
	most := q.client.Limits.Bytes
	body, err := unpacked(response.Header, io.LimitReader(q, most+1))
	if err == nil {
		answer.Body, err = io.ReadAll(io.LimitReader(body, most+1))
	}
	switch {
	case int64(len(answer.Body)) > most:
		answer.Body, answer.Cut = answer.Body[:most], true
	case q.received > most: // the decompressed part counts, and its end is missing
		answer.Cut = true
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// Read reads the body as it is sent, counts it, and restarts the timer with each byte.
func (q *question) Read(b []byte) (int, error) {
	n, err := q.body.Read(b)
	if n > 0 {
		q.timer.Reset(q.client.Limits.Idle)
		q.received += int64(n)
		q.progress(q.received, q.total)
	}
	return n, err
}

// failure returns the error of a request without a response. asked is the context of the request.
func (q *question) failure(asked context.Context, err error) error {
	host := q.target.Host
	var refused *egress.Refusal
	var found *fault.Error
	cause := context.Cause(asked)
	switch {
	case errors.As(err, &refused):
		return Refused(refused)
	case errors.Is(cause, errSlow) && !q.connected.Load():
		return errors.Join(fault.Failedf("server_too_slow", "%s did not accept a connection within %s. Try again later, or do without it.", host, q.client.Limits.Connect), ErrNoConnection)
	case errors.Is(cause, errSlow):
		patience := q.client.Limits.Header
		if q.received > 0 {
			patience = q.client.Limits.Idle
		}
		return fault.Failedf("server_too_slow", "%s did not answer in time: nothing was received for %s. Try again later, or do without it.", host, patience).With(Progress{q.received})
	case cause != nil:
		return cause
	case errors.As(err, &found):
		return found
	case !q.connected.Load():
		return errors.Join(fault.Failedf("host_unreachable", "%s could not be reached: %v. Check the spelling of the host.", host, plain(err)), ErrNoConnection)
	default:
		return fault.Failedf("bad_response", "The response of %s cannot be read: %v.", host, plain(err)).With(Progress{q.received})
	}
}

// Progress are the details of an incomplete response.
type Progress struct {
	Received int64 `json:"received"` // bytes
}

// Refused returns the fault that a model gets for a refused host.
func Refused(r *egress.Refusal) error {
	words := r.Error()
	if r.Openable() {
		words = fmt.Sprintf("%s:%d may not be reached: its address %s is not public. Only a rule for exactly that name would allow it, "+
			"such as WebFetch(domain:%s): one with * does not.", r.Host, r.Port, r.Address, r.Host)
	}
	return fault.Deniedf("host_refused", "%s", words).With(Refusal{r.Host, r.Reason, r.Address})
}

// Refusal are the details of host_refused.
type Refusal struct {
	Host    string        `json:"host"`
	Reason  egress.Reason `json:"reason"`
	Address netip.Addr    `json:"address,omitzero"` // the address that was not connected to
}

// plain removes wrapping errors that only describe where in the program an error was found.
func plain(err error) error {
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("its certificate is not trusted: %w", certificate.Err)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return errors.New("there is no host of that name")
	}
	return err
}
