// How large and how deep a result is on the wire, whatever a tool gives.

package convert

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// TestResultFits: a record of a result is below 4 MiB, which is what most clients take, and nests no deeper than they follow.
func TestResultFits(t *testing.T) {
	const mib = 1 << 20
	many := func(n int, block tools.Block) (blocks []tools.Block) {
		for range n {
			blocks = append(blocks, block)
		}
		return blocks
	}
	blob := func(size int) *tools.Blob { return &tools.Blob{MediaType: "image/png", Data: make([]byte, size)} }
	deep := func(levels int) (value any) {
		value = 1.0
		for level := range levels {
			if level%2 == 0 {
				value = []any{value}
			} else {
				value = map[string]any{"a": value}
			}
		}
		return map[string]any{"a": value}
	}
	for _, tt := range []struct {
		name  string
		ended pipeline.Ended
		says  []string // words that stand in it
	}{
		{"small", pipeline.Ended{Content: []tools.Block{{Text: "x"}, {Image: blob(mib)}}, Structured: map[string]any{"n": 1}}, []string{`n`}},
		{"a large image", pipeline.Ended{Content: []tools.Block{{Text: "kept"}, {Image: blob(6 * mib)}}}, []string{"kept", "A block, image/png, of 6291456 bytes is left out"}},
		{"the largest goes first", pipeline.Ended{Content: []tools.Block{{Image: blob(3 * mib)}, {Document: blob(mib)}, {Text: "kept"}}}, []string{"kept", "of 3145728 bytes is left out"}},
		{"text in many blocks", pipeline.Ended{Content: many(10, tools.Block{Text: strings.Repeat("x", mib)})}, []string{"is left out"}},
		{"very many blocks", pipeline.Ended{Content: many(50_000, tools.Block{Text: strings.Repeat("x", 100)})}, []string{"49000 more blocks of the result are left out"}},
		{"numbers, which are larger on the wire", pipeline.Ended{Structured: map[string]any{"n": make([]int, 200_000)}}, []string{"omitted_bytes"}},
		{"a large object", pipeline.Ended{Structured: map[string]any{"x": strings.Repeat("x", 2*mib)}}, []string{"omitted_bytes"}},
		{
			"large everywhere",
			pipeline.Ended{
				Structured: map[string]any{"n": make([]int, 100_000)}, Content: []tools.Block{{Image: blob(3 * mib)}},
				Fault: fault.Failedf("tool_failed", "%s", strings.Repeat("x", mib)).With(map[string]any{"n": make([]int, 100_000)}),
			},
			[]string{"of 3145728 bytes is left out"},
		},
		{"as deep as may be", pipeline.Ended{Structured: deep(24)}, nil},
		{"too deep", pipeline.Ended{Structured: deep(60)}, []string{"it nests deeper than 25 levels"}},
		{"far too deep", pipeline.Ended{Structured: deep(3332)}, []string{"it nests deeper than 25 levels"}},
		{"too deep in details", pipeline.Ended{Fault: fault.Failedf("tool_failed", "x").With(deep(60))}, []string{"it nests deeper than 25 levels"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wire := Event(&pipeline.Use{ID: "a"}, tt.ended)
			bytes, err := proto.Marshal(wire)
			if err != nil || len(bytes) >= 4*mib {
				t.Fatalf("%d bytes, %v", len(bytes), err)
			}
			// One message more holds it in the answers to some requests.
			if err := (proto.UnmarshalOptions{RecursionLimit: 99}).Unmarshal(bytes, &tooldv1.ExecuteResponse{}); err != nil {
				t.Error(err)
			}
			text := string(bytes)
			for _, words := range tt.says {
				if !strings.Contains(text, words) {
					t.Errorf("%q is not said", words)
				}
			}
			if left := strings.Contains(text, "left out"); left && tt.says == nil {
				t.Error("something is left out")
			}
		})
	}
}

// FuzzClientResult: whatever a client gives as a result, the record of it can be read by every client.
func FuzzClientResult(f *testing.F) {
	for _, seed := range []*tooldv1.ClientToolResult{
		{ToolUseId: "a", Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: "x"}}, {}}, IsError: true},
		{Structured: structOf(map[string]any{"a": []any{map[string]any{"b": nil}}})},
	} {
		bytes, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		given := &tooldv1.ClientToolResult{}
		if proto.Unmarshal(bytes, given) != nil {
			return
		}
		result, err := ResultIn(given)
		ended := pipeline.Ended{Content: result.Content, Structured: result.Structured}
		if err != nil {
			ended.Fault = fault.From(err)
		}
		recorded, err := proto.Marshal(Event(&pipeline.Use{ID: "a"}, ended))
		if err != nil || len(recorded) >= 4<<20 {
			t.Fatalf("%d bytes, %v", len(recorded), err)
		}
		if err := (proto.UnmarshalOptions{RecursionLimit: 99}).Unmarshal(recorded, &tooldv1.ExecuteResponse{}); err != nil {
			t.Error(err)
		}
	})
}
