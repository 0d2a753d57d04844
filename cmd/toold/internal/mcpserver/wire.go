package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/cmd/toold/internal/lines"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A wire is the SDK's transport and its only connection. What costs goes past the SDK: calls are passed to a receiver in the order
// in which they come, and their answers come from there. Read is called by one goroutine, the rest by any.
type wire struct {
	in       *lines.Reader
	queue    []json.RawMessage // of a batch
	receiver receiver
	ended    chan struct{} // closed when nothing more comes, or nothing more can be said

	mu       sync.Mutex
	changed  *sync.Cond           // what follows has changed
	open     map[jsonrpc.ID]*call // requests without an answer; nil: it is the SDK's
	greeting jsonrpc.ID           // of the newest request to initialize
	greeted  bool                 // the session is initialized, so there may be calls
	closed   bool                 // so is ended
	out      io.Writer
	lines    []line // to be written
	writing  bool   // some are on their way
}

// A receiver takes what a client sends beside what the SDK serves. No method blocks.
type receiver interface {
	called(c *call)
	cancelled(c *call) // its result is dropped
	rootsChanged()
}

func newWire(in io.Reader, out io.Writer, to receiver) *wire {
	w := &wire{in: lines.NewReader(in), out: out, receiver: to, ended: make(chan struct{}), open: map[jsonrpc.ID]*call{}}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// Connect returns the connection, which is the transport itself.
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID is empty: a pipe has one session.
func (w *wire) SessionID() string { return "" }

// Close ends the connection. A Read that waits for standard input goes on waiting: the process ends first.
func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.ended)
		w.changed.Broadcast()
	}
	return nil
}

// Read returns the next message for the SDK.
func (w *wire) Read(context.Context) (jsonrpc.Message, error) {
	for {
		w.awaitRoom()
		text, err := w.next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			w.refuse(nil, jsonrpc.CodeParseError, err)
			continue
		case err != nil:
			w.lastWords()
			_ = w.Close()
			return nil, io.EOF
		case !json.Valid(text):
			w.refuse(nil, jsonrpc.CodeParseError, errors.New("the line is not JSON: a message is one line of it"))
			continue
		}
		message, err := w.take(text)
		if err != nil {
			w.refuse(text, jsonrpc.CodeInvalidRequest, err)
		} else if message != nil {
			return message, nil
		}
	}
}

// next returns the text of the next message: a line, or a part of a batch, which an old version of the protocol has.
func (w *wire) next() (json.RawMessage, error) {
	for len(w.queue) == 0 {
		line, err := w.in.Next()
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, lines.ErrTooLong), err != nil && len(line) == 0:
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

// take passes a message to the receiver if it is one of the receiver's, and returns those that are the SDK's. A request whose id
// belongs to another one that has no answer yet is an error, as is what is not a message.
func (w *wire) take(text json.RawMessage) (jsonrpc.Message, error) {
	if id, c := w.callOf(text); c != nil && w.isGreeted() {
		return nil, w.admit(id, c)
	}
	message, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, fmt.Errorf("the line is not a JSON-RPC message: %w", err)
	}
	request, is := message.(*jsonrpc.Request)
	switch {
	case !is:
	case request.IsCall():
		err = w.admit(request.ID, nil)
		if request.Method == "initialize" && err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.greeting = request.ID
		}
	case request.Method == "notifications/cancelled" && w.cancel(request.Params):
		return nil, nil
	case request.Method == "notifications/roots/list_changed":
		w.receiver.rootsChanged()
	}
	return message, err
}

// admit notes that a request came; nil: it is the SDK's.
func (w *wire) admit(id jsonrpc.ID, c *call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, twice := w.open[id]; twice {
		return fmt.Errorf("the id %v belongs to a request that has no answer yet", id.Raw())
	}
	if w.open[id] = c; c != nil {
		w.receiver.called(c)
	}
	return nil
}

// isGreeted reports whether the session is initialized. If the client asks for that just now, it waits for the answer.
func (w *wire) isGreeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if _, open := w.open[w.greeting]; !open || w.closed {
			return w.greeted
		}
		w.changed.Wait()
	}
}

// newProtocol is a field of requests in a version of the protocol that the SDK refuses.
const newProtocol = "io.modelcontextprotocol/protocolVersion"

// callOf returns the call that a message is, and the id of its request; nil: it is none, and the SDK says why.
func (w *wire) callOf(text json.RawMessage) (id jsonrpc.ID, c *call) {
	var version, method, name, number, params, input, meta json.RawMessage
	for key, value := range members(text) {
		switch key {
		case "jsonrpc":
			version = value
		case "method":
			method = value
		case "id":
			number = value
		case "params":
			params = value
		}
	}
	if word, _ := unquoted(method); word != "tools/call" || string(version) != `"2.0"` || len(params) == 0 || params[0] != '{' {
		return id, nil
	}
	for key, value := range members(params) {
		switch key {
		case "name":
			name = value
		case "arguments":
			input = value
		case "_meta":
			meta = value
		}
	}
	c = &call{input: cmp.Or(string(input), "{}")}
	c.progress = func() { w.notify(c.progressLine) }
	for key, value := range members(meta) {
		switch key {
		case "progressToken":
			c.meter.token = tokenOf(value)
		case "traceparent":
			c.trace, _ = unquoted(value)
		case newProtocol:
			return id, nil
		}
	}
	id, err := idOf(number)
	word, is := unquoted(name)
	if c.name = word; err != nil || !id.IsValid() || !is && name != nil {
		return id, nil
	}
	c.answer = func(result *tooldv1.ToolResult) { w.answer(id, c, result) }
	return id, c
}

// idOf returns the id that a text is; one that is not valid if it is none.
func idOf(text json.RawMessage) (jsonrpc.ID, error) {
	if word, is := unquoted(text); is {
		return jsonrpc.MakeID(word)
	}
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return jsonrpc.ID{}, err
	}
	return jsonrpc.MakeID(number)
}

// tokenOf returns a progress token, which is a string or a number; nil: there is none.
func tokenOf(text json.RawMessage) json.RawMessage {
	if len(text) > 0 && (text[0] == '"' || text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		return bytes.Clone(text)
	}
	return nil
}

// cancel drops the call that a client has cancelled, and which then has no answer. It reports whether the call was the receiver's.
func (w *wire) cancel(text json.RawMessage) bool {
	var params struct {
		RequestID any `json:"requestId"`
	}
	_ = json.Unmarshal(text, &params)
	id, err := jsonrpc.MakeID(params.RequestID)
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.open[id]
	if err != nil || c == nil {
		return false
	}
	delete(w.open, id)
	w.changed.Broadcast()
	w.receiver.cancelled(c)
	return true
}
