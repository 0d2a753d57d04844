// What clients have the daemon hold: its limits, and what is given back, from the client's side.

package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// settingsOf are options with so many bytes of settings.
func settingsOf(bytes int) *tooldv1.Options {
	frame := `{"env":{"LONG":""}}`
	return &tooldv1.Options{SettingsJson: proto.String(strings.Replace(frame, `""`, `"`+strings.Repeat("x", bytes-len(frame))+`"`, 1))}
}

// exceeded checks a refusal: which limit, which field, and whether it says when to try again.
func exceeded(t *testing.T, err error, scope, field string, retries bool) {
	t.Helper()
	refused(t, err, codes.ResourceExhausted, "quota_exceeded")
	var got []string
	retry := false
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.QuotaFailure:
			got = append(got, d.GetViolations()[0].GetSubject())
		case *errdetails.BadRequest:
			got = append(got, d.GetFieldViolations()[0].GetField())
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration() > 0
		}
	}
	if len(got) != 2 || got[0] != scope || got[1] != field || retry != retries {
		t.Errorf("refused with %q, retry %v, want %q, %q, %v: %v", got, retry, scope, field, retries, err)
	}
}

// TestBufferQuotas: a text that passes a limit is not taken, which the client learns with its type; what is closed, and
// what a vanished client has left, makes room.
func TestBufferQuotas(t *testing.T) {
	h := prepare(t)
	h.grace = 20 * time.Millisecond
	h.limit(`"session_buffer_bytes": 100, "principal_buffer_bytes": 150, "all_buffer_bytes": 1000`)
	h.start()
	paths := map[string]string{}
	for _, name := range []string{"a", "b", "more"} {
		paths[name] = h.file(name, "disk")
	}
	text := func(bytes int) string { return strings.Repeat("x", bytes) }
	a, b := h.edits("a", tooldv1.Role_ROLE_MAIN, free()), h.edits("b", tooldv1.Role_ROLE_MAIN, free())
	a.buffer(paths["a"], 1, text(90))
	a.use("r", "Read", `{"file_path":"`+paths["a"]+`"}`)
	a.until("r OK")
	b.buffer(paths["b"], 1, text(60))
	b.buffer(paths["more"], 1, text(1))
	notice := b.until("notice buffer_too_large").GetNotice()
	details := notice.GetDetails().AsMap()
	if details["status"] != "RESOURCE_EXHAUSTED" || details["scope"] != "principal" || details["limit_bytes"] != 150.0 || details["held_bytes"] != 150.0 ||
		details["wanted_bytes"] != 1.0 || details["retry_after_seconds"] != 10.0 || details["path"] != paths["more"] {
		t.Errorf("refused with %v", notice)
	}
	a.buffer(paths["a"], 2, text(101))
	notice = a.until("notice buffer_too_large").GetNotice()
	if details := notice.GetDetails().AsMap(); details["scope"] != "session" || details["retry_after_seconds"] != nil || !strings.Contains(notice.GetMessage(), "limits.session_buffer_bytes") {
		t.Errorf("refused with %v", notice)
	}
	a.use("lost", "Read", `{"file_path":"`+paths["a"]+`"}`)
	a.until("lost INVALID buffer_too_large")
	a.buffer(paths["a"], 2, text(85)) // the refused text took no bytes
	b.buffer(paths["more"], 1, text(5))
	b.use("now", "Read", `{"file_path":"`+paths["more"]+`"}`)
	b.until("now OK")
	b.use("grow", "Edit", `{"file_path":"`+paths["more"]+`","old_string":"xxxxx","new_string":"`+text(6)+`"}`)
	result := b.until("grow INVALID buffer_too_large").GetToolResult()
	if message := result.GetError().GetMessage(); !strings.Contains(message, "nothing was changed") {
		t.Errorf("an edit that passes the limit: %s", message)
	}
	a.cancel()
	for n, began := 0, time.Now(); ; n++ { // until what a left is given back
		if time.Since(began) > time.Minute {
			t.Fatal("what a vanished client has left is not given back")
		}
		b.buffer(paths["more"], int64(10+n), text(30))
		id := fmt.Sprint("again", n)
		b.use(id, "Read", `{"file_path":"`+paths["more"]+`"}`)
		var result *tooldv1.ToolResult
		for result == nil {
			result = b.until(id + " ").GetToolResult()
		}
		if result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK {
			break
		}
	}
}

// TestOptionQuotas: an Attach that brings more than is held is refused before anything is made. What is held already stays,
// also over a restart, and what a session gives back makes room.
func TestOptionQuotas(t *testing.T) {
	h := prepare(t)
	h.limit(`"principal_option_bytes": 5000, "session_option_bytes": 4000`)
	h.start()
	attach := func(session string, options *tooldv1.Options, env map[string]string) error {
		return h.refusedAttach(&tooldv1.Attach{SessionId: session, Roots: []string{h.root}, Options: options, Env: env})
	}
	taken := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	taken("the first", attach("s", settingsOf(3000), nil))
	exceeded(t, attach("t", settingsOf(3000), nil), "principal", "attach.options", true)
	exceeded(t, attach("t", nil, map[string]string{"LONG": strings.Repeat("x", 3000)}), "principal", "attach.options", true)
	exceeded(t, attach("s", nil, map[string]string{"LONG": strings.Repeat("x", 1000)}), "session", "attach.options", false)
	_, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "t"})
	refused(t, err, codes.NotFound, "unknown_session")
	taken("the same options again", attach("s", settingsOf(3000), nil))
	h.stop()
	h.start()
	exceeded(t, attach("t", settingsOf(3000), nil), "principal", "attach.options", true)
	taken("the same options after a restart", attach("s", settingsOf(3000), nil))
	taken("shorter options", attach("s", settingsOf(1000), nil))
	taken("what they made room for", attach("t", settingsOf(3000), nil))
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "t"}); err != nil {
		t.Fatal(err)
	}
	taken("what a closed session made room for", attach("u", settingsOf(3000), nil))
}

// TestToolQuotas: the definitions of client tools are counted; a stream that comes back brings none twice.
func TestToolQuotas(t *testing.T) {
	h := prepare(t)
	h.grace = 20 * time.Millisecond
	h.limit(`"principal_tool_bytes": 5000`)
	h.start()
	attach := func(session string, role tooldv1.Role, name string) (*conversation, *tooldv1.Attach) {
		return h.converse(), &tooldv1.Attach{SessionId: session, Role: role, Roots: []string{h.root}, ClientTools: []*tooldv1.ClientTool{
			{Name: name, Description: strings.Repeat("x", 3000)},
		}}
	}
	first, a := attach("s", tooldv1.Role_ROLE_MAIN, "First")
	first.attach(a)
	_, other := attach("s", tooldv1.Role_ROLE_COMPANION, "Other")
	exceeded(t, h.refusedAttach(other), "principal", "attach.client_tools", true)
	_, other = attach("t", tooldv1.Role_ROLE_MAIN, "Other")
	exceeded(t, h.refusedAttach(other), "principal", "attach.client_tools", true)
	again, a := attach("s", tooldv1.Role_ROLE_MAIN, "First")
	again.attach(a)
	again.cancel()
	for deadline := time.Now().Add(time.Minute); ; { // until what it left is given back
		if err := h.refusedAttach(other); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
