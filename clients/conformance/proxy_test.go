package conformance_test

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// A proxy passes connections on to the daemon, and breaks them as a case asks.
type proxy struct {
	listener net.Listener
	daemon   string // the path of its socket
	serving  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	open    map[net.Conn]struct{}
	isOver  bool
	isDown  bool          // no daemon listens: clients wait
	left    int           // messages or bytes until the cut; negative: there is none
	counts  unit          // what left counts
	small   int           // as many bytes are passed on at once; 0: as many as come
	held    bool          // nothing of the daemon's is read
	delay   time.Duration // how long each piece is under way
}

// A unit is what is counted until a cut.
type unit int

const (
	messages unit = iota // of the daemon
	bytesDown
	bytesUp
)

func newProxy(path, daemon string) (*proxy, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, daemon: daemon, open: map[net.Conn]struct{}{}, left: -1}
	p.changed = sync.NewCond(&p.mu)
	p.serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(client) })
		}
	})
	return p, nil
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.set(func() { p.isOver, p.held = true, false })
	p.cut()
	p.serving.Wait()
}

// set changes what the proxy does.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *proxy) cutLocked() {
	for conn := range p.open {
		_ = conn.Close()
	}
	clear(p.open)
}

// serve passes one connection on. While no daemon listens, the client waits.
func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	for p.isDown && !p.isOver {
		p.changed.Wait()
	}
	upstream, err := net.Dial("unix", p.daemon)
	if err != nil || p.isOver {
		p.mu.Unlock()
		_ = client.Close()
		return
	}
	p.open[client], p.open[upstream] = struct{}{}, struct{}{}
	p.mu.Unlock()
	p.serving.Go(func() { p.pump(client, upstream, false) })
	p.pump(upstream, client, true)
}

// pump passes on what comes from one side, until it ends or is cut.
func (p *proxy) pump(from, to net.Conn, down bool) {
	defer func() {
		_, _ = from.Close(), to.Close()
		p.set(func() { delete(p.open, from); delete(p.open, to) })
	}()
	frames, chunk := &frames{}, make([]byte, 32<<10)
	for {
		n, err := from.Read(p.piece(chunk))
		p.travel()
		pass, cut := p.passes(frames, chunk[:n], down)
		if _, writeErr := to.Write(chunk[:pass]); writeErr != nil || err != nil {
			return
		}
		if cut {
			p.cut()
			return
		}
	}
}

// travel takes as long as a piece is under way.
func (p *proxy) travel() {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	<-time.After(delay)
}

// piece returns the part of a buffer that is read at once.
func (p *proxy) piece(chunk []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.small > 0 {
		return chunk[:p.small]
	}
	return chunk
}

// passes waits as long as a chunk is held, and returns how much of it passes, and whether all connections are cut then.
func (p *proxy) passes(frames *frames, chunk []byte, down bool) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for down && p.held {
		p.changed.Wait()
	}
	for i := range chunk {
		ends := frames.read(chunk[i]) && down
		counts := ends && p.counts == messages || down && p.counts == bytesDown || !down && p.counts == bytesUp
		if p.left > 0 && counts {
			if p.left--; p.left == 0 {
				p.left = -1
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}

// frames reads the frames of HTTP/2, byte by byte, to find the end of each message.
type frames struct {
	head []byte
	rest uint32
}

// read reports whether a byte is the last of a frame with data.
func (f *frames) read(b byte) bool {
	if f.rest > 0 {
		f.rest--
		return f.rest == 0 && f.head[3] == 0
	}
	if len(f.head) == 9 {
		f.head = f.head[:0]
	}
	if f.head = append(f.head, b); len(f.head) == 9 {
		f.rest = binary.BigEndian.Uint32([]byte{0, f.head[0], f.head[1], f.head[2]})
	}
	return false
}
