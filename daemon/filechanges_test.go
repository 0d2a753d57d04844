package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (h *house) watching(after *uint64) *conversation {
	h.t.Helper()
	c := h.converse()
	attach := &tooldv1.Attach{SessionId: "s", AfterSeq: after, Options: free(), Capabilities: &tooldv1.Capabilities{FileChanges: true}}
	if after == nil {
		attach.Roots = []string{h.root}
	}
	c.attach(attach)
	return c
}

// overwrite is another program.
func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func changesIn(e *tooldv1.ExecuteResponse) string {
	var paths []string
	for _, f := range e.GetNotice().GetDetails().GetFields()["files"].GetListValue().GetValues() {
		fields := f.GetStructValue().GetFields()
		name := filepath.Base(fields["path"].GetStringValue())
		if fields["removed"].GetBoolValue() {
			name += " removed"
		}
		paths = append(paths, name)
	}
	return strings.Join(paths, ", ")
}

// TestFileChanges: a client that wants to know is told when a file that the session has read is changed by others: once
// for each change, not for what its own file tools do, not for files that it has not read, and also for what happened
// while nobody was attached.
func TestFileChanges(t *testing.T) {
	h := serve(t)
	a, b, unread := h.file("a", "one\n"), h.file("b", "one\n"), h.file("unread", "one\n")
	c := h.watching(nil)
	read := func(id, path string) {
		c.use(id, "Read", fmt.Sprintf(`{"file_path":%q}`, path))
		c.until(id + " OK")
	}
	read("1", a)
	read("2", b)
	c.use("3", "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"mine"}`, a))
	c.until("3 OK")
	overwrite(t, unread, "two\n")
	overwrite(t, b, "two\n")
	if told := changesIn(c.until("notice file_changed")); told != "b" {
		t.Errorf("told of %q, want b alone", told)
	}
	read("4", b)
	c.use("5", "Bash", `{"command":"echo three > b"}`)
	c.until("5 OK")
	if told := changesIn(c.until("notice file_changed")); told != "b" {
		t.Errorf("after a command told of %q, want b", told)
	}
	c.endTurn()
	last := c.until("turn 1").GetSeq()
	c.cancel()
	for attached := true; attached; {
		session, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
		if err != nil {
			t.Fatal(err)
		}
		attached = session.GetSession().GetAttached()
	}

	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	c = h.watching(&last)
	if told := changesIn(c.until("notice file_changed")); told != "a removed, b" {
		t.Errorf("after an absence told of %q, want a and b", told)
	}
	overwrite(t, a, "back\n")
	if told := changesIn(c.until("notice file_changed")); told != "a" {
		t.Errorf("told of %q, want a", told)
	}
	for _, event := range c.events {
		if strings.HasPrefix(tell(event), "notice file_changed") && strings.Contains(changesIn(event), "unread") {
			t.Error("told of a file that was never read")
		}
	}
}
