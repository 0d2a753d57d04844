package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}`

// FuzzWire: whatever comes in, each line that goes out is JSON, and reading ends with the input.
func FuzzWire(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte("garbage\n[]\n[1,2]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":7}}\n"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"a"}]`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		w := newWire(bytes.NewReader(input), &out)
		for {
			message, err := w.Read(context.Background())
			if err != nil {
				break
			}
			if request, is := message.(*jsonrpc.Request); is && request.IsCall() {
				if err := w.Write(context.Background(), &jsonrpc.Response{ID: request.ID, Result: json.RawMessage("{}")}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%q is no JSON", line)
			}
		}
		if len(w.order.line) > 0 || len(w.open) > 0 {
			t.Errorf("%d calls wait, %d requests have no answer", len(w.order.line), len(w.open))
		}
	})
}
