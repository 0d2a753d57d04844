// What clients' tools may give, and what programs and servers see of unsaved text: from the client's side.

package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestClientToolGivesTooMuch: a result that could not be sent on fails its call, and the session can be read from its
// beginning afterwards.
func TestClientToolGivesTooMuch(t *testing.T) {
	h := serve(t)
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	image := func(size int) *tooldv1.Content {
		return &tooldv1.Content{Block: &tooldv1.Content_Image{Image: &tooldv1.Blob{MediaType: "image/png", Data: make([]byte, size)}}}
	}
	blocks := func(n int) (list []*tooldv1.Content) {
		for range n {
			list = append(list, &tooldv1.Content{})
		}
		return list
	}
	large, err := structpb.NewStruct(map[string]any{"x": strings.Repeat("x", 2<<20)})
	if err != nil {
		t.Fatal(err)
	}
	for id, test := range map[string]struct {
		give *tooldv1.ClientToolResult
		told string
	}{
		"fits":          {&tooldv1.ClientToolResult{Content: []*tooldv1.Content{image(3<<20 - 100)}}, "OK"},
		"200 blocks":    {&tooldv1.ClientToolResult{Content: blocks(200)}, "OK"},
		"an image":      {&tooldv1.ClientToolResult{Content: []*tooldv1.Content{image(6 << 20)}}, "ERROR tool_failed"},
		"together":      {&tooldv1.ClientToolResult{Content: []*tooldv1.Content{image(2 << 20)}, Structured: large}, "ERROR tool_failed"},
		"201 blocks":    {&tooldv1.ClientToolResult{Content: blocks(201)}, "ERROR tool_failed"},
		"a failed call": {&tooldv1.ClientToolResult{Content: append(textOf("why"), image(4<<20)), IsError: true}, "ERROR tool_failed"},
	} {
		c.use(id, "AskUser", `{"question":"?"}`)
		c.asked(id)
		c.gives(id, test.give)
		result := c.until(id + " " + test.told).GetToolResult()
		if says := strings.Contains(result.GetError().GetMessage(), "are taken"); says != (test.told != "OK") {
			t.Errorf("%s: %v", id, result.GetError())
		}
	}
	again := h.converse()
	again.attach(&tooldv1.Attach{SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION, AfterSeq: new(uint64)})
	results := map[string]bool{}
	for len(results) < 6 {
		event := again.until("")
		if result := event.GetToolResult(); result != nil {
			results[result.GetToolUseId()] = true
		}
		if size := proto.Size(event); size >= 4<<20 {
			t.Errorf("a message has %d bytes", size)
		}
	}
}

// TestProgramSeesWhatIsSaved: editors are asked to save before a program runs, also one that only reads.
func TestProgramSeesWhatIsSaved(t *testing.T) {
	h := prepare(t)
	h.configure(`{"tools": [{"name": "show", "description": "Shows a file.", "command": ["cat", "a.txt"], "readOnly": true}]}`)
	h.start()
	c := h.edits("s", tooldv1.Role_ROLE_MAIN, free())
	path := h.file("a.txt", "disk\n")
	c.buffer(path, 1, "unsaved\n")
	c.use("p", "show", `{}`)
	var save *tooldv1.SaveBuffers
	for save == nil {
		save = c.until("").GetSaveBuffers()
	}
	if err := os.WriteFile(path, []byte("unsaved\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BuffersSaved{BuffersSaved: &tooldv1.BuffersSaved{ToolUseId: save.GetToolUseId()}}})
	if text := c.until("p OK").GetToolResult().GetContent()[0].GetText(); strings.TrimSpace(text) != "unsaved" {
		t.Errorf("the program saw %q", text)
	}
}

// TestServerThatNeverCame: a call of a server that did not start has it start once more, and ends with why it did not.
func TestServerThatNeverCame(t *testing.T) {
	h := prepare(t)
	program := filepath.Join(h.root, "kit")
	h.configure(fmt.Sprintf(`{"mcpServers": {"kit": {"command": %q, "sandbox": false, "env": {%q: "0", "GORACE": "atexit_sleep_ms=0"}}}}`, program, mcpFillers))
	h.start()
	c := h.join("s", free())
	h.offers("s", 0)
	c.use("early", "mcp__kit__look", `{}`)
	result := c.until("early ERROR server_unavailable").GetToolResult()
	if said := result.GetError().GetMessage(); !strings.Contains(said, "no such file") || !strings.Contains(said, "kit") {
		t.Errorf("it says %q", said)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	c.use("late", "mcp__kit__look", `{}`)
	c.until("late OK")
	c.use("none", "mcp__kit__none", `{}`)
	c.until("none INVALID unknown_tool")
}
