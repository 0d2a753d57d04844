// Messages that have arrived in part. gRPC takes in as much of each stream's message as the largest may have before a handler
// sees it, so a client can have the daemon hold that many bytes a stream. It is counted here, frame by frame, and the
// connection ends that passes a limit.

package access

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/mem"
)

// An Arriving bounds what a daemon holds of unfinished messages. Safe for concurrent use.
type Arriving struct {
	limit, all int64 // bytes, of a connection and of all of them
	refused    func(*Overfull)

	mu   sync.Mutex // guards the rest
	sum  int64
	held map[*countedConn]int64
}

// messagesEach and messagesAll are for how many of the largest messages there is room, of a connection and of all. The
// numbers are ours: a client sends one large message after the other.
const (
	messagesEach = 8
	messagesAll  = 16
)

// NewArriving returns bounds for messages of at most largest bytes. refused is called when a connection is ended.
func NewArriving(largest int, refused func(*Overfull)) *Arriving {
	return &Arriving{limit: messagesEach * int64(largest), all: messagesAll * int64(largest), refused: refused, held: map[*countedConn]int64{}}
}

// Overfull is why a connection was ended: what it held passed a limit, or it held the most when all of them did.
type Overfull struct {
	Scope string // "connection" or "daemon"
	Limit int64  // bytes
	Held  int64  // bytes, of the connection
	From  net.Addr
}

// goAwayTime is how long sending the reason may take.
const goAwayTime = 100 * time.Millisecond

// retryArriving is when a client may try again whose connection was ended.
const retryArriving = 10 * time.Second

func (o *Overfull) Error() string {
	return fmt.Sprintf("RESOURCE_EXHAUSTED messages_arriving: unfinished messages of scope %s passed the limit of %d bytes, and this connection has %d of them; "+
		"finish each message before the next, or try again in %.0f s", o.Scope, o.Limit, o.Held, retryArriving.Seconds())
}

// add counts bytes of a connection. It returns the connection that must end, nil if none, and why.
func (a *Arriving) add(c *countedConn, bytes int64) (*countedConn, *Overfull) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sum += bytes
	if a.held[c] += bytes; a.held[c] == 0 {
		delete(a.held, c)
	}
	switch {
	case bytes <= 0:
		return nil, nil
	case a.held[c] > a.limit:
		return c, &Overfull{"connection", a.limit, a.held[c], c.RemoteAddr()}
	case a.sum <= a.all:
		return nil, nil
	}
	most := c
	for other, held := range a.held {
		if held > a.held[most] {
			most = other
		}
	}
	return most, &Overfull{"daemon", a.all, a.held[most], most.RemoteAddr()}
}

// A countedConn is a connection, after its handshake, whose HTTP/2 frames are looked at as they pass. One goroutine reads
// and one writes.
type countedConn struct {
	net.Conn
	arriving *Arriving
	in       frames // of the goroutine that reads
	ready    ready  // the same

	writing sync.Mutex // guards out
	out     frames

	mu      sync.Mutex // guards the rest
	last    uint32     // the newest stream
	streams map[uint32]*message
	held    int64 // bytes of their messages, as far as they have arrived
	counted int64 // of these, what arriving has
	closed  bool
}

func (a *Arriving) count(conn net.Conn) net.Conn {
	const preface = 24 // bytes that a client sends before its first frame
	c := &countedConn{Conn: conn, arriving: a, in: frames{left: preface, rest: preface}, streams: map[uint32]*message{}}
	if socket, ok := conn.(*net.UnixConn); ok {
		c.ready.raw, _ = socket.SyscallConn() // nil: it is read the other way
		c.ready.read = c.ready.once
	}
	return c
}

// Read reads, and ends the connection that holds too much.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.look(&c.in, p[:n], c.received)
	return n, err
}

// ReadOnReady reads up to size bytes into a buffer of pool. gRPC asks for it, so that a silent connection holds no buffer:
// that of a socket is taken when there is something to read. The caller puts it back. It is nil if nothing
// was read from a socket.
func (c *countedConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	if c.ready.raw == nil {
		buffer := pool.Get(size)
		n, err := c.Read(*buffer)
		return buffer, n, err
	}
	c.ready.size, c.ready.pool = size, pool
	if err := c.ready.raw.Read(c.ready.read); err != nil {
		return nil, 0, err
	}
	buffer, n, err := c.ready.buffer, c.ready.n, c.ready.err
	c.ready.buffer, c.ready.pool = nil, nil
	if buffer != nil {
		c.look(&c.in, (*buffer)[:n], c.received)
	}
	return buffer, n, err
}

// A ready is a read that takes its buffer when there is something to read. Its fields are what is asked and answered, so that
// a read allocates nothing.
type ready struct {
	raw    syscall.RawConn
	read   func(fd uintptr) bool
	size   int
	pool   mem.BufferPool
	buffer *[]byte
	n      int
	err    error
}

// once reads once. It returns false if there is nothing to read yet.
func (r *ready) once(fd uintptr) bool {
	buffer := r.pool.Get(r.size)
	n, err := unix.Read(int(fd), *buffer)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(int(fd), *buffer)
	}
	if err == nil && n > 0 {
		r.buffer, r.n, r.err = buffer, n, nil
		return true
	}
	r.pool.Put(buffer)
	r.buffer, r.n, r.err = nil, 0, err
	if err == nil {
		r.err = io.EOF
	}
	return !errors.Is(err, unix.EAGAIN)
}

// Write writes, and notes which streams it ends.
func (c *countedConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Conn.Write(p)
	c.look(&c.out, p[:n], c.sent)
	return n, err
}

