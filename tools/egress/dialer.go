// Connects to hosts that the policy allows, by addresses that it allows.

package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// connectTime is how long the search for an address and all attempts to connect may take together.
const connectTime = 30 * time.Second

// A Dialer connects to what its policy allows. Names are resolved here and nowhere else, and every address is checked on
// the socket that is about to be connected: an answer that changes between two questions helps nobody. Several connections
// may be made at once; the fields are not to be changed then.
type Dialer struct {
	Policy   Policy
	Resolver *net.Resolver // nil: the system's
}

// DialContext connects to address, which is host:port with the port as a number; network is tcp, tcp4 or tcp6. The error is
// or wraps a *Refusal when the policy does not permit the connection. A host with several addresses is reached by one that
// is permitted. A name that is not permitted is not even looked up; others are looked up as they stand, without the
// system's search domains. localhost and the names below it are this machine, whatever anybody says (RFC 6761, 6.3). It fits
// http.Transport.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "want tcp and host:port", Addr: address}}
	}
	number, _ := strconv.ParseUint(port, 10, 16) // 0, of what is no number, is refused
	if refusal := d.Policy.Check(host, uint16(number)); refusal != nil {
		return nil, refusal
	}
	name, _ := canonical(host, nameBytes)
	var refused atomic.Pointer[Refusal] // the first; addresses are tried side by side
	dialer := net.Dialer{Timeout: connectTime, Resolver: d.Resolver, Control: func(_, to string, _ syscall.RawConn) error {
		refusal := d.judge(name, to)
		if refusal == nil {
			return nil
		}
		refused.CompareAndSwap(nil, refusal)
		return refusal
	}}
	var conn net.Conn
	for _, place := range places(name) {
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(place, port)); err == nil {
			break
		}
	}
	if refusal := refused.Load(); err != nil && refusal != nil {
		return nil, refusal // it says more than that another address was out of reach
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%s could not be reached: %w", bracket(name), port, err)
	}
	return conn, nil
}

// judge returns why the address, which a socket is about to be connected to, must not be.
func (d *Dialer) judge(host, to string) *Refusal {
	address, err := netip.ParseAddrPort(to)
	if err != nil {
		return &Refusal{Host: to, Reason: BadHost}
	}
	if refusal := d.Policy.checkAddress(host, address); refusal != nil {
		return refusal
	}
	plain := address.Addr().Unmap()
	if special(plain) != "" || !isOwn(plain) || d.Policy.opens(host, plain, address.Port(), ownKind) {
		return nil // what is not public was judged as that
	}
	return &Refusal{Host: host, Port: address.Port(), Reason: PrivateAddress, Address: plain, kind: ownKind}
}

// places returns what is dialled for a canonical host: itself, in the form that no search domain is added to, or the addresses
// of loopback.
func places(host string) []string {
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{host}
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return []string{"127.0.0.1", "::1"}
	}
	return []string{host + "."}
}
