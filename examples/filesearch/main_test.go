// The program as a client sees it: a real daemon on a real socket.

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A client of a daemon with a workspace of its own.
type client struct {
	t    *testing.T
	root string
	conn *grpc.ClientConn
}

// start runs the program until the test ends.
func start(t *testing.T) *client {
	t.Helper()
	dir, err := os.MkdirTemp("", "filesearch") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &client{t: t, root: t.TempDir()}
	socket, ready, served := filepath.Join(dir, "toold.sock"), make(chan struct{}), make(chan error, 1)
	go func() { served <- serve(ctx, socket, c.root, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-served:
		served <- err
		t.Fatal(err)
	}
	if c.conn, err = grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// call runs one call in the session "test", in the given mode and with settings of the session, and gives its events.
func (c *client) call(id, input string, mode tooldv1.PermissionMode, settings string) (result *tooldv1.ToolResult, events []*tooldv1.ExecuteResponse) {
	c.t.Helper()
	stream, err := tooldv1.NewToolServiceClient(c.conn).RunTool(c.t.Context(), &tooldv1.RunToolRequest{
		Id: id, Name: "FileSearch", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: input}, SessionId: "test", Roots: []string{c.root},
		Options: &tooldv1.Options{PermissionMode: &mode, SettingsJson: proto.String(settings)},
	})
	for err == nil {
		var response *tooldv1.RunToolResponse
		if response, err = stream.Recv(); err == nil {
			events = append(events, response.GetEvent())
		}
	}
	if !errors.Is(err, io.EOF) {
		c.t.Fatal(err)
	}
	for _, event := range events {
		if event.GetToolResult() != nil {
			result = event.GetToolResult()
		}
	}
	return result, events
}

func (c *client) put(name, content string) {
	c.t.Helper()
	path := filepath.Join(c.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		c.t.Fatal(err)
	}
}

// holds wants a file to have that content.
func (c *client) holds(name, want string) {
	c.t.Helper()
	if now, err := os.ReadFile(filepath.Join(c.root, name)); err != nil || string(now) != want {
		c.t.Errorf("%s holds %q, %v; want %q", name, now, err, want)
	}
}

const (
	asking = tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT
	edits  = tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS
)

// TestPreviewReplaceUndo is the way of a rename: looked at, done, and taken back.
func TestPreviewReplaceUndo(t *testing.T) {
	c := start(t)
	c.put("a.go", "old\n")
	c.put("sub/b.go", "an old one\r\n")
	preview, _ := c.call("preview", `{"pattern": "old", "replace_with": "new"}`, asking, "")
	if text := preview.GetContent()[0].GetText(); preview.GetIsError() || !strings.Contains(text, "-old\n+new\n") {
		t.Errorf("the preview is %v %s", preview.GetError(), text)
	}
	c.holds("a.go", "old\n")
	same, _ := c.call("same", `{"pattern": "old", "replace_with": "new", "preview_only": true}`, asking, "")
	if same.GetContent()[0].GetText() != preview.GetContent()[0].GetText() {
		t.Errorf("preview_only is not true by default: %s", same.GetContent()[0].GetText())
	}
	write := `{"pattern": "old", "replace_with": "new", "preview_only": false}`
	denied, _ := c.call("denied", write, asking, "")
	if denied.GetOutcome() != tooldv1.Outcome_OUTCOME_DENIED {
		t.Errorf("a replacement that nobody allowed ended as %v", denied.GetOutcome())
	}
	c.holds("a.go", "old\n")
	done, _ := c.call("write", write, edits, "")
	if done.GetIsError() || done.GetStructured().GetFields()["matches"].GetNumberValue() != 2 {
		t.Errorf("the replacement ended with %v, %v", done.GetError(), done.GetStructured())
	}
	c.holds("a.go", "new\n")
	c.holds("sub/b.go", "an new one\r\n")
	if _, err := tooldv1.NewSessionServiceClient(c.conn).Restore(t.Context(), &tooldv1.RestoreRequest{
		SessionId: "test", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "write"},
	}); err != nil {
		t.Fatal(err)
	}
	c.holds("a.go", "old\n")
	c.holds("sub/b.go", "an old one\r\n")
}

// TestRules: what a rule denies reading is neither shown nor changed, and the result says that there was something.
func TestRules(t *testing.T) {
	c := start(t)
	c.put("a.txt", "old\n")
	c.put("secret/b.txt", "old\n")
	settings := `{"permissions": {"deny": ["Read(./secret/**)"]}}`
	found, _ := c.call("search", `{"pattern": "old"}`, edits, settings)
	text := found.GetContent()[0].GetText()
	if found.GetIsError() || !strings.Contains(text, "a.txt:1:old") || strings.Contains(text, "b.txt") || !strings.Contains(text, "because a rule denies reading") {
		t.Errorf("the search gave %v\n%s", found.GetError(), text)
	}
	write := `{"pattern": "old", "replace_with": "new", "preview_only": false}`
	if written, _ := c.call("write", write, edits, settings); written.GetIsError() {
		t.Errorf("the replacement beside what is not to be read ended with %v", written.GetError())
	}
	c.holds("a.txt", "new\n")
	c.holds("secret/b.txt", "old\n")
	c.put("a.txt", "old\n")
	refused, _ := c.call("refused", write, edits, `{"permissions": {"deny": ["Edit(./secret/**)"]}}`)
	if refused.GetOutcome() != tooldv1.Outcome_OUTCOME_DENIED || !strings.Contains(refused.GetError().GetMessage(), "Edit(./secret/**)") {
		t.Errorf("a replacement in what must not be changed ended as %v: %v", refused.GetOutcome(), refused.GetError())
	}
	c.holds("a.txt", "old\n")
	c.holds("secret/b.txt", "old\n")
}