// Close closes the connection, of which nothing counts any more.
func (c *countedConn) Close() error {
	c.mu.Lock()
	c.closed, c.streams, c.held = true, nil, 0
	c.mu.Unlock()
	c.look(nil, nil, nil)
	return c.Conn.Close()
}

// look looks at frames that pass. It has arriving count what has changed, and ends a connection if that is too much.
func (c *countedConn) look(at *frames, p []byte, seen func(*frames, []byte)) {
	c.mu.Lock()
	if len(p) > 0 {
		at.pass(p, seen)
	}
	change := c.held - c.counted
	c.counted = c.held
	c.mu.Unlock()
	if change == 0 {
		return
	}
	if full, why := c.arriving.add(c, change); full != nil && full.refuse(why) {
		c.arriving.refused(why)
	}
}

// refuse ends the connection, with the reason as the data of a GOAWAY frame if nothing is being written. It reports whether
// the connection was open.
func (c *countedConn) refuse(why *Overfull) bool {
	c.mu.Lock()
	open := !c.closed
	c.closed = true
	c.mu.Unlock()
	if open && c.writing.TryLock() {
		if c.out.between() {
			_ = c.SetWriteDeadline(time.Now().Add(goAwayTime))
			_, _ = c.Conn.Write(goAway(why.Error())) // the connection ends either way
		}
		c.writing.Unlock()
	}
	_ = c.Close()
	return open
}

// received looks at a piece of a frame that came; mu is held.
func (c *countedConn) received(f *frames, piece []byte) {
	if c.closed {
		return
	}
	stream := f.stream()
	switch f.kind() {
	case frameHeaders:
		if stream > c.last {
			c.last = stream
			c.streams[stream] = &message{}
		}
	case frameData:
		if m := c.streams[stream]; m != nil {
			c.held += m.add(piece)
		}
		if f.left == 0 && f.flags()&flagEndStream != 0 {
			c.end(stream)
		}
	case frameReset:
		c.end(stream)
	}
}

// sent looks at a piece of a frame that was sent; mu is held.
func (c *countedConn) sent(f *frames, _ []byte) {
	if kind := f.kind(); kind == frameReset || (kind == frameHeaders || kind == frameData) && f.flags()&flagEndStream != 0 {
		c.end(f.stream())
	}
}

// end forgets a stream; mu is held.
func (c *countedConn) end(stream uint32) {
	if m := c.streams[stream]; m != nil {
		c.held -= m.got
		delete(c.streams, stream)
	}
}

// A message is what has arrived of the newest message of a stream: five bytes, of which the last four are its length, and
// the message.
type message struct {
	prefix    [5]byte
	prefixed  int   // bytes of prefix that are there
	need, got int64 // bytes of the message
}

// add takes the next bytes of the stream, and returns by how much the bytes of unfinished messages grow.
func (m *message) add(p []byte) (grows int64) {
	before := m.got
	for len(p) > 0 {
		if m.prefixed < len(m.prefix) {
			n := copy(m.prefix[m.prefixed:], p)
			m.prefixed, p = m.prefixed+n, p[n:]
			if m.need = int64(binary.BigEndian.Uint32(m.prefix[1:])); m.prefixed < len(m.prefix) {
				break
			}
		}
		n := min(m.need-m.got, int64(len(p)))
		m.got, p = m.got+n, p[n:]
		if m.got == m.need {
			m.prefixed, m.got = 0, 0
		}
	}
	return m.got - before
}

// The kinds and flags of frames that matter here: RFC 9113, section 6.
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameGoAway   = 0x7
	flagEndStream = 0x1
	flagPadded    = 0x8
	frameHead     = 9 // bytes before the payload
)

// frames finds the frames in bytes that pass.
type frames struct {
	head    [frameHead]byte
	n       int // bytes of head that are there
	left    int // bytes of the payload that are still to come
	rest    int // of these, padding at the end
	padding bool
}

func (f *frames) kind() byte     { return f.head[3] }
func (f *frames) flags() byte    { return f.head[4] }
func (f *frames) stream() uint32 { return binary.BigEndian.Uint32(f.head[5:]) & 0x7fffffff }

// between reports whether the last frame is complete.
func (f *frames) between() bool { return f.n%frameHead == 0 && f.left == 0 }

// pass calls seen for each frame, and again for each piece of its payload without padding.
func (f *frames) pass(p []byte, seen func(f *frames, piece []byte)) {
	for len(p) > 0 {
		if f.left == 0 {
			n := copy(f.head[f.n:], p)
			f.n, p = f.n+n, p[n:]
			if f.n < frameHead {
				return
			}
			f.n, f.rest = 0, 0
			f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
			f.padding = f.kind() == frameData && f.flags()&flagPadded != 0 && f.left > 0
			seen(f, nil)
			continue
		}
		if f.padding {
			f.padding, f.left, f.rest, p = false, f.left-1, int(p[0]), p[1:]
			continue
		}
		n := min(f.left, len(p))
		data := max(0, min(n, f.left-f.rest))
		f.left -= n
		if data > 0 || f.left == 0 {
			seen(f, p[:data])
		}
		p = p[n:]
	}
}

// goAway returns the frame by which a connection ends, with its reason.
func goAway(reason string) []byte {
	const enhanceYourCalm = 0xb
	length := 8 + len(reason)
	frame := []byte{byte(length >> 16), byte(length >> 8), byte(length), frameGoAway, 0, 0, 0, 0, 0}
	frame = binary.BigEndian.AppendUint32(frame, 0)
	frame = binary.BigEndian.AppendUint32(frame, enhanceYourCalm)
	return append(frame, reason...)
}
