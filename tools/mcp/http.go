//go:build !no_mcp

// The connection to a server over the network: which requests may be sent, with which headers, and
// how much of a response is read.

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// connecting is how long connecting to the server may take, without its response.
const connecting = 10 * time.Second

// An origin sends the requests of one entry, and only to the scheme and host of its URL. Headers of
// an entry are usually credentials, and a redirect, or an endpoint that the server names, must not
// leak them.
type origin struct {
	base    *http.Transport
	scheme  string
	host    string
	headers map[string]string
	burst   atomic.Bool     // a response was too large, which is not reported yet
	open    context.Context // ends with cut, and with it all connections
	end     context.CancelFunc
}

// newOrigin parses the entry's URL. It ignores proxies of the environment, since they would see the
// headers.
func newOrigin(e Entry) (*origin, error) {
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, errors.New("its url is not an http or https address")
	}
	o := &origin{scheme: address.Scheme, host: address.Host, headers: e.Headers}
	o.open, o.end = context.WithCancel(context.Background())
	o.base = &http.Transport{
		DialContext: o.dial, TLSHandshakeTimeout: connecting, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	return o, nil
}

// dial opens a connection that cut closes.
func (o *origin) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: connecting}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return severed{conn, context.AfterFunc(o.open, func() { _ = conn.Close() })}, nil
}

// A severed connection is closed when its origin is cut.
type severed struct {
	net.Conn
	forget func() bool
}

// Close implements net.Conn.
func (c severed) Close() error {
	c.forget()
	return c.Conn.Close()
}

// cut closes all connections, so that nothing waits for a response any more, and prevents new ones.
func (o *origin) cut() {
	o.end()
	o.base.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper.
func (o *origin) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != o.scheme || request.URL.Host != o.host {
		return nil, fmt.Errorf("the server redirects to %s://%s, but its entry names %s://%s; no request is sent there", request.URL.Scheme, request.URL.Host, o.scheme, o.host)
	}
	request = request.Clone(request.Context())
	for name, value := range o.headers {
		request.Header.Set(name, value)
	}
	response, err := o.base.RoundTrip(request)
	if err == nil {
		events := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
		response.Body = &bounded{ReadCloser: response.Body, burst: &o.burst, events: events}
	}
	return response, err
}

// transport returns the SDK's transport for the entry.
func (o *origin) transport(e Entry) sdk.Transport {
	client := &http.Client{Transport: o}
	if e.transport() == SSE {
		return &sdk.SSEClientTransport{Endpoint: e.URL, HTTPClient: client, MaxEventSize: maxLine}
	}
	return &sdk.StreamableClientTransport{Endpoint: e.URL, HTTPClient: client, MaxEventSize: maxLine}
}

// A bounded body returns an error if a message becomes too long: the whole body, or one line of a
// stream of events.
type bounded struct {
	io.ReadCloser
	burst  *atomic.Bool
	events bool
	length int // of the message so far
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.length += n
	if b.events {
		if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
			b.length = n - i
		}
	}
	if b.length > maxLine {
		b.burst.Store(true)
		return 0, fmt.Errorf("the answer has more than %d bytes", maxLine)
	}
	return n, err
}
