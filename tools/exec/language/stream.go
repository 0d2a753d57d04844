//go:build !no_lsp

// Messages to and from a server's pipes, framed as the base protocol defines. Writing never waits:
// what the server does not read is queued up to a limit; past the limit the server counts as hung.

package language

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

var (
	errClogged = errors.New("it does not read what it is sent")
	errFraming = errors.New("it does not keep to the protocol")
)

// A stream is one server's. It is the ObjectStream of the connection.
type stream struct {
	in    *bufio.Reader
	out   io.WriteCloser
	heard atomic.Uint64 // messages so far
	ended chan struct{} // closed when nothing more is read; failure is then set

	failure error // the error that ended reading

	mu     sync.Mutex
	queue  [][]byte
	size   int // bytes in queue, with those that are being written
	closed bool
	more   sync.Cond // there is something in queue, or closed
}

func newStream(in io.Reader, out io.WriteCloser) *stream {
	s := &stream{in: bufio.NewReaderSize(in, maxHeader), out: out, ended: make(chan struct{})}
	s.more.L = &s.mu
	return s
}

// WriteObject queues a message.
func (s *stream) WriteObject(message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	frame := append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return io.ErrClosedPipe
	case s.size+len(frame) > maxOutbox:
		return errClogged
	}
	s.queue, s.size = append(s.queue, frame), s.size+len(frame)
	s.more.Signal()
	return nil
}

// drain writes the queue until the stream is closed or the server reads nothing more.
func (s *stream) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 && !s.closed {
			s.more.Wait()
		}
		if s.closed {
			return
		}
		frame := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		_, err := s.out.Write(frame)
		s.mu.Lock()
		if s.size -= len(frame); err != nil {
			return
		}
	}
}

// ReadObject reads the next message.
func (s *stream) ReadObject(into any) error {
	body, err := readFrame(s.in)
	if err == nil {
		s.heard.Add(1)
		err = decode(body, into)
	}
	if err != nil {
		s.failure = err
		close(s.ended) // the connection reads nothing after an error
	}
	return err
}

// decode rejects what the library would misread: a message that is not an object.
func decode(body []byte, into any) error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("%w: a message is not a JSON object", errFraming)
	}
	if parts(body) > maxParts {
		return fmt.Errorf("%w: a message of more than %d parts", errFraming, maxParts)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %w", errFraming, err)
	}
	return nil
}

// parts returns an upper limit of the objects, lists and elements in a message. The smallest part
// takes a hundred times its bytes when it is decoded.
func parts(body []byte) int {
	return bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("[")) + bytes.Count(body, []byte(","))
}

// readFrame reads one message. Its memory grows with what was received, not with the announced
// length.
func readFrame(in *bufio.Reader) ([]byte, error) {
	length, err := readHeader(in)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	n, err := io.Copy(&body, io.LimitReader(in, length))
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	return body.Bytes(), err
}

// readHeader reads the lines before a message, and returns its length.
func readHeader(in *bufio.Reader) (int64, error) {
	length := int64(-1)
	for left := maxHeader; ; {
		line, err := in.ReadSlice('\n')
		switch left -= len(line); {
		case errors.Is(err, bufio.ErrBufferFull) || left < 0:
			return 0, fmt.Errorf("%w: the header of a message has more than %d bytes", errFraming, maxHeader)
		case err != nil:
			return 0, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, found := strings.Cut(text, ":")
		if !found {
			return 0, fmt.Errorf("%w: %.60q is not a header line", errFraming, text)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || length <= 0 || length > maxMessage {
			return 0, fmt.Errorf("%w: a message of %.30q bytes; the limit is %d", errFraming, value, maxMessage)
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("%w: a message without Content-Length", errFraming)
	}
	return length, nil
}

// Close closes the server's standard input, and ends drain.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.more.Signal()
	return s.out.Close()
}
