package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (h *house) file(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// TestAnonymous: a Read without Attach, as a person with grpcurl sends it.
func TestAnonymous(t *testing.T) {
	h := serve(t)
	path := h.file("hello.txt", "hello\n")
	c := h.converse()
	c.use("r", "Read", `{"file_path":"`+path+`"}`)
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	want := []string{"attached", "changed", "r accepted 0/1", "r started", "r OK ", "turn 1 ended 1/1"}
	if got := story(c.events); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if text := c.events[4].GetToolResult().GetContent()[0].GetText(); !strings.Contains(text, "hello") {
		t.Errorf("result %q, want the file's text", text)
	}
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if err != nil || len(list.GetSessions()) != 0 {
		t.Errorf("sessions %v, %v; want the anonymous one closed", list, err)
	}
}
