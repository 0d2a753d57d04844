package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// What a wire writes. Senders put lines into a list, so a client that reads nothing delays nothing else.

const (
	// mcpLastWords is how long requests that came before the end of input may still be answered, so that a list of them
	// can be piped in.
	mcpLastWords = 2 * time.Second
	// mostKept is the largest buffer that is kept for the next lines. Ours.
	mostKept = 1 << 20
)

// A line appends a message to what is written, or nothing if nobody needs it any more.
type line func(*bytes.Buffer)

// text is a line that is already encoded.
func text(message []byte) line {
	return func(to *bytes.Buffer) {
		to.Write(message)
		to.WriteByte('\n')
	}
}

// value is a line that is encoded when it is written, of types and values that always can be.
func value(v any) line {
	return func(to *bytes.Buffer) {
		encoder := json.NewEncoder(to)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(v)
	}
}

// Write sends one of the SDK's messages.
func (w *wire) Write(_ context.Context, message jsonrpc.Message) error {
	encoded, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if response, is := message.(*jsonrpc.Response); is {
		w.greeted = w.greeted || response.ID == w.greeting && response.Error == nil
		delete(w.open, response.ID)
	}
	w.put(text(encoded))
	return nil
}

// answer sends the result of a call, unless the client has given it up.
func (w *wire) answer(id jsonrpc.ID, c *call, result *tooldv1.ToolResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[id] != c {
		return
	}
	delete(w.open, id)
	w.put(func(to *bytes.Buffer) { value(response{"2.0", id.Raw(), resultOf(result)})(to) })
}

// A response is the answer to a call.
type response struct {
	Version string     `json:"jsonrpc"`
	ID      any        `json:"id"`
	Result  callResult `json:"result"`
}

// refuse answers what is not a message. It has the id of the request that message was meant to be, if it has one.
func (w *wire) refuse(message json.RawMessage, code int, why error) {
	var meant struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	_ = json.Unmarshal(message, &meant)
	id := json.RawMessage("null")
	if kind := append(meant.ID, 'n')[0]; meant.Method != "" && (kind == '"' || kind == '-' || kind >= '0' && kind <= '9') {
		id = meant.ID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(value(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": terminal.VisibleText(why.Error())},
	}))
}

// notify sends a message of which the client needs only the newest, so it is made when it is written.
func (w *wire) notify(l line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(l)
}

// put has a line written; mu is held.
func (w *wire) put(l line) {
	w.lines = append(w.lines, l)
	w.changed.Broadcast()
}

// write writes what is put, until the connection is closed or the client is gone. Lines that wait together are one write.
func (w *wire) write() {
	var buffer bytes.Buffer
	for lines := w.toWrite(); lines != nil; lines = w.toWrite() {
		if buffer.Reset(); buffer.Cap() > mostKept {
			buffer = bytes.Buffer{}
		}
		for _, l := range lines {
			l(&buffer)
		}
		if _, err := w.out.Write(buffer.Bytes()); err != nil {
			_ = w.Close()
		}
	}
}

// toWrite waits for lines; nil: the connection is closed.
func (w *wire) toWrite() (lines []line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing = false; len(w.lines) == 0 {
		w.changed.Broadcast()
	}
	for len(w.lines) == 0 && !w.closed {
		w.changed.Wait()
	}
	if w.closed {
		return nil
	}
	lines, w.lines, w.writing = w.lines, nil, true
	return lines
}

// lastWords waits until each request has its answer, and all is written, for a while.
func (w *wire) lastWords() {
	late := false
	timer := time.AfterFunc(mcpLastWords, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		late = true
		w.changed.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for (len(w.open) > 0 || len(w.lines) > 0 || w.writing) && !late && !w.closed {
		w.changed.Wait()
	}
}
