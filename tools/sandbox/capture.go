// Copies what a process prints, without holding more of it than one piece, and without waiting for whoever else holds the
// pipe. It does not know where the bytes go.

package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// pieceSize is how much is read from a pipe at once: what a pipe holds.
const pieceSize = 64 << 10

// latest is how much is taken from a pipe after the tree has ended, in bytes: the most that the kernel lets a pipe hold
// (fs.pipe-max-size). Whoever still writes then is none of the tree.
const latest = 1 << 20

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// A capture copies what comes out of a pipe to a writer.
type capture struct {
	pipe *os.File
	to   io.Writer
	done chan struct{}
	err  error // the writer's; set before done is closed
	// catching is set by catchUp until all of the pipe was read, which caught then says.
	catching atomic.Bool
	caught   chan struct{}
}

// newCapture returns the capture and the pipe's other end, for the process.
func newCapture(to io.Writer) (*capture, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &capture{pipe: r, to: to, done: make(chan struct{}), caught: make(chan struct{}, 1)}, w, nil
}

// copy runs until the pipe is closed at its other end, or finish has been called and what the pipe held is read. It calls fail
// when the writer takes no more, and drops what comes then.
func (c *capture) copy(fail func()) {
	defer close(c.done)
	buf := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(buf)
	raw, err := c.pipe.SyscallConn()
	if err != nil {
		c.err = err
		return
	}
	var n int
	read := func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), buf[:])
			if !errors.Is(err, syscall.EINTR) {
				return !errors.Is(err, syscall.EAGAIN)
			}
		}
	}
	grown := false
	for room := latest; ; {
		late := raw.Read(read)
		if late != nil {
			// finish or catchUp was called; one who holds the pipe must not hold the call, but what is in it already counts.
			n = 0
			_ = raw.Control(func(fd uintptr) { read(fd) })
			room -= n
		}
		if n == pieceSize && !grown {
			_ = raw.Control(grow)
			grown = true
		}
		if n > 0 && c.err == nil {
			if _, c.err = c.to.Write(buf[:n]); c.err != nil {
				fail()
			}
		}
		if n > 0 && room > 0 {
			continue
		}
		if late == nil || !c.catching.CompareAndSwap(true, false) {
			return
		}
		room = latest
		_ = c.pipe.SetReadDeadline(time.Time{})
		c.caught <- struct{}{}
	}
}

// catchUp waits until everything that is in the pipe now has been passed on. copy goes on. It must not be called at the same time as
// itself or finish.
func (c *capture) catchUp() {
	c.catching.Store(true)
	_ = c.pipe.SetReadDeadline(time.Unix(1, 0))
	select {
	case <-c.caught:
	case <-c.done:
	}
}

// finish waits until everything that is in the pipe has been passed on.
func (c *capture) finish() error {
	select {
	case <-c.done:
	default:
		_ = c.pipe.SetReadDeadline(time.Unix(1, 0)) // a pipe has deadlines
		<-c.done
	}
	_ = c.pipe.Close()
	return c.err
}

// A Beginning keeps the first Most bytes of what it is given and drops the rest, so that what a process prints costs no
// more memory than that. Its Write never gives an error. It is not safe for concurrent use.
type Beginning struct {
	Most int
	Cut  bool // something was dropped
	kept bytes.Buffer
}

// Write keeps what there is room for.
func (b *Beginning) Write(p []byte) (int, error) {
	fits := min(len(p), b.Most-b.kept.Len())
	b.Cut = b.Cut || fits < len(p)
	b.kept.Write(p[:fits])
	return len(p), nil
}

// String returns what was kept.
func (b *Beginning) String() string { return b.kept.String() }
