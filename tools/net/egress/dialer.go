// A dialer to hosts that the policy allows, at addresses that it allows.

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

// connectTime is the limit for resolving a name and all attempts to connect together.
const connectTime = 30 * time.Second

// A Dialer connects to what its policy allows. Only the Dialer resolves names, and it checks every
// address on the socket that is about to be connected, so an answer that changes between two
// lookups does not help an attacker. DialContext may be called concurrently; the fields must not
// change after the first call.
type Dialer struct {
	Policy   Policy
	Resolver *net.Resolver // nil: the system's
}

// DialContext connects to address, which is host:port with a numeric port; network is tcp, tcp4 or
// tcp6. The error is or wraps a *Refusal if the policy does not permit the connection. If a host
// has several addresses, a permitted one is used. A name that is not permitted is not even looked
// up. Others are looked up without the system's search domains. localhost and the names below it
// are always this machine (RFC 6761, 6.3). DialContext has the signature of http.Transport.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "want tcp and host:port", Addr: address}}
	}
	number, _ := strconv.ParseUint(port, 10, 16) // 0, which is refused, if it is not a number
	if refusal := d.Policy.Check(host, uint16(number)); refusal != nil {
		return nil, refusal
	}
	name, _ := canonical(host, nameBytes)
	var refused atomic.Pointer[Refusal] // the first; addresses are tried concurrently
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
		return nil, refusal // it is more useful than an unreachable address
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%s could not be reached: %w", bracket(name), port, err)
	}
	return conn, nil
}

// judge returns why a socket must not be connected to the address, or nil.
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
		return nil // an address that is not public was judged as such
	}
	return &Refusal{Host: host, Port: address.Port(), Reason: PrivateAddress, Address: plain, kind: ownKind}
}

// places returns what is dialled for a canonical host: the host, in a form without search domains,
// or the loopback addresses.
func places(host string) []string {
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{host}
	}
	if isLocal(host) {
		return []string{"127.0.0.1", "::1"}
	}
	return []string{host + "."}
}

// isLocal reports whether a canonical name is always this machine's.
func isLocal(name string) bool { return name == "localhost" || strings.HasSuffix(name, ".localhost") }
