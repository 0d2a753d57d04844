//go:build linux

package trial

import (
	"net"
	"strings"
	"sync"
)

// A wire is a proxy between a node and a NATS server, which can be cut: then nothing passes, and new connections
// are accepted and stay silent, as in a network that drops packets.
type wire struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu    sync.Mutex
	open  []net.Conn
	whole chan struct{} // closed while the wire is not cut
}

// wire makes the wires of a node, and returns their URLs.
func (c *Cluster) wire(node string) (urls string, err error) {
	var all []string
	for _, url := range c.urls {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		w := &wire{listener: listener, target: strings.TrimPrefix(url, "nats://"), whole: make(chan struct{})}
		close(w.whole)
		w.serving.Go(w.serve)
		c.wires[node], all = append(c.wires[node], w), append(all, "nats://"+listener.Addr().String())
	}
	return strings.Join(all, ","), nil
}

// Cut cuts a node off from NATS, until Join.
func (c *Cluster) Cut(node string) {
	for _, w := range c.wires[node] {
		w.mu.Lock()
		select {
		case <-w.whole:
			w.whole = make(chan struct{})
		default: // it is cut already
		}
		w.mu.Unlock()
	}
}

// Join connects a node with NATS again: what was under way when it was cut off goes on.
func (c *Cluster) Join(node string) {
	for _, w := range c.wires[node] {
		w.join()
	}
}

func (w *wire) join() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.whole:
	default:
		close(w.whole)
	}
}

// isWhole returns a channel that is closed while the wire is not cut.
func (w *wire) isWhole() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole
}

func (w *wire) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.serving.Go(func() { w.carry(client) })
	}
}

// carry passes bytes both ways until one side ends.
func (w *wire) carry(client net.Conn) {
	defer client.Close()
	<-w.isWhole()
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer server.Close()
	w.mu.Lock()
	w.open = append(w.open, client, server)
	w.mu.Unlock()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			<-w.isWhole()
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return // io.EOF as well: NATS has no half-closed connections
			}
		}
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// close ends everything.
func (w *wire) close() {
	_ = w.listener.Close()
	w.join()
	w.mu.Lock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.serving.Wait()
}
