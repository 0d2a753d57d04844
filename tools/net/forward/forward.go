// Package forward passes connections to an address of the machine's loopback on to a server that
// cannot be reached there. It does not know where that server is, and what is sent.
package forward

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"
)

// manyConnections is how many connections of one Forward are passed on at the same time. Further
// ones wait until one has ended. The number is our own: a browser opens 6 to one server, and more
// for web sockets.
const manyConnections = 128

// A Dial connects to the server. The caller closes the connection.
type Dial func(context.Context) (*net.TCPConn, error)

// A Forward listens at one address.
type Forward struct {
	listener *net.TCPListener
	dial     Dial
	cancel   context.CancelFunc
	done     chan struct{} // closed when nothing of it runs any more
}

// Open listens at the address, and passes each connection that a process of the daemon's own user
// makes on to a new one from dial, until Close. Other connections are reset. Nothing is sent the
// other way round: the server cannot make a connection through it. If another program listens there
// already, the error is syscall.EADDRINUSE.
func Open(at netip.AddrPort, dial Dial) (*Forward, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // it cannot be spliced, and the loopback has one path
	l, err := config.Listen(context.Background(), "tcp4", at.String())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Forward{listener: l.(*net.TCPListener), dial: dial, cancel: cancel, done: make(chan struct{})}
	go f.serve(ctx)
	return f, nil
}

// Close ends the forward with all its connections, and waits for them.
func (f *Forward) Close() {
	f.cancel()
	_ = f.listener.Close()
	<-f.done
}

// retry is how long Accept is left alone after it has failed, for want of descriptors. Ours.
const retry = 100 * time.Millisecond

func (f *Forward) serve(ctx context.Context) {
	defer close(f.done)
	slots := make(chan struct{}, manyConnections)
	for ctx.Err() == nil {
		slots <- struct{}{}
		client, err := f.listener.AcceptTCP()
		if err != nil {
			<-slots
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
			continue
		}
		go func() {
			f.pass(ctx, client)
			<-slots
		}()
	}
	for range manyConnections { // once all are taken, no connection is left
		slots <- struct{}{}
	}
}

// pass serves one connection.
func (f *Forward) pass(ctx context.Context, client *net.TCPConn) {
	defer client.Close()
	_ = client.SetLinger(0) // until it is served, its end is a reset
	if !isOwn(client) {
		return
	}
	server, err := f.dial(ctx)
	if err != nil {
		return
	}
	defer server.Close()
	_ = client.SetLinger(-1)
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		flow(client, server)
	}()
	flow(server, client)
	<-answered
}

// flow copies what comes from one connection to the other until its end, which it passes on. After
// an error it ends both.
func flow(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_, _ = to.Close(), from.Close()
		return
	}
	_ = to.CloseWrite()
}
