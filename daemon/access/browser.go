// A listener for a browser on this machine: how many connections it holds, and which processes it refuses. Its server authenticates
// requests.

package access

import (
	"fmt"
	"net"
)

// ListenBrowser opens a listener for HTTP on a loopback address, HOST:PORT; port 0 is any free port. Its connections are limited as
// those of ListenTCP: until AdmitBrowser they count as unauthenticated, and end within authTime.
func ListenBrowser(address string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address to listen on: name HOST:PORT, as 127.0.0.1:7778", address)
	}
	if !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address: the dashboard is for browsers on this machine; from another one, come in through `ssh -L`", address)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("the address %s cannot be listened on: %w", address, err)
	}
	return &TCPListener{TCPListener: listener, host: at.IP.String(), connections: newConnections()}, nil
}

// CheckBrowser refuses a connection of a ListenBrowser listener that comes from a process which a call of this daemon started. The
// error is an [*apierror.Error].
func CheckBrowser(conn net.Conn) error {
	v := conn.(*tcpConn)
	v.looking.Do(func() { v.refused = v.checkOtherEnd() })
	return v.refused
}

// AdmitBrowser notes that a request on the connection was sent by who. The error, an [*apierror.Error], means that there are too many
// connections.
func AdmitBrowser(conn net.Conn, who Principal) error {
	v := conn.(*tcpConn)
	return v.listener.connections.admit(v, who, token{})
}
