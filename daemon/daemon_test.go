package daemon_test

// Streams as a whole: how they begin and end, and what a daemon says of itself.

import (
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestAnonymous: a Read without Attach, as a person with grpcurl sends it.
func TestAnonymous(t *testing.T) {
	h := serve(t)
	path := h.file("hello.txt", "hello\n")
	c := h.converse()
	c.use("r", "Read", `{"file_path":"`+path+`"}`)
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	want(t, story(c.events), []string{"attached", "r accepted 0/1", "r started", "r OK", "turn 1 ended 1/1"})
	if text := resultsOf(c.events)["r"].GetContent()[0].GetText(); !strings.Contains(text, "hello") {
		t.Errorf("result %q, want the file's text", text)
	}
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if err != nil || len(list.GetSessions()) != 0 {
		t.Errorf("sessions %v, %v; want the anonymous one closed", list, err)
	}
}
