package mcpserver

import (
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

// A line appends a message to what is written, or nothing if it is out of date by then. The line break is not a part of it.
type line func(to []byte) []byte

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
	w.put(func(to []byte) []byte { return append(to, encoded...) })
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
	w.put(func(to []byte) []byte { return appendResponse(to, id.Raw(), result) })
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
	w.put(func(to []byte) []byte {
		return appendJSON(to, map[string]any{
			"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": terminal.VisibleText(why.Error())},
		})
	})
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
	var buffer []byte
	for lines := w.toWrite(); lines != nil; lines = w.toWrite() {
		if buffer = buffer[:0]; cap(buffer) > mostKept {
			buffer = nil
		}
		for _, l := range lines {
			before := len(buffer)
			if buffer = l(buffer); len(buffer) > before {
				buffer = append(buffer, '\n')
			}
		}
		if _, err := w.out.Write(buffer); err != nil {
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
	w.changed.Broadcast()
	return lines
}

// mostWaiting is how many lines may wait for a client that does not read, before no more of its messages are read. Ours.
const mostWaiting = 256

// awaitRoom waits until the client has read enough of what waits for it.
func (w *wire) awaitRoom() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.lines) > mostWaiting && !w.closed {
		w.changed.Wait()
	}
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
