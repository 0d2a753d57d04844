// One output, while it is written.

package spool

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// A Channel is one of the two outputs of a process.
type Channel uint8

// The channels of a process.
const (
	Stdout Channel = iota
	Stderr
	channels = 2
)

// An Output is the output of one call. One or two goroutines write to it, and any number read it
// while it grows and after it has ended. It holds no bytes in memory: they go to the file as they
// come, and readers read the file.
type Output struct {
	base   string
	limit  int64
	folder *folder // nil: it has ended

	mu       sync.Mutex
	raw, idx *os.File // open while the output grows, each from the first byte that needs it
	sizes    channelSizes
	lines    int64   // line ends in all of it; -1: unknown
	merge    merge   // what Writer's writers hold back
	runs     int64   // records in the index
	current  Channel // of the last byte
	readers  int     // that are using the files now
	ended    bool
	fault    error         // why no more is accepted
	changed  chan struct{} // closed at the next change; nil while nothing waits
}

var newline = []byte{'\n'}

// Path returns the absolute path of the raw file: the bytes of both channels in the observed order.
// The file does not exist before the first byte.
func (o *Output) Path() string { return o.base + rawSuffix }

// write has how append p to channel ch. If it returns an error, what fitted is kept and counted, and
// every later write returns the same error: ErrLimit, ErrFull, ErrGone, or another error of the file
// system.
func (o *Output) write(ch Channel, p []byte, how func(Channel, []byte) error) error {
	if len(p) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault == nil {
		o.fault = how(ch, p)
		o.wake()
	}
	return o.fault
}

// append writes the index record, if ch is not the channel of the last byte, and then the bytes.
func (o *Output) append(ch Channel, p []byte) error {
	if o.ended {
		return os.ErrClosed
	}
	var over, err error
	if o.raw == nil {
		o.raw, err = createExclusive(o.base + rawSuffix)
	}
	if err == nil && ch != o.current {
		err = o.begin(ch)
	}
	if err != nil {
		return err
	}
	if room := o.limit - o.used(); int64(len(p)) > room {
		p, over = p[:max(room, 0)], ErrLimit
	}
	room, short := o.folder.take(int64(len(p)))
	if short != nil {
		p, over = p[:room], short
	}
	n, err := o.raw.Write(p)
	o.folder.free(room - int64(n))
	o.sizes[ch] += int64(n)
	o.lines += int64(bytes.Count(p[:n], newline)) // now, while they are in the processor's cache
	if err != nil {
		return classify(err)
	}
	return over
}

// begin starts a run of ch in the index.
func (o *Output) begin(ch Channel) (err error) {
	if o.idx == nil {
		if o.idx, err = createExclusive(o.base + indexSuffix); err != nil {
			return err
		}
	}
	if o.used()+recordSize > o.limit {
		return ErrLimit
	}
	if room, err := o.folder.take(recordSize); err != nil {
		o.folder.free(room)
		return err
	}
	buf := run{channel: ch, start: o.sizes.total(), offset: o.sizes[ch]}.encode()
	if _, err = o.idx.WriteAt(buf[:], o.runs*recordSize); err != nil {
		return classify(err)
	}
	o.runs++
	o.current = ch
	return nil
}

func (o *Output) used() int64 { return o.sizes.total() + o.runs*recordSize }

// wake wakes everything that waits for a change.
func (o *Output) wake() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// Changed returns a channel that is closed when more bytes have come or the output has ended. To
// miss nothing, call Changed before reading.
func (o *Output) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return closedChannel
	}
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Size returns how many bytes have come on ch.
func (o *Output) Size(ch Channel) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sizes[ch]
}

// Total returns how many bytes have come on both channels.
func (o *Output) Total() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sizes.total()
}

// Ended reports whether the output has ended.
func (o *Output) Ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

// Close ends the output. It can still be read. Closing twice does nothing.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	before := o.fault
	o.flush()
	o.ended = true
	o.wake()
	o.folder.grows(o.base, false)
	err := o.closeFiles()
	if before == nil && o.fault != nil {
		err = o.fault
	}
	return err
}

// Hold keeps the files open beyond Close, until release is called. So what is read in between opens
// nothing. The error of release is one that Close would have returned.
func (o *Output) Hold() (release func() error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers++
	return func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.readers--
		return o.closeFiles()
	}
}

// closeFiles closes the files of an output that has ended, when no reader uses them.
func (o *Output) closeFiles() (err error) {
	if !o.ended || o.readers > 0 {
		return nil
	}
	for _, f := range []*os.File{o.raw, o.idx} {
		if f == nil {
			continue
		}
		if e := f.Close(); e != nil && err == nil {
			err = classify(e)
		}
	}
	o.raw, o.idx = nil, nil
	return err
}

// Writer returns an io.Writer for ch, for copying a pipe. Concurrent writes to the writers of both
// channels do not interrupt each other's lines, within a delay of 1 s and 64 KiB. Flush and Close
// end the delay. What does not fit is an error, as of write.
func (o *Output) Writer(ch Channel) io.Writer { return channelWriter{o, ch} }

type channelWriter struct {
	output  *Output
	channel Channel
}

func (w channelWriter) Write(p []byte) (int, error) {
	if err := w.output.write(w.channel, p, w.output.writeLines); err != nil {
		return 0, err
	}
	return len(p), nil
}
