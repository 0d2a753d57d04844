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
		if n, err := readAll(theirs); n > 0 || err != io.EOF || time.Since(began) != authTime {
			t.Errorf("%d bytes and %v after %s", n, err, time.Since(began))
		}
	})
}

func readAll(conn net.Conn) (n int, err error) {
	buffer := make([]byte, 1024)
	for err == nil {
		var more int
		more, err = conn.Read(buffer)
		n += more
	}
	return n, err
}
