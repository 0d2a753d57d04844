package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A zone is a name server on loopback. For each name it has the answers to one question after another, each a list of
// addresses separated by blanks; the last one stays.
type zone struct {
	socket net.PacketConn

	mu      sync.Mutex
	answers map[string][]string // by the absolute name; of A and AAAA together
	asked   map[string]int      // by name and kind
}

func newZone(t testing.TB, answers map[string][]string) *zone {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{socket: socket, answers: answers, asked: map[string]int{}}
	var served sync.WaitGroup
	served.Go(z.serve)
	t.Cleanup(func() {
		socket.Close()
		served.Wait()
	})
	return z
}

// resolver asks the zone and nobody else.
func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", z.socket.LocalAddr().String())
	}}
}

func (z *zone) serve() {
	buf := make([]byte, 4096)
	for {
		n, from, err := z.socket.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		answer, err := z.answer(m).Pack()
		if err != nil {
			continue
		}
		_, _ = z.socket.WriteTo(answer, from)
	}
}

func (z *zone) answer(m dnsmessage.Message) *dnsmessage.Message {
	q := m.Questions[0]
	m.Header.Response, m.Header.RecursionAvailable, m.Additionals = true, true, nil
	texts, ok := z.next(q)
	if !ok {
		m.Header.RCode = dnsmessage.RCodeNameError
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	for _, text := range texts {
		address := netip.MustParseAddr(text)
		switch {
		case q.Type == dnsmessage.TypeA && address.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case q.Type == dnsmessage.TypeAAAA && address.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	return &m
}

func (z *zone) next(q dnsmessage.Question) ([]string, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	key := q.Name.String() + q.Type.String()
	turns, ok := z.answers[q.Name.String()]
	at := min(z.asked[key], len(turns)-1)
	z.asked[key]++
	if !ok {
		return nil, false
	}
	return strings.Fields(turns[at]), true
}

// questions counts them all.
func (z *zone) questions() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.asked)
}

// echo returns the address of a server on loopback that says everything back until it is told that there is no more.
func echo(t testing.TB) (address string, port uint16) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer c.Close()
				buf := make([]byte, 32<<10)
				for {
					n, err := c.Read(buf)
					if _, failed := c.Write(buf[:n]); failed != nil || err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	return l.Addr().String(), l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// dialCases say what comes of connecting to x.example when the zone gives these answers, one after another; of each, the
// address that is refused, or "" where there is a connection. All policies allow x.example; opened is beside that.
var dialCases = []struct {
	name    string
	opened  string
	denied  string
	answers []string
	want    []string
}{
	{"loopback", "", "", []string{"127.0.0.1"}, []string{"private_address 127.0.0.1"}},
	{"opened", "X.example.", "", []string{"127.0.0.1"}, []string{""}},
	{"the address opened, not the name", "127.0.0.1", "", []string{"127.0.0.1"}, []string{"private_address 127.0.0.1"}},
	{"another name opened", "y.example 127.0.0.1", "", []string{"127.0.0.1"}, []string{"private_address 127.0.0.1"}},
	{"a pattern opens nothing", "* *.example x.*", "", []string{"127.0.0.1"}, []string{"private_address 127.0.0.1"}},
	{"metadata", "x.example 169.254.169.254", "", []string{"169.254.169.254"}, []string{"private_address 169.254.169.254"}},
	{"another metadata", "x.example", "", []string{"100.100.100.200"}, []string{"private_address 100.100.100.200"}},
	{"metadata of IPv6", "x.example", "", []string{"fd00:ec2::254"}, []string{"private_address fd00:ec2::254"}},
	{"mapped", "", "", []string{"::ffff:10.0.0.1"}, []string{"private_address 10.0.0.1"}},
	{"translated", "x.example", "", []string{"64:ff9b::7f00:1"}, []string{"private_address 64:ff9b::7f00:1"}},
	{"unspecified", "x.example", "", []string{"0.0.0.0"}, []string{"private_address 0.0.0.0"}},
	{"multicast", "x.example", "", []string{"224.0.0.1"}, []string{"private_address 224.0.0.1"}},
	{"loopback of IPv6", "", "", []string{"::1"}, []string{"private_address ::1"}},
	{
		"rebinding", "x.example", "",
		[]string{"127.0.0.1", "169.254.169.254", "127.0.0.1", "::ffff:169.254.169.254"},
		[]string{"", "private_address 169.254.169.254", "", "private_address 169.254.169.254"},
	},
	{"one of two", "x.example", "", []string{"169.254.169.254 127.0.0.1"}, []string{""}},
	{"denied address", "x.example", "127.0.0.1", []string{"127.0.0.1"}, []string{"denied 127.0.0.1"}},
	{"denied public address", "", "93.184.*.*", []string{"93.184.216.34"}, []string{"denied 93.184.216.34"}},
	{"another port opened", "x.example:1", "", []string{"127.0.0.1"}, []string{"private_address 127.0.0.1"}},
}

func TestDialer(t *testing.T) {
	_, port := echo(t)
	for _, c := range dialCases {
		t.Run(c.name, func(t *testing.T) {
			d := Dialer{
				Policy:   Policy{Allowed: []string{"x.example"}, Denied: strings.Fields(c.denied), Opened: strings.Fields(c.opened)},
				Resolver: newZone(t, map[string][]string{"x.example.": c.answers}).resolver(),
			}
			for i, want := range c.want {
				conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort("X.example", strconv.Itoa(int(port))))
				if conn != nil {
					conn.Close()
				}
				var r *Refusal
				got := ""
				if errors.As(err, &r) {
					got = string(r.Reason) + " " + r.Address.String()
				} else if err != nil {
					got = err.Error()
				}
				if got != want {
					t.Errorf("connection %d gives %q, want %q", i, got, want)
				}
			}
		})
	}
}

// What is not permitted is not even looked up.
func TestDialerLooksUpOnlyWhatIsPermitted(t *testing.T) {
	z := newZone(t, map[string][]string{"x.example.": {"127.0.0.1"}})
	d := Dialer{Policy: Policy{Allowed: []string{"*"}, Denied: []string{"x.example"}}, Resolver: z.resolver()}
	for _, address := range []string{"x.example:80", "127.1:80", "y.example:http", "y.example", "y.example:0"} {
		conn, err := d.DialContext(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
			t.Errorf("%s was reached", address)
		}
	}
	for _, network := range []string{"udp", "unix", "ip"} {
		if _, err := d.DialContext(t.Context(), network, "y.example:80"); err == nil {
			t.Errorf("a connection by %s was made", network)
		}
	}
	if n := z.questions(); n != 0 {
		t.Errorf("%d questions were asked", n)
	}
}

// A name is looked up as it stands, and what is not found is no refusal.
func TestDialerNameNotFound(t *testing.T) {
	z := newZone(t, nil)
	d := Dialer{Policy: Policy{Allowed: []string{"*"}}, Resolver: z.resolver()}
	_, err := d.DialContext(t.Context(), "tcp", "nowhere:80")
	var missing *net.DNSError
	if !errors.As(err, &missing) || !missing.IsNotFound {
		t.Errorf("%v, want that there is no such host", err)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	for name := range z.asked {
		if !strings.HasPrefix(name, "nowhere.Type") {
			t.Errorf("%s was asked for", name)
		}
	}
}
