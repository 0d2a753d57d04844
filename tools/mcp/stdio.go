//go:build !no_mcp

// The connection to a server that is a process: messages as lines on its standard input and output. Whatever else the server
// prints there is counted and left out. It does not know what the messages mean.

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/toold/toold/tools/pathname"
	"github.com/toold/toold/tools/sandbox"
)

const (
	// maxLine is the longest message that is taken, in bytes. It is the SDK's own limit.
	maxLine = 16 << 20
	// parting is how long a server may take to end by itself once its input is closed.
	parting = time.Second
	// maxStderr is how much of the end of the standard error is kept for messages.
	maxStderr = 4 << 10
	// maxAsked is how many requests of the server may be open. It is read no further while they are.
	maxAsked = 32
	// notes and noteBurst are how many notifications are taken in a second, and at once. The rest is dropped: they are news,
	// and the newest is on its way.
	notes, noteBurst = 200, 400
)

// basics are the names of the client's environment that each server gets: without them most programs do not start.
var basics = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "TZ"}

// A stdio is a process and the transport to it.
type stdio struct {
	process  *sandbox.Process
	stdin    *os.File
	lines    chan []byte   // what it prints, one line each, without the line's end
	outgoing chan outgoing // what it is told
	asked    chan struct{} // a place for each request of its own that is open
	ended    chan struct{} // closed: it has ended, and all its lines were given
	closed   chan struct{}
	once     sync.Once
	loops    sync.WaitGroup
	errs     tail
	news     *rate.Limiter
	junk     func(line []byte) // hears what is no message
	relist   func()            // hears that the tools have changed, where the notification was dropped
	queue    []jsonrpc.Message // of a batch, not yet given; Read's own
	dropped  atomic.Int64
	began    time.Time
	heard    atomic.Int64 // when it last printed a line, in nanoseconds after began
}

type outgoing struct {
	line []byte
	done chan error // of size 1
}

// startProcess starts the server of an entry. It is the caller's to close.
func startProcess(e Entry, host Host, junk func([]byte), relist func()) (*stdio, error) {
	box := host.Open(e)
	if box == nil {
		return nil, errors.New("no session wants it any more")
	}
	c := sandbox.Command{ID: "mcp", Args: append([]string{e.Command}, e.Args...), Dir: host.Dir, Env: environ(e, host, box)}
	var err error
	if c.Path, err = find(e.Command, host.Dir, c.Env); err != nil {
		return nil, err
	}
	near, far, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer near.Close()
	s := &stdio{
		stdin: far, lines: make(chan []byte), outgoing: make(chan outgoing), asked: make(chan struct{}, maxAsked),
		ended: make(chan struct{}), closed: make(chan struct{}), errs: tail{most: maxStderr},
		news: rate.NewLimiter(notes, noteBurst), junk: junk, relist: relist, began: time.Now(),
	}
	out := &splitter{give: s.take, refuse: junk}
	c.Stdin, c.Stdout, c.Stderr = near, out, &s.errs
	if s.process, err = box.Start(c); err != nil {
		_ = far.Close()
		return nil, err
	}
	s.loops.Add(2)
	go s.write()
	go s.watch(out)
	return s, nil
}

// environ is what the process gets.
func environ(e Entry, host Host, box *sandbox.Box) []string {
	var base []string
	for _, entry := range host.Environ {
		name, _, _ := strings.Cut(entry, "=")
		for _, basic := range basics {
			if name == basic {
				base = append(base, entry)
			}
		}
	}
	return box.Environ(base, e.Env...)
}

// find returns the path of a program.
func find(program, dir string, environ []string) (string, error) {
	if program == "" {
		return "", errors.New("its entry names no command")
	}
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return program, nil
	}
	for _, entry := range environ {
		list, ok := strings.CutPrefix(entry, "PATH=")
		for _, place := range filepath.SplitList(list) {
			if path := filepath.Join(place, program); ok && filepath.IsAbs(place) && pathname.Executable(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the program %q is not in PATH", program)
}

// take hands a line to who reads. It is called from one goroutine.
func (s *stdio) take(line []byte) {
	s.heard.Store(int64(time.Since(s.began)))
	select {
	case s.lines <- line:
	case <-s.closed: // what comes after that is of no use to anybody
	}
}

// watch waits for the end of the process.
func (s *stdio) watch(out *splitter) {
	defer s.loops.Done()
	<-s.process.Done()
	out.flush()
	close(s.ended)
}

// write tells the process one message after the other. A message that is begun is written to its end.
func (s *stdio) write() {
	defer s.loops.Done()
	for {
		select {
		case m := <-s.outgoing:
			_, err := s.stdin.Write(m.line)
			m.done <- err
		case <-s.closed:
			return
		}
	}
}

// Connect implements sdk.Transport. The context is not kept: Close alone ends the connection.
func (s *stdio) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SessionID implements sdk.Connection.
func (s *stdio) SessionID() string { return "" }

// Read implements sdk.Connection: it gives the next message that is one.
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
		case <-s.ended:
			return nil, io.EOF
		case <-s.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// admits reports that a message is to be given: of too many notifications only some are, and a request waits until there is
// room for it.
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
	case <-s.closed:
	case <-s.ended:
	case <-ctx.Done():
	}
	return false
}

// messages reads a line: one message, or a batch of some. What is none gives nil.
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

// Write implements sdk.Connection. It waits until the message is in the pipe, and no longer than ctx.
func (s *stdio) Write(ctx context.Context, message jsonrpc.Message) error {
	if _, answer := message.(*jsonrpc.Response); answer {
		select {
		case <-s.asked:
		default: // an answer to what was not asked: the SDK's own, to a message that was none
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
	case <-s.ended:
		return io.EOF
	case <-s.closed:
		return io.EOF
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return io.EOF
	}
}

// Close implements sdk.Connection: it closes the server's input, gives it a second, and ends what is left of it. Nothing of it
// runs when Close returns.
func (s *stdio) Close() error {
	s.once.Do(func() {
		close(s.closed)
		_ = s.stdin.Close()
	})
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

// why returns how the process has ended; it is asked after its end.
func (s *stdio) why() string {
	select {
	case <-s.process.Done():
	default:
		return "it was ended here"
	}
	exit := s.process.Wait()
	var text string
	switch {
	case exit.Signal != "":
		text = "its process was ended by " + exit.Signal
	case exit.Code < 0:
		text = "its process ended in a way that the kernel did not tell"
	default:
		text = fmt.Sprintf("its process ended with exit code %d", exit.Code)
	}
	if last := s.errs.text(); last != "" {
		text += ", and the last that it printed to its standard error was: " + last
	}
	return text
}
