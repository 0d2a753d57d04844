//go:build !no_mcp

package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestResultSize: all that is not text has 3 MiB together, whatever it is; what has no place is said.
func TestResultSize(t *testing.T) {
	const mib = 1 << 20
	audio := func(size int) sdk.Content { return &sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, size)} }
	blob := func(size int) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///x", MIMEType: "application/x", Blob: make([]byte, size)}}
	}
	object := func(size int) any { return map[string]any{"x": strings.Repeat("x", size)} }
	for _, tt := range []struct {
		name       string
		content    []sdk.Content
		structured any
		kept, lost int // blocks that are not text, and what is said to be left out
		object     bool
	}{
		{"one that fits", []sdk.Content{audio(3 * mib)}, nil, 1, 0, false},
		{"one that does not", []sdk.Content{audio(3*mib + 1)}, nil, 0, 1, false},
		{"together too large", []sdk.Content{audio(2 * mib), blob(mib), audio(1)}, nil, 2, 1, false},
		{"a small one behind a large one", []sdk.Content{audio(4 * mib), audio(1)}, nil, 1, 1, false},
		{"an object takes its part", []sdk.Content{audio(2 * mib)}, object(mib), 0, 1, true},
		{"an object that does not fit", []sdk.Content{audio(3 * mib)}, object(4 * mib), 1, 1, false},
		{"text is cut elsewhere", []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 5*mib)}, audio(mib)}, nil, 1, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, err := resultOf(t.Context(), "s", &sdk.CallToolResult{Content: tt.content, StructuredContent: tt.structured})
			if err != nil {
				t.Fatal(err)
			}
			bytes, kept, lost := 0, 0, 0
			for _, block := range result.Content {
				if block.Document != nil {
					kept++
					bytes += len(block.Document.Data)
				}
				if strings.Contains(block.Text, "is left out") {
					lost++
				}
			}
			if result.Structured != nil {
				text, err := json.Marshal(result.Structured)
				if err != nil {
					t.Fatal(err)
				}
				bytes += len(text)
			}
			if kept != tt.kept || lost != tt.lost || (result.Structured != nil) != tt.object || bytes > 3*mib {
				t.Errorf("%d blocks kept, %d left out, %d bytes, object %v", kept, lost, bytes, result.Structured != nil)
			}
		})
	}
}
