//go:build linux

package container

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A container with [Config].Lives ends by itself: process 1 is told by a pipe when it was begun to ask for an append that was
// acknowledged, and lives for so long after that. So it ends also when the process that has started it is stopped, or cut off.

// looks is how often process 1 looks at the clock.
const looks = 50 * time.Millisecond

// An Instant is a moment of this machine's clock that also runs while the machine sleeps.
type Instant int64

// Now returns the present.
func Now() Instant {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("BUG: there is no CLOCK_BOOTTIME: " + err.Error())
	}
	return Instant(now.Nano())
}

// Add returns the moment after d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Beat lets the container live until [Config].Lives after a moment. It never blocks. Beats that come within looks of each other
// may be left out.
func (c *Container) Beat(at Instant) {
	if at < c.last.Load().Add(looks) {
		return
	}
	c.last.Store(at)
	conn, err := c.beats.SyscallConn()
	if err != nil {
		return // the container has ended
	}
	_ = conn.Write(func(fd uintptr) bool {
		_, _ = unix.Write(int(fd), binary.LittleEndian.AppendUint64(nil, uint64(at))) // a pipe that is full has later beats
		return true
	})
}

// LastBeat returns the moment of the last [Container.Beat] that was not left out, 0 if there was none.
func (c *Container) LastBeat() Instant { return c.last.Load() }

// lastBeat is an Instant that several goroutines use.
type lastBeat struct{ at atomic.Int64 }

func (l *lastBeat) Load() Instant   { return Instant(l.at.Load()) }
func (l *lastBeat) Store(i Instant) { l.at.Store(int64(i)) }

// supervise ends the container, with everything in it, when no beat is newer than lives.
func supervise(beats io.Reader, first Instant, lives time.Duration) {
	var last lastBeat
	last.Store(first)
	go func() {
		for one := make([]byte, 8); ; {
			if _, err := io.ReadFull(beats, one); err != nil {
				return
			}
			last.Store(max(last.Load(), Instant(binary.LittleEndian.Uint64(one))))
		}
	}()
	for Now() < last.Load().Add(lives) {
		<-time.After(looks)
	}
	ending.Store(true)
	_ = syscall.Kill(-1, syscall.SIGKILL) // before what may hang: everything but this process
	told := make(chan struct{})
	go func() {
		fmt.Fprintf(os.Stderr, "the container ends: nothing was acknowledged for %v\n", lives)
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(tellTime):
	}
	syscall.Exit(overdue)
}

// ending is set when supervise ends process 1.
var ending atomic.Bool

// tellTime is how long a file system may take to store why the container has ended.
const tellTime = time.Second

// overdue is the status with which process 1 ends then.
const overdue = 125
