package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/terminal"
)

const (
	// maxLine is how many bytes a line may have: the daemon takes inputs of 10 MiB, and JSON may escape some of it.
	maxLine = 16 << 20
	// mcpLastWords is how long requests that came before the end of input may still be answered, so that a list of them
	// can be piped in.
	mcpLastWords = 2 * time.Second
)

// errLineTooLong is the error for a line that was skipped.
var errLineTooLong = fmt.Errorf("the line has more than %d bytes", maxLine)

// A wire is the SDK's transport and its only connection. Read is called by one goroutine, the rest by any.
type wire struct {
	in    *bufio.Reader
	ended chan struct{} // closed when nothing more comes, or nothing more can be said
	once  sync.Once
	queue []json.RawMessage // of a batch

	mu   sync.Mutex
	out  io.Writer
	open map[jsonrpc.ID]uint64 // requests without an answer, by their places; 0: it is not a call
	idle *sync.Cond            // open has become empty

	order order
}

func newWire(in io.Reader, out io.Writer) *wire {
	w := &wire{in: bufio.NewReaderSize(in, 64<<10), out: out, ended: make(chan struct{}), open: map[jsonrpc.ID]uint64{}}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// Connect returns the connection, which is the transport itself.
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID is empty: a pipe has one session.
func (w *wire) SessionID() string { return "" }

// Close ends the connection. A Read that waits for standard input goes on waiting: the process ends first.
func (w *wire) Close() error {
	w.once.Do(func() { close(w.ended) })
	return nil
}

// Read returns the next message.
func (w *wire) Read(context.Context) (jsonrpc.Message, error) {
	for {
		text, err := w.next()
		var message jsonrpc.Message
		switch {
		case errors.Is(err, errLineTooLong):
			err = w.refuse(nil, jsonrpc.CodeParseError, err)
		case err != nil:
			w.lastWords()
			_ = w.Close()
			return nil, io.EOF
		case !json.Valid(text):
			err = w.refuse(nil, jsonrpc.CodeParseError, errors.New("the line is no JSON: a message is one line of it"))
		default:
			if message, err = jsonrpc.DecodeMessage(text); err != nil {
				err = fmt.Errorf("the line is no JSON-RPC message: %w", err)
			} else if err = w.note(message); err == nil {
				return message, nil
			}
			err = w.refuse(text, jsonrpc.CodeInvalidRequest, err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// next returns the text of the next message: a line, or a part of a batch, which an old version of the protocol has.
func (w *wire) next() (json.RawMessage, error) {
	for len(w.queue) == 0 {
		line, err := w.line()
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, errLineTooLong), err != nil && len(line) == 0:
			return nil, err
		case len(line) == 0:
			continue
		case line[0] == '[' && json.Unmarshal(line, &w.queue) == nil && len(w.queue) > 0:
			continue
		}
		return line, nil
	}
	text := w.queue[0]
	w.queue = w.queue[1:]
	return text, nil
}

// line reads up to the next line break, or to the end of input, which is its error then. A line that is too long is
// read to its end and dropped.
func (w *wire) line() ([]byte, error) {
	var line []byte
	for long := false; ; {
		part, err := w.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long:
			return nil, errLineTooLong
		default:
			return line, err
		}
	}
}

// refuse answers what is not a message. It has the id of the request that text was meant to be, if it has one.
func (w *wire) refuse(text json.RawMessage, code int, why error) error {
	var meant struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	_ = json.Unmarshal(text, &meant)
	id := json.RawMessage("null")
	if kind := append(meant.ID, 'n')[0]; meant.Method != "" && (kind == '"' || kind == '-' || kind >= '0' && kind <= '9') {
		id = meant.ID
	}
	answer, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": terminal.VisibleText(why.Error())},
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put(answer)
}

// note records that a request came, and assigns a call its place. It returns an error for a request whose id belongs to
// another one that has no answer yet.
func (w *wire) note(message jsonrpc.Message) error {
	request, is := message.(*jsonrpc.Request)
	if !is || !request.IsCall() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.open[request.ID]; taken {
		return fmt.Errorf("the id %v belongs to a request that has no answer yet", request.ID.Raw())
	}
	w.open[request.ID] = w.order.admit(request)
	return nil
}

// Write sends one message as one line.
func (w *wire) Write(_ context.Context, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if response, is := message.(*jsonrpc.Response); is {
		w.order.pass(w.open[response.ID]) // if it was refused before it could be sent
		delete(w.open, response.ID)
		if len(w.open) == 0 {
			w.idle.Broadcast()
		}
	}
	return w.put(text)
}

// put writes one line; mu is held.
func (w *wire) put(line []byte) error {
	_, err := w.out.Write(append(line, '\n'))
	return err
}

// lastWords waits until each request has its answer, for a while.
func (w *wire) lastWords() {
	late := false
	timer := time.AfterFunc(mcpLastWords, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		late = true
		w.idle.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.open) > 0 && !late {
		w.idle.Wait()
	}
}
