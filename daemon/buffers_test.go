// The unsaved texts of a client's editor, from the client's side.

package daemon_test

import (
	"os"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// edits attaches to the session as an editor.
func (h *house) edits(session string, role tooldv1.Role, options *tooldv1.Options) *conversation {
	h.t.Helper()
	c := h.converse()
	c.attach(&tooldv1.Attach{
		SessionId: session, Roots: []string{h.root}, Role: role, Options: options, Capabilities: &tooldv1.Capabilities{Answers: true, Buffers: true},
	})
	return c
}

func (c *conversation) buffer(path string, version int64, content string) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: &tooldv1.BufferChanged{Path: path, Version: version, Content: content}}})
}

// toEdit waits for an edit of a buffer.
func (c *conversation) toEdit() *tooldv1.BufferEdit {
	c.t.Helper()
	for {
		if edit := c.until("").GetBufferEdit(); edit != nil {
			return edit
		}
	}
}

func (c *conversation) edited(id string, version int64, wrong string) {
	c.t.Helper()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferEdited{BufferEdited: &tooldv1.BufferEdited{ToolUseId: id, Version: version, Error: wrong}}})
}

// made is the text that the edits make.
func made(text string, edits []*tooldv1.TextEdit) string {
	for _, e := range edits {
		text = text[:e.GetOffset()] + e.GetText() + text[e.GetOffset()+e.GetLength():]
	}
	return text
}

// TestBuffers: Read and Edit see and change the editor's text, and the file on the disk stays as it was.
func TestBuffers(t *testing.T) {
	h := serve(t)
	path := h.file("a.txt", "on the disk\n")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	c := h.edits("s", tooldv1.Role_ROLE_MAIN, free())
	text := "é in the buffer\nsecond\n"
	c.buffer(path, 1, text)
	c.use("r", "Read", `{"file_path":"`+path+`"}`)
	if got := c.until("r OK").GetToolResult().GetContent()[0].GetText(); !strings.Contains(got, "é in the buffer") {
		t.Errorf("Read gives %q", got)
	}
	c.use("e", "Edit", `{"file_path":"`+path+`","old_string":"é in","new_string":"è at"}`)
	edit := c.toEdit()
	if got := made(text, edit.GetEdits()); got != "è at the buffer\nsecond\n" || edit.GetVersion() != 1 || edit.GetToolUseId() != "e" || edit.GetPath() != path {
		t.Errorf("%v makes %q", edit, got)
	}
	c.edited("e", 2, "")
	c.until("e OK")
	c.use("w", "Edit", `{"file_path":"`+path+`","old_string":"second","new_string":"third"}`)
	c.toEdit()
	c.edited("w", 0, "it has version 3 by now")
	c.until("w INVALID stale_file")
	c.buffer(path, 1, "older\n")
	c.until("notice stale_buffer")
	after, err := os.Stat(path)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was touched: %v, %v", after.ModTime(), err)
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferClosed{BufferClosed: &tooldv1.BufferClosed{Path: path}}})
	c.use("d", "Read", `{"file_path":"`+path+`"}`)
	if got := c.until("d OK").GetToolResult().GetContent()[0].GetText(); !strings.Contains(got, "on the disk") {
		t.Errorf("after it was closed Read gives %q", got)
	}
}

// TestBuffersOfCompanion: the editor beside the agent. It saves before a command runs, and learns of what that has changed.
func TestBuffersOfCompanion(t *testing.T) {
	h := prepare(t).outside()
	h.start()
	path := h.file("a.txt", "old\n")
	c := h.join("s", free())
	editor := h.edits("s", tooldv1.Role_ROLE_COMPANION, nil)
	editor.buffer(path, 1, "new\n")
	editor.use("x", "Read", "{}") // refused, and so the buffer has come
	editor.until("notice not_main")
	c.use("b", "Bash", `{"command":"cat a.txt; echo more >> a.txt"}`)
	var save *tooldv1.SaveBuffers
	for save == nil {
		save = editor.until("").GetSaveBuffers()
	}
	if len(save.GetPaths()) != 1 || save.GetPaths()[0] != path {
		t.Errorf("to be saved: %v", save)
	}
	if err := os.WriteFile(path, []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	editor.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BuffersSaved{BuffersSaved: &tooldv1.BuffersSaved{ToolUseId: save.GetToolUseId()}}})
	result := c.until("b OK").GetToolResult()
	if text := result.GetContent()[0].GetText(); text != "new\n" && text != "new" || len(result.GetContent()) != 1 {
		t.Errorf("the command saw %v", result.GetContent())
	}
	editor.until("notice buffer_conflict")
}

// TestUnsaved: an editor that does not save in time lets the command run, which says what it saw; it is not waited for
// again as long as it is silent.
func TestUnsaved(t *testing.T) {
	t.Parallel() // it takes 2 s
	h := prepare(t).outside()
	h.start()
	path := h.file("a.txt", "old\n")
	c := h.join("s", free())
	editor := h.edits("s", tooldv1.Role_ROLE_COMPANION, nil)
	editor.buffer(path, 1, "new\n")
	editor.use("x", "Read", "{}") // refused, and so the buffer has come
	editor.until("notice not_main")
	for _, id := range []string{"a", "b"} {
		c.use(id, "Bash", `{"command":"cat a.txt"}`)
		result := c.until(id + " OK").GetToolResult()
		if last := result.GetContent()[len(result.GetContent())-1].GetText(); !strings.Contains(last, "as they are on the disk") || !strings.Contains(last, path) {
			t.Errorf("result %v", result.GetContent())
		}
	}
	editor.until("b OK")
	asked := 0
	for _, e := range editor.events {
		if e.GetSaveBuffers() != nil {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the editor was asked %d times", asked)
	}
}

// TestNoBuffers: who did not say that it offers buffers has none.
func TestNoBuffers(t *testing.T) {
	h := serve(t)
	path := h.file("a.txt", "on the disk\n")
	c := h.join("s", nil)
	c.buffer(path, 1, "in the buffer\n")
	c.until("notice no_buffers")
	c.use("r", "Read", `{"file_path":"`+path+`"}`)
	if got := c.until("r OK").GetToolResult().GetContent()[0].GetText(); !strings.Contains(got, "on the disk") {
		t.Errorf("Read gives %q", got)
	}
}
