//go:build !no_mcp

// The connection to a server that is a process: messages as lines on its standard input and output.
// Everything else that the server prints there is counted and ignored.

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	// maxLine is the longest accepted message, in bytes. It is the SDK's own limit.
	maxLine = 16 << 20
	// parting is how long a server may take to end by itself after its input is closed.
	parting = time.Second
	// maxStderr is how much of the end of the standard error is kept for messages, in bytes.
	maxStderr = 4 << 10
	// maxAsked is how many requests of the server may be open. Nothing more is read from it
	// meanwhile.
	maxAsked = 32
	// notes and noteBurst are how many notifications are accepted in a second, and at once. The
	// rest is dropped: a newer one follows.
	notes, noteBurst = 200, 400
)

// basics are the variables of the client's environment that each server gets: without them most
// programs do not start.
var basics = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "TZ"}

// A stdio is a process and the transport to it.
type stdio struct {
	process  *sandbox.Process
	stdin    *os.File
	lines    chan []byte   // its output, one line each, without the line's end
	outgoing chan outgoing // messages to the process
	asked    chan struct{} // one slot for each of its open requests
	open     context.Context
	end      context.CancelFunc // ends open: the process has ended and all its lines were read, or Close was called
	loops    sync.WaitGroup
	errs     sandbox.Ending
	news     *rate.Limiter
	junk     func(line []byte) // receives lines that are not messages
	relist   func()            // called if a notification of changed tools was dropped
	queue    []jsonrpc.Message // the rest of a batch; only Read uses it
	dropped  atomic.Int64
	began    time.Time
	heard    atomic.Int64 // when it last printed a line, in nanoseconds after began
}

type outgoing struct {
	line []byte
	done chan error // of size 1
}

// startProcess starts the server of an entry. The caller closes it.
func startProcess(e Entry, host Host, junk func([]byte), relist func()) (*stdio, error) {
	if e.Command == "" {
		return nil, errors.New("its entry names no command")
	}
	box := host.Open(e)
	if box == nil {
		return nil, errors.New("no session wants it any more")
	}
	c := sandbox.Command{ID: "mcp", Args: append([]string{e.Command}, e.Args...), Dir: host.Dir, Env: environ(e, host, box)}
	var err error
	if c.Path, err = pathname.Program(e.Command, host.Dir, c.Env); err != nil {
		return nil, err
	}
	near, far, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer near.Close()
	s := &stdio{
		stdin: far, lines: make(chan []byte), outgoing: make(chan outgoing), asked: make(chan struct{}, maxAsked),
		errs: sandbox.Ending{Most: maxStderr}, news: rate.NewLimiter(notes, noteBurst), junk: junk, relist: relist, began: time.Now(),
	}
	s.open, s.end = context.WithCancel(context.Background())
	out := &splitter{give: s.take, refuse: junk}
	c.Stdin, c.Stdout, c.Stderr = near, out, &s.errs
	if s.process, err = box.Start(c); err != nil {
		s.end()
		_ = far.Close()
		return nil, err
	}
	s.loops.Go(s.write)
	s.loops.Go(func() {
		<-s.process.Done()
		out.flush()
		s.end()
	})
	return s, nil
}

// environ returns the environment of the process.
func environ(e Entry, host Host, box *sandbox.Box) []string {
	var base []string
	for _, entry := range host.Environ {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(basics, name) {
			base = append(base, entry)
		}
	}
	return box.Environ(base, e.Env...)
}

// take passes a line to the reader. It is called from one goroutine.
func (s *stdio) take(line []byte) {
	s.heard.Store(int64(time.Since(s.began)))
	select {
	case s.lines <- line:
	case <-s.open.Done(): // nothing reads after that
	}
}

// write sends one message after the other. A message is always sent completely.
func (s *stdio) write() {
	for {
		select {
		case m := <-s.outgoing:
			_, err := s.stdin.Write(m.line)
			m.done <- err
		case <-s.open.Done():
			return
		}
	}
}

// Connect implements sdk.Transport. It ignores the context: only Close ends the connection.
func (s *stdio) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SessionID implements sdk.Connection.
func (s *stdio) SessionID() string { return "" }

// Read implements sdk.Connection: it returns the next valid message.
func (s *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(s.queue) > 0 {
			message := s.queue[0]
			s.queue = s.queue[1:]
			if s.admits(ctx, message) {
				return message, nil
			}
			continue
		}
		select {
		case line := <-s.lines:
			if s.queue = messages(line); len(s.queue) == 0 && len(bytes.TrimSpace(line)) > 0 {
				s.junk(line)
			}
		case <-s.open.Done():
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// admits reports whether a message is passed on: of too many notifications only some are, and a
// request waits for a free slot.
func (s *stdio) admits(ctx context.Context, message jsonrpc.Message) bool {
	request, ok := message.(*jsonrpc.Request)
	switch {
	case !ok || request.Method == "notifications/cancelled":
		return true
	case !request.IsCall():
		if s.news.Allow() {
			return true
		}
		if s.dropped.Add(1); request.Method == "notifications/tools/list_changed" {
			s.relist()
		}
		return false
	}
	select {
	case s.asked <- struct{}{}:
		return true
	case <-s.open.Done():
	case <-ctx.Done():
	}
	return false
}

// messages parses a line: one message, or a batch. It returns nil if the line is neither.
func messages(line []byte) []jsonrpc.Message {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return nil
	}
	parts := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &parts); err != nil {
			return nil
		}
	}
	var all []jsonrpc.Message
	for _, part := range parts {
		message, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return nil
		}
		all = append(all, message)
	}
	return all
}

// Write implements sdk.Connection. It waits until the message is in the pipe, or ctx ends.
func (s *stdio) Write(ctx context.Context, message jsonrpc.Message) error {
	if _, answer := message.(*jsonrpc.Response); answer {
		select {
		case <-s.asked:
		default: // an answer to no request: the SDK's own, to an invalid message
		}
	}
	line, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	m := outgoing{line: append(line, '\n'), done: make(chan error, 1)}
	select {
	case s.outgoing <- m:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.open.Done():
		return io.EOF
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.open.Done():
		return io.EOF
	}
}

// Close implements sdk.Connection: it closes the server's input, waits for a second, and kills what
// is left. Nothing of the server runs when Close returns.
func (s *stdio) Close() error {
	s.end()
	_ = s.stdin.Close()
	patience := time.NewTimer(parting)
	defer patience.Stop()
	select {
	case <-s.process.Done():
	case <-patience.C:
		s.process.Stop()
	}
	s.loops.Wait()
	return nil
}

// why returns how the process has ended. It must be called after its end.
func (s *stdio) why() string {
	select {
	case <-s.process.Done():
	default:
		return "the daemon ended it"
	}
	exit := s.process.Wait()
	var text string
	switch {
	case exit.Signal != "":
		text = "its process was ended by " + exit.Signal
	case exit.Code < 0:
		text = "its process ended in an unknown way"
	default:
		text = fmt.Sprintf("its process ended with exit code %d", exit.Code)
	}
	if last := s.complaint(); last != "" {
		text += ", and its last output on standard error was: " + last
	}
	return text
}

// complaint returns at most five of the last lines of the standard error as one line for a message.
func (s *stdio) complaint() string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(clean(s.errs.String())), "\n")
	return ellipsis.Runes(strings.Join(lines[max(0, len(lines)-most):], " | "), 1000)
}
