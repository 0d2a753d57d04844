// Sessions at rest, from the client's side: they are as they were, and hold nothing meanwhile.

package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// restful starts a daemon whose sessions rest at once.
func restful(t *testing.T, limits string) *house {
	h := prepare(t)
	h.grace, h.rest = 5*time.Millisecond, time.Millisecond
	h.limit(limits)
	h.start()
	return h
}

// resting waits until so many sessions are at rest.
func (h *house) resting(n int) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); h.d.AtRest() != n; {
		if time.Now().After(deadline) {
			h.t.Fatalf("%d sessions are at rest, want %d", h.d.AtRest(), n)
		}
		_, _ = h.sessions().ListSessions(h.t.Context(), &tooldv1.ListSessionsRequest{}) // which wakes none
	}
}

// TestRest: a session that has rested is as it was: settings, the client's environment, what calls have exported, directory,
// files that were read, todo list, calls. Reading its records does not wake it.
func TestRest(t *testing.T) {
	h := restful(t, "")
	path := h.file("sub/a.txt", "one\n")
	c := h.converse()
	c.attach(&tooldv1.Attach{
		SessionId: "s", Roots: []string{h.root}, Env: map[string]string{"PATH": "/usr/bin:/bin", "MINE": "the client's"},
		Options: &tooldv1.Options{
			SettingsJson:   proto.String(`{"env":{"SET":"by settings"},"permissions":{"deny":["Bash(rm:*)"]}}`),
			PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum(),
		},
	})
	c.use("cd", "Bash", `{"command":"cd sub; export KEPT=exported"}`)
	c.until("cd OK")
	c.use("read", "Read", `{"file_path":"`+path+`"}`)
	c.until("read OK")
	c.use("todo", "TodoWrite", `{"todos":[{"content":"do","status":"pending","activeForm":"doing"}]}`)
	c.until("todo OK")
	c.cancel()
	h.resting(1)
	before := len(h.records("s"))
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if err != nil || len(list.GetSessions()) != 1 {
		t.Fatalf("%v (%v)", list, err)
	}
	if s := list.GetSessions()[0]; s.GetClosed() || s.GetAttached() || !strings.HasSuffix(s.GetWorkingDirectory(), "/sub") || len(s.GetTodos()) != 1 || s.GetLastSeq() == 0 {
		t.Errorf("listed as %v", s)
	}
	if info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{}); err != nil || info.GetSessions() != 1 || len(info.GetWarnings()) > 0 {
		t.Errorf("the daemon has %d sessions, and warns %q (%v)", info.GetSessions(), info.GetWarnings(), err)
	}
	if h.d.AtRest() != 1 {
		t.Error("reading has woken the session")
	}
	again := h.converse()
	again.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: proto.Uint64(uint64(before))})
	again.use("all", "Bash", `{"command":"echo $MINE, $SET, $KEPT, ${PWD##*/}"}`)
	if got := again.until("all OK").GetToolResult().GetContent()[0].GetText(); !strings.Contains(got, "the client's, by settings, exported, sub") {
		t.Errorf("after its rest the session has %q", got)
	}
	again.use("edit", "Edit", `{"file_path":"`+path+`","old_string":"one","new_string":"two"}`)
	again.until("edit OK")
	again.use("rm", "Bash", `{"command":"rm a.txt"}`)
	again.until("rm DENIED")
	again.use("read", "Read", `{"file_path":"`+path+`"}`) // it was accepted before the rest
	again.until("read OK")
	if got, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"}); err != nil || !got.GetSession().GetAttached() || got.GetSession().GetOptions().GetSettingsJson() == "" {
		t.Errorf("%v (%v)", got, err)
	}
}

