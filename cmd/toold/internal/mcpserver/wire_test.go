package mcpserver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}` + "\n"

// A caller answers each call at once.
type caller struct{}

func (caller) called(c *call)  { go c.answer(&tooldv1.ToolResult{}) }
func (caller) cancelled(*call) {}
func (caller) rootsChanged()   {}

// FuzzWire: whatever comes in, each line that goes out is JSON, and reading ends with the input, when all has its answer.
func FuzzWire(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte("garbage\n[]\n[1,2]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":7}}\n"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"a"}]`))
	f.Add([]byte(hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"LS","_meta":{"progressToken":1}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		w := newWire(bytes.NewReader(input), &out, caller{})
		written := make(chan struct{})
		go func() {
			defer close(written)
			w.write()
		}()
		for {
			message, err := w.Read(t.Context())
			if err != nil {
				break
			}
			if request, is := message.(*jsonrpc.Request); is && request.IsCall() {
				if err := w.Write(t.Context(), &jsonrpc.Response{ID: request.ID, Result: json.RawMessage("{}")}); err != nil {
					t.Fatal(err)
				}
			}
		}
		<-written
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%q is no JSON", line)
			}
		}
		if len(w.open) > 0 || len(w.lines) > 0 {
			t.Errorf("%d requests have no answer, %d lines are not written", len(w.open), len(w.lines))
		}
	})
}
