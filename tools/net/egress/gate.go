// Admission of connections: a limited number at once, with a list of the open ones.

package egress

import (
	"net"
	"sync"
)

// A gate is the listener from which a proxy accepts.
type gate struct {
	net.Listener
	proxy *Proxy
}

// Accept waits for a free slot first, so that further connections wait in the listener's queue.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.proxy.slots <- struct{}{}:
	case <-g.proxy.ctx.Done():
		return nil, net.ErrClosed
	}
	accepted, err := g.Listener.Accept()
	if err != nil {
		<-g.proxy.slots
		return nil, err
	}
	return g.proxy.admit(accepted), nil
}

// admit registers a connection; one that comes after Close is closed.
func (p *Proxy) admit(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, proxy: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = struct{}{}
	if p.closed {
		_ = accepted.Close()
	}
	return c
}

// A conn is an accepted connection. It has a slot until it is closed.
type conn struct {
	net.Conn
	proxy *Proxy
	once  sync.Once
}

// Close closes the connection and releases its slot.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.proxy.mu.Lock()
		delete(c.proxy.open, c)
		c.proxy.mu.Unlock()
		<-c.proxy.slots
	})
	return c.Conn.Close()
}
