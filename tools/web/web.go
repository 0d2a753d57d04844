// Package web asks a web server for one thing, through the daemon's own way out: within limits of time and size, without
// cookies, proxies or redirects, connected only to addresses that the policy allows. It does not know what is asked for,
// nor what becomes of the answer.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/toold/toold/tools/egress"
	"github.com/toold/toold/tools/fault"
)

// Limits bound one question. All must be set.
type Limits struct {
	Connect time.Duration // until there is a connection, TLS included; counts while it is shorter than Header
	Header  time.Duration // from the beginning to the end of the answer's header, connecting included
	Idle    time.Duration // without a byte of the body
	Bytes   int64         // of the body, both as it is sent and as it is unpacked
}

// Standard are the limits that tools use. Bytes is the contract's; the times are ours: a server that says nothing for so
// long says nothing to a browser's user either.
func Standard() Limits {
	return Limits{Connect: 15 * time.Second, Header: 30 * time.Second, Idle: 20 * time.Second, Bytes: 10 << 20}
}

// headerBytes is how long the header of an answer may be. Browsers take as much.
const headerBytes = 256 << 10

// A Client asks. Its fields are not to be changed once it is used; the methods may be called from any goroutine.
type Client struct {
	Limits   Limits
	Agent    string         // of the header User-Agent
	Resolver *net.Resolver  // nil: the system's
	Roots    *x509.CertPool // whose certificates are believed; nil: the system's
}

// An Answer is what a server has said.
type Answer struct {
	Status int    // 200 to 599
	Reason string // the words for it: "404 Not Found"
	Header http.Header
	Body   []byte // unpacked; empty with a status that redirects
	Cut    bool   // Body is the beginning alone, up to the limit
}

// Get asks for the target, an http or https URL, once. The header is added to the question. While the body is read, progress
// is told how many bytes have come and how many there are, 0 when that is not known. The error holds a *fault.Error, and
// ErrNoConnection if that is so, or it is the cause of ctx's end.
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
		return nil, fault.Invalidf("invalid_input", "%s cannot be asked for: %v.", target.Redacted(), err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
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

// transport connects again for each question, so that each address is checked for the host that was permitted, and speaks
// HTTP/1.1 alone, whose costs are plain.
func (c *Client) transport(policy egress.Policy) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &egress.Dialer{Policy: policy, Resolver: c.Resolver}
	return &http.Transport{
		DialContext: dialer.DialContext, Protocols: protocols, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: headerBytes, TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
	}
}

// ErrNoConnection: the server was not reached, so that it has heard nothing of the question.
var ErrNoConnection = errors.New("no connection was made")

// unconnected is an error of which ErrNoConnection holds.
type unconnected struct{ found *fault.Error }

func (u unconnected) Error() string { return u.found.Error() }

// Unwrap returns both.
func (u unconnected) Unwrap() []error { return []error{u.found, ErrNoConnection} }

// errSlow ends a question whose server takes too long.
var errSlow = errors.New("the server is too slow")

// A question is one GET on its way.
type question struct {
	client    *Client
	target    *url.URL
	timer     *time.Timer
	connected atomic.Bool
	progress  func(done, total int64)
	received  int64 // bytes of the body as they came
	total     int64 // of them, as announced; 0: not known
}

func (q *question) read(response *http.Response) (*Answer, error) {
	answer := &Answer{Status: response.StatusCode, Reason: reason(response.StatusCode), Header: response.Header}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return answer, nil
	}
	q.total = max(response.ContentLength, 0)
	most := q.client.Limits.Bytes
	body, err := unpacked(response.Header, io.LimitReader(&meter{q, response.Body}, most+1))
	if err == nil {
		answer.Body, err = io.ReadAll(io.LimitReader(body, most+1))
	}
	switch {
	case int64(len(answer.Body)) > most:
		answer.Body, answer.Cut = answer.Body[:most], true
	case q.received > most: // what was unpacked of it counts, and its end is missing
		answer.Cut = true
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// reason returns the words for a status from our own list: the server's could say anything.
func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("%d %s", status, text)
	}
	return strconv.Itoa(status)
}

// A meter counts what comes, and keeps the timer from ending it while something does.
type meter struct {
	q    *question
	from io.Reader
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	if n > 0 {
		m.q.timer.Reset(m.q.client.Limits.Idle)
		m.q.received += int64(n)
		m.q.progress(m.q.received, m.q.total)
	}
	return n, err
}

// failure puts into words why there is no answer. asked is the context of the question.
func (q *question) failure(asked context.Context, err error) error {
	host := q.target.Host
	var refused *egress.Refusal
	var found *fault.Error
	cause := context.Cause(asked)
	switch {
	case errors.As(err, &refused):
		return Refused(refused)
	case errors.Is(cause, errSlow) && !q.connected.Load():
		return unconnected{fault.Failedf("server_too_slow", "%s did not take a connection within %s. Try again later, or do without it.", host, q.client.Limits.Connect)}
	case errors.Is(cause, errSlow):
		return fault.Failedf("server_too_slow", "%s did not answer in time: nothing came for %s. Try again later, or do without it.", host, q.patience()).With(Progress{q.received})
	case cause != nil:
		return cause
	case errors.As(err, &found):
		return found
	case !q.connected.Load():
		return unconnected{fault.Failedf("host_unreachable", "%s could not be reached: %v. Look whether the host is spelt right.", host, plain(err))}
	default:
		return fault.Failedf("bad_response", "What %s answered cannot be read: %v.", host, plain(err)).With(Progress{q.received})
	}
}

// Progress are the details of an answer that did not come to its end.
type Progress struct {
	Received int64 `json:"received"` // bytes
}

func (q *question) patience() time.Duration {
	if q.received > 0 {
		return q.client.Limits.Idle
	}
	return q.client.Limits.Header
}

// Refused is what a refused host is to a model.
func Refused(r *egress.Refusal) error {
	words := r.Error()
	if r.Openable() {
		words = fmt.Sprintf("%s:%d may not be reached: its address %s is not public. Only a rule for that very name would allow it, "+
			"such as WebFetch(domain:%s): one with * does not.", r.Host, r.Port, r.Address, r.Host)
	}
	return fault.Deniedf("host_refused", "%s", words).With(Refusal{r.Host, string(r.Reason), address(r)})
}

// Refusal are the details of host_refused.
type Refusal struct {
	Host    string `json:"host"`
	Reason  string `json:"reason"`            // an egress.Reason
	Address string `json:"address,omitempty"` // what was not connected to
}

func address(r *egress.Refusal) string {
	if r.Address.IsValid() {
		return r.Address.String()
	}
	return ""
}

// plain takes the layers off that say only where in the program an error was found.
func plain(err error) error {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("its certificate is not to be trusted: %w", certificate.Err)
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return errors.New("there is no host of that name")
	}
	return err
}
