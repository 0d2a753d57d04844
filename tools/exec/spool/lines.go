// Writing two channels at the same time without mixing their lines.

package spool

import (
	"bytes"
	"time"
)

const (
	// maxHeld is how many bytes of one channel wait for the end of a line of the other. The number
	// is our own: what is read from a pipe at once.
	maxHeld = 64 << 10
	// maxDelay is how long they wait. The number is our own: shorter than what a user who watches
	// would notice.
	maxDelay = time.Second
)

// A merge is the data that waits in an Output for the end of the other channel's line. The Output's
// mu guards it. A line that has begun is never held back itself, so a prompt without a line end
// appears at once.
type merge struct {
	open  bool    // the last written byte did not end a line
	of    Channel // the channel of that line
	held  []byte  // of the other channel
	timer *time.Timer
}

// writeLines appends p to channel ch without interrupting a line of the other channel, within the
// limits maxHeld and maxDelay. mu is held.
func (o *Output) writeLines(ch Channel, p []byte) error {
	l := &o.merge
	switch {
	case l.open && ch != l.of && len(l.held)+len(p) <= maxHeld:
		switch { // to limit the delay
		case len(l.held) > 0:
		case l.timer == nil:
			l.timer = time.AfterFunc(maxDelay, o.Flush)
		default:
			l.timer.Reset(maxDelay)
		}
		l.held = append(l.held, p...)
		return nil
	case l.open && ch != l.of:
		if err := o.release(); err != nil {
			return err
		}
		return o.appendOpen(ch, p)
	case len(l.held) == 0:
		return o.appendOpen(ch, p)
	}
	end := bytes.LastIndexByte(p, '\n') + 1
	if end == 0 {
		return o.append(ch, p)
	}
	if err := o.append(ch, p[:end]); err != nil {
		return err
	}
	return o.turn(ch, p[end:])
}

// turn writes what is held, after a line of ch has ended, and then the beginning of the next line
// of ch. An incomplete line of the other channel waits on, unless nothing of ch follows.
func (o *Output) turn(ch Channel, next []byte) error {
	l := &o.merge
	if len(next) == 0 {
		return o.release()
	}
	whole := bytes.LastIndexByte(l.held, '\n') + 1
	if whole > 0 {
		if err := o.append(1-ch, l.held[:whole]); err != nil {
			return err
		}
	}
	l.held = l.held[:copy(l.held, l.held[whole:])]
	return o.appendOpen(ch, next)
}

// release writes what is held. mu is held.
func (o *Output) release() error {
	l := &o.merge
	held, ch := l.held, 1-l.of
	if len(held) == 0 {
		return nil
	}
	l.held = held[:0]
	return o.appendOpen(ch, held)
}

// appendOpen appends p and records whether it ends a line.
func (o *Output) appendOpen(ch Channel, p []byte) error {
	o.merge.open, o.merge.of = p[len(p)-1] != '\n', ch
	return o.append(ch, p)
}

// Flush writes what waits for the end of a line on the other channel. The next write returns any
// error.
func (o *Output) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

func (o *Output) flush() {
	if o.fault == nil && len(o.merge.held) > 0 {
		o.fault = o.release()
		o.wake()
	}
}
