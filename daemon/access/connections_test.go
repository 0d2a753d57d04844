package access

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnauthenticatedEnds: a connection on which no client authenticates ends by itself.
func TestUnauthenticatedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := net.Pipe()
		began := time.Now()
		c := newConnections()
		c.add(&tcpConn{Conn: ours, listener: &TCPListener{connections: c}})
		if read, err := io.ReadAll(theirs); len(read) > 0 || err != nil || time.Since(began) != authTime {
			t.Errorf("%d bytes and %v after %s", len(read), err, time.Since(began))
		}
	})
}
