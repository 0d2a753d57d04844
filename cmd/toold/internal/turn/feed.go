package turn

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/daemon/dialect"
)

// An Arrival is the part of a message that was read since the last one.
type Arrival struct {
	Format dialect.Format
	ID     string // the API's name of the message; may be empty
	Uses   []Use
	End    *MessageEnd // nil: more may come
}

// A MessageEnd is how a message ended: as it should, or with an error of the input or a [*dialect.Failure].
type MessageEnd struct {
	dialect.Ending
	Err error
}

// Failure returns the error that the model's API sent in place of the rest of the message; nil: none.
func (e *MessageEnd) Failure() (failure *dialect.Failure) {
	if e != nil {
		errors.As(e.Err, &failure)
	}
	return failure
}

// A Feed reads a message from a file on a goroutine of its own. The caller of NewFeed closes it.
type Feed struct {
	Arrivals chan Arrival // the last one has an end
	file     *os.File
	wanted   dialect.Format // as the message is said to be; Silent: it is found out
	wake     *os.File       // readable when the feed is to be given up
	giveUp   *os.File
	done     chan struct{}
}

// NewFeed begins to read file, which stays the caller's. The message is of the format wanted; Silent: that is found out.
func NewFeed(file *os.File, wanted dialect.Format) (*Feed, error) {
	wake, giveUp, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f := &Feed{Arrivals: make(chan Arrival), file: file, wanted: wanted, wake: wake, giveUp: giveUp, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.read()
	}()
	return f, nil
}

// Close stops reading, and drops what was read and not taken.
func (f *Feed) Close() {
	_ = f.giveUp.Close()
	for {
		select {
		case <-f.Arrivals:
		case <-f.done:
			_ = f.wake.Close()
			return
		}
	}
}

// feedBytes is how much is read at a time. Ours: more than most messages have.
const feedBytes = 64 << 10

func (f *Feed) read() {
	var message dialect.Reader
	var buffer [feedBytes]byte
	for {
		n, err := f.next(buffer[:])
		uses, wrong := message.Feed(buffer[:n])
		a, misfit := f.arrival(&message, uses)
		wrong = cmp.Or(wrong, misfit)
		switch {
		case wrong != nil:
			a.End = &MessageEnd{Err: wrong}
		case errors.Is(err, io.EOF):
			rest, ending, wrong := message.End()
			a, misfit = f.arrival(&message, append(uses, rest...))
			wrong = cmp.Or(wrong, misfit)
			a.End = &MessageEnd{ending, wrong}
		case err != nil:
			a.End = &MessageEnd{Err: err}
		}
		if len(a.Uses) > 0 || a.End != nil {
			f.Arrivals <- a
		}
		if a.End != nil {
			return
		}
	}
}

// arrival returns what has been read. The error means that it is not of the format that is wanted.
func (f *Feed) arrival(message *dialect.Reader, uses []dialect.Use) (Arrival, error) {
	format, fits := f.wanted.As(message.Format())
	if !fits && message.Format() != dialect.Silent {
		return Arrival{}, fmt.Errorf("this is %s, and not %s", format, f.wanted)
	}
	return Arrival{Format: format, ID: message.ID(), Uses: UsesOf(uses, format)}, nil
}

// next reads what is there, or ends with os.ErrClosed when the feed is given up.
func (f *Feed) next(buffer []byte) (int, error) {
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
