// A network of a test's own in which every address there is answers, so that what must not be reached could be.

package webfetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// public are the addresses of the sites that may be reached. Nobody there learns of it.
var public = []netip.Addr{netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("2606:2800:21f:cb07:6820:80da:af6b:8b2c")}

// A canary is a listener that notes at which addresses it was connected to, public ones apart.
type canary struct {
	net.Listener

	mu   *sync.Mutex
	hits map[string]int // by the address that was connected to
}

// Accept notes.
func (c canary) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	to := conn.LocalAddr().(*net.TCPAddr).AddrPort()
	if to.Addr().Unmap() != public[0] && to.Addr() != public[1] {
		c.mu.Lock()
		c.hits[to.String()]++
		c.mu.Unlock()
	}
	return conn, nil
}

// take returns what was noted and forgets it.
func (c canary) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := map[string]int{}
	for to, n := range c.hits {
		taken[to] = n
	}
	clear(c.hits)
	return taken
}

// listen returns a canary at the port of every address.
func listen(t *testing.T, port int, like *canary) canary {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	if like != nil {
		return canary{l, like.mu, like.hits}
	}
	return canary{l, new(sync.Mutex), map[string]int{}}
}

// names is a name server: by absolute name, what it answers to one question of a kind after another, the last one for ever.
// Each answer is a list, separated by blanks, of addresses and, with a dot at its end, the name that it is an alias of.
type names map[string][]string

func (n names) resolver(t *testing.T) *net.Resolver {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { n.serve(socket) })
	t.Cleanup(func() {
		socket.Close()
		served.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", socket.LocalAddr().String())
	}}
}

func (n names) serve(socket net.PacketConn) {
	asked := map[dnsmessage.Question]int{}
	buf := make([]byte, 64<<10)
	for {
		size, from, err := socket.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		turns, ok := n[q.Name.String()]
		m.Header.Response, m.Header.RecursionAvailable, m.Additionals = true, true, nil
		if ok {
			n.answer(&m, q.Name, turns[min(asked[q], len(turns)-1)])
		} else {
			m.Header.RCode = dnsmessage.RCodeNameError
		}
		asked[q]++
		if packed, err := m.Pack(); err == nil {
			_, _ = socket.WriteTo(packed, from)
		}
	}
}

// answer adds to m what the list says of the name, and what there is of those that it is an alias of.
func (n names) answer(m *dnsmessage.Message, name dnsmessage.Name, list string) {
	kind := m.Questions[0].Type
	for _, word := range strings.Fields(list) {
		header := dnsmessage.ResourceHeader{Name: name, Type: kind, Class: dnsmessage.ClassINET}
		address, err := netip.ParseAddr(word)
		switch {
		case err != nil:
			header.Type = dnsmessage.TypeCNAME
			alias := dnsmessage.MustNewName(word)
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.CNAMEResource{CNAME: alias}})
			if turns, ok := n[word]; ok && alias != name {
				n.answer(m, alias, turns[0])
			}
		case address.Is4() && kind == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case address.Is6() && kind == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
}
