// CONNECT: bytes are copied both ways, unread.

package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// pieceSize is how many bytes are read from a connection at once: as many as io.Copy reads.
const pieceSize = 32 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// connect answers a CONNECT request, and returns when its tunnel has ended.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, from Client, d *Dialer) {
	// This is not the request's context, which ends when the client has sent everything, although
	// it waits for the response.
	host, err := d.DialContext(p.ctx, "tcp", r.URL.Host)
	if err != nil {
		from.fail(w, err)
		return
	}
	defer func() { _ = host.Close() }() // all data has been sent
	client, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "This connection cannot become a tunnel.", http.StatusInternalServerError)
		return
	}
	defer func() { _ = client.Close() }()
	t := &tunnel{client: client, host: host, idle: p.limits.idle}
	defer context.AfterFunc(p.ctx, t.close)()
	t.timer = time.AfterFunc(t.idle, t.close)
	defer t.timer.Stop()
	if _, err := io.WriteString(client, established); err != nil {
		return
	}
	t.relay(early.Reader)
}

// A tunnel is two connections, and a timer that closes both when no data has moved for a while.
type tunnel struct {
	client, host net.Conn
	idle         time.Duration
	timer        *time.Timer
}

func (t *tunnel) close() {
	_ = t.client.Close()
	_ = t.host.Close()
}

// relay copies both ways until both have ended. early holds what the client has sent too soon.
func (t *tunnel) relay(early *bufio.Reader) {
	var back sync.WaitGroup
	back.Go(func() { t.copy(t.client, t.host) })
	sent, _ := early.Peek(early.Buffered()) // buffered data can always be peeked at
	if t.write(t.host, sent) {
		t.copy(t.host, t.client)
	}
	back.Wait()
}

// copy copies one way. The end of the source is passed on as an end, so that the other way stays
// open; any other error ends the tunnel.
func (t *tunnel) copy(to, from net.Conn) {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	for {
		n, err := from.Read(piece[:])
		if !t.write(to, piece[:n]) {
			return
		}
		if errors.Is(err, io.EOF) && shut(to) {
			return
		}
		if err != nil {
			t.close()
			return
		}
	}
}

// write reports whether it has written b; otherwise it has ended the tunnel.
func (t *tunnel) write(to net.Conn, b []byte) bool {
	t.timer.Reset(t.idle)
	if len(b) == 0 {
		return true
	}
	if _, err := to.Write(b); err != nil {
		t.close()
		return false
	}
	return true
}

// shut closes the writing side of the connection.
func shut(c net.Conn) bool {
	if accepted, ok := c.(*conn); ok {
		c = accepted.Conn
	}
	half, ok := c.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}
