// Copying of what a process prints. At most one piece is held in memory, and a process that keeps
// the pipe open after the end of the tree is not waited for.

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

// pieceSize is how many bytes are read from a pipe at once: the usual capacity of a pipe.
const pieceSize = 64 << 10

// latest is how many bytes are read from a pipe after the tree has ended: the largest capacity that
// the kernel allows (fs.pipe-max-size). A process that still writes then is not part of the tree.
const latest = 1 << 20

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// A capture copies what comes out of a pipe to a writer.
type capture struct {
	pipe *os.File
	to   io.Writer
	done chan struct{}
	err  error // the writer's; set before done is closed
	// catching is set by catchUp until the pipe was read empty; caught then receives a value.
	catching atomic.Bool
	caught   chan struct{}
}

// newCapture returns the capture, and the other end of the pipe for the process.
func newCapture(to io.Writer) (*capture, *os.File, error) {
	r, w, err := outputPipe()
	if err != nil {
		return nil, nil, err
	}
	return &capture{pipe: r, to: to, done: make(chan struct{}), caught: make(chan struct{}, 1)}, w, nil
}

// copy runs until the other end of the pipe is closed, or until finish was called and the pipe is
// empty. It calls fail when the writer returns an error, and drops what comes after that.
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
			// finish or catchUp was called: a process that keeps the pipe open must not delay the
			// call, but what is in the pipe counts.
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

// catchUp waits until everything that is in the pipe now has been written. copy goes on. It must
// not be called concurrently with itself or finish.
func (c *capture) catchUp() {
	c.catching.Store(true)
	_ = c.pipe.SetReadDeadline(time.Unix(1, 0))
	select {
	case <-c.caught:
	case <-c.done:
	}
}

// finish waits until everything in the pipe has been written.
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

// A Beginning keeps the first Most bytes that are written to it and drops the rest, so that output
// takes no more memory than that. Write never returns an error. It is not safe for concurrent use.
type Beginning struct {
	Most int
	Cut  bool // something was dropped
	kept bytes.Buffer
}

// Write keeps as much of p as fits.
func (b *Beginning) Write(p []byte) (int, error) {
	fits := min(len(p), b.Most-b.kept.Len())
	b.Cut = b.Cut || fits < len(p)
	b.kept.Write(p[:fits])
	return len(p), nil
}

// String returns what was kept.
func (b *Beginning) String() string { return b.kept.String() }

// An Ending keeps the last Most bytes of what it is given and drops the rest. Its Write never returns an error. It is safe for
// concurrent use.
type Ending struct {
	Most int

	mu   sync.Mutex
	kept []byte
}

// Write keeps the end of what there is now.
func (e *Ending) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(e.kept, p[max(0, len(p)-e.Most):]...)
	e.kept = append(e.kept[:0], e.kept[max(0, len(e.kept)-e.Most):]...)
	return len(p), nil
}

// String returns what was kept.
func (e *Ending) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.kept)
}
