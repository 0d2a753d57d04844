// Package rawio reads and writes pipes and sockets by system calls of which Go's scheduler is not notified.
//
// While a process waits for a message, the scheduler's monitor sleeps. The first ordinary system call wakes it, and then its thread
// polls every 20 us until the process waits again: about a third of what passing on a message takes. The monitor is there for system
// calls that block, and these do not.
package rawio

import (
	"io"
	"net"
	"syscall"
)

// A File is what the package reads and writes: an os.File or a connection.
type File interface {
	io.ReadWriter
	SyscallConn() (syscall.RawConn, error)
}

// A Stream is a file as a Reader and a Writer, for one of each at a time. Closing the file ends its reads and writes.
type Stream struct {
	file File
	raw  syscall.RawConn // nil: the file is used as it is
}

// New returns a file as a Stream.
func New(file File) *Stream {
	raw, err := file.SyscallConn()
	if err != nil {
		return &Stream{file: file} // it is closed, which reads and writes report
	}
	return &Stream{file, raw}
}

// A Conn is a connection that is read and written as a Stream.
type Conn struct {
	net.Conn
	stream *Stream
}

// NewConn returns a connection over a Unix socket as a Conn.
func NewConn(conn *net.UnixConn) Conn { return Conn{conn, New(conn)} }

// Read reads as a net.Conn does.
func (c Conn) Read(p []byte) (int, error) { return c.stream.Read(p) }

// Write writes as a net.Conn does.
func (c Conn) Write(p []byte) (int, error) { return c.stream.Write(p) }
