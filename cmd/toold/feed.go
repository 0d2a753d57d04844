// A model's message as it comes in: read on a goroutine of its own, so that each tool use can be sent as soon as it is
// complete. It does not know what becomes of the tool uses.

package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/daemon/dialect"
)

// An arrival is what has come of a message since the last one.
type arrival struct {
	format dialect.Format
	id     string // the API's name of the message; may be empty
	uses   []use
	end    *messageEnd // nil: more may come
}

// A messageEnd is how a message ended: as it should, or with an error of the input or a [*dialect.Failure].
type messageEnd struct {
	dialect.Ending
	err error
}

// failure is what the model's API said in place of the rest of the message; nil: it did not.
func (e *messageEnd) failure() (failure *dialect.Failure) {
	if e != nil {
		errors.As(e.err, &failure)
	}
	return failure
}

// A feed reads a message from a file. Whoever made it closes it.
type feed struct {
	arrivals chan arrival // the last one has an end
	file     *os.File
	wake     *os.File // readable when the feed is to be given up
	giveUp   *os.File
	done     chan struct{}
}

func newFeed(file *os.File) (*feed, error) {
	wake, giveUp, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f := &feed{arrivals: make(chan arrival), file: file, wake: wake, giveUp: giveUp, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.read()
	}()
	return f, nil
}

// close stops reading, and drops what was read and not taken.
func (f *feed) close() {
	_ = f.giveUp.Close()
	for {
		select {
		case <-f.arrivals:
		case <-f.done:
			_ = f.wake.Close()
			return
		}
	}
}

// feedBytes is how much is read at a time. Ours: more than most messages have.
const feedBytes = 64 << 10

func (f *feed) read() {
	var message dialect.Reader
	var buffer [feedBytes]byte
	for {
		n, err := f.next(buffer[:])
		uses, wrong := message.Feed(buffer[:n])
		a := arrival{format: message.Format(), id: message.ID(), uses: usesOf(uses)}
		switch {
		case wrong != nil:
			a.end = &messageEnd{err: wrong}
		case errors.Is(err, io.EOF):
			rest, ending, wrong := message.End()
			a.format, a.id, a.uses = message.Format(), message.ID(), append(a.uses, usesOf(rest)...)
			a.end = &messageEnd{ending, wrong}
		case err != nil:
			a.end = &messageEnd{err: err}
		}
		if len(a.uses) > 0 || a.end != nil {
			f.arrivals <- a
		}
		if a.end != nil {
			return
		}
	}
}

// next reads what is there, or ends with os.ErrClosed when the feed is given up.
func (f *feed) next(buffer []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(f.file.Fd()), Events: unix.POLLIN}, {Fd: int32(f.wake.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case fds[1].Revents != 0:
			return 0, os.ErrClosed
		default:
			return f.file.Read(buffer)
		}
	}
}