// TestRestTellsOfTools: what has become of a session's tools while it was at rest is told to the next client.
func TestRestTellsOfTools(t *testing.T) {
	h := restful(t, "")
	attach := &tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Options: &tooldv1.Options{Trusted: proto.Bool(true)}}
	c := h.converse()
	c.attach(attach)
	c.cancel()
	h.resting(1)
	h.file(".toold/settings.json", `{"permissions":{"deny":["Glob"]}}`)
	again := h.converse()
	again.attach(attach)
	if text := again.until("notice tools_changed").GetNotice().GetMessage(); !strings.Contains(text, "removed: Glob") {
		t.Errorf("told %q", text)
	}
	again.cancel()
	h.resting(1)
	third := h.converse()
	third.attach(attach)
	third.use("a", "Bash", `{"command":"true"}`)
	third.until("a OK")
	if told := strings.Count(strings.Join(story(third.events), ", "), "tools_changed"); told > 1 { // the record of the first time is replayed
		t.Errorf("told %d times", told)
	}
}

// TestRestIsNotSeen: however a session is used while it goes to rest and wakes, it is there.
func TestRestIsNotSeen(t *testing.T) {
	h := restful(t, "")
	path := h.file("a.txt", "one\n")
	for n := range 60 {
		c := h.converse()
		c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Env: map[string]string{"PATH": "/usr/bin:/bin"}})
		id := fmt.Sprint(n)
		c.use(id, "Read", `{"file_path":"`+path+`"}`)
		c.until(id + " OK")
		c.cancel()
		switch n % 3 {
		case 0:
			if _, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"}); err != nil {
				t.Fatal(err)
			}
		case 1:
			h.resting(1)
		}
	}
	h.resting(1)
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	refused(t, h.refusedAttach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}}), codes.FailedPrecondition, "session_closed")
	h.stop()
	h.start()
	if n := len(h.records("s")); n == 0 {
		t.Error("the records are gone")
	}
}

// TestRestMakesRoom: what a session at rest has is not counted until it is needed again; then the limits count.
func TestRestMakesRoom(t *testing.T) {
	h := restful(t, `"principal_option_bytes": 5000, "sessions": 3`)
	attach := func(session string) (*conversation, *tooldv1.Attach) {
		return h.converse(), &tooldv1.Attach{SessionId: session, Roots: []string{h.root}, Options: settingsOf(3000)}
	}
	s, a := attach("s")
	s.attach(a)
	s.cancel()
	h.resting(1)
	other, b := attach("t")
	other.attach(b)
	exceeded(t, h.refusedAttach(a), "principal", "session_id", true)
	exceeded(t, h.refusedAttach(&tooldv1.Attach{SessionId: "s"}), "principal", "session_id", true)
	other.cancel()
	h.resting(2)
	s, a = attach("s")
	s.attach(a)
	s.cancel()
	h.resting(2)
	for _, name := range []string{"u", "v"} { // the third, and one for which the longest unused has to go
		c := h.converse()
		c.attach(&tooldv1.Attach{SessionId: name, Roots: []string{h.root}})
		c.cancel()
	}
	h.resting(3)
	refused(t, h.refusedAttach(&tooldv1.Attach{SessionId: "t", Roots: []string{h.root}}), codes.FailedPrecondition, "session_closed")
}

// TestRestEnds: a session at rest is closed when it was not used for long, as any other.
func TestRestEnds(t *testing.T) {
	for idle := 1; !restEnds(t, idle); idle *= 2 { // on a busy machine it may be closed before it was seen at rest
	}
}

// restEnds has a session be unused until it is closed, and reports whether it was at rest before that.
func restEnds(t *testing.T, idle int) bool {
	h := restful(t, fmt.Sprintf(`"session_idle": %d`, idle))
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Env: map[string]string{"A": "b"}})
	c.cancel()
	rested := false
	for deadline := time.Now().Add(time.Minute); ; {
		rested = rested || h.d.AtRest() == 1
		records := h.records("s")
		if last := records[len(records)-1]; last.GetSessionChanged().GetClosed() {
			return rested
		} else if time.Now().After(deadline) {
			t.Fatalf("rested: %t; the last record is %v", rested, last)
		}
	}
}
