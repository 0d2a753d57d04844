//go:build !no_mcp

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/tooltest"
)

// A server that does not get through its start is ended at its deadline, and what it said is told.
func TestHangingStart(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, &mcp.Fleet{StartLimit: 4 * time.Second}, tooltest.NewRoom(t))
	one, first := r.fake("one", "hang-initialize")
	two, second := r.fake("two", "hang-list")
	r.serve(one, two)
	for _, name := range []string{"one", "two"} {
		r.until(name+" has failed", func() bool { return strings.Contains(r.status(name).Why, "not started in time") })
	}
	if why := r.status("one").Why; !strings.Contains(why, "says hello") {
		t.Errorf("what it printed to its standard error is not told: %q", why)
	}
	pids := []int{pid(t, first), pid(t, second)}
	r.set.Close()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d runs on", pid)
		}
	}
}

// A server that asks without end, and reads no answer, is ended at its deadline too, and so is one on the network that never
// answers.
func TestDeaf(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-over:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(site.Close)
	t.Cleanup(func() { close(over) })
	r := newRigOf(t, &mcp.Fleet{StartLimit: 4 * time.Second}, tooltest.NewRoom(t))
	entry, dir := r.fake("fake", "deaf")
	r.serve(entry, mcp.Entry{Name: "http", URL: site.URL}, mcp.Entry{Name: "sse", Transport: mcp.SSE, URL: site.URL})
	for _, name := range []string{"fake", "http", "sse"} {
		r.until(name+" has failed", func() bool { return strings.Contains(r.status(name).Why, "not started in time") })
	}
	pid := pid(t, dir)
	r.set.Close()
	if alive(pid) {
		t.Error("the server runs on")
	}
}

// A call to a server that hangs, and that does not even read what it is told, ends when its own time does.
func TestHangingCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entry, dir := r.fake("fake", "hang-call")
	r.serve(entry)
	large, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{`{"text":""}`, string(large), string(large)} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, tools.ErrTimeout)
		if _, err := r.call(ctx, "mcp__fake__echo", input, nil); !errors.Is(err, tools.ErrTimeout) {
			t.Errorf("the call gave %v", err)
		}
		cancel()
	}
	r.set.Close()
	if alive(pid(t, dir)) {
		t.Error("the server runs on")
	}
}

// Closing a set ends calls that run, and the server that carries them out.
func TestCloseEndsCalls(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	r.serve(entry)
	done := make(chan error, 1)
	go func() {
		_, err := r.call(t.Context(), "mcp__fake__wait", `{}`, nil)
		done <- err
	}()
	r.until("the server has the call", func() bool { return there(filepath.Join(dir, "waiting")) })
	tool := r.tool("mcp__fake__echo")
	r.set.Close()
	if err := <-done; code(err) != "server_gone" {
		t.Errorf("the call gave %v", err)
	}
	action, err := tool.Parse(json.RawMessage(`{"text":""}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), r.env(action), action, nil); code(err) != "server_unavailable" {
		t.Errorf("a call afterwards gave %v", err)
	}
}

// A server that crashes takes its calls with it, none of them is sent again, and the next call finds a new server.
func TestCrash(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	r.serve(entry)
	first := pid(t, dir)
	r.text("mcp__fake__write", `{}`)
	_, err := r.call(t.Context(), "mcp__fake__die", `{}`, nil)
	if code(err) != "server_gone" || !strings.Contains(err.Error(), "SIGKILL") {
		t.Errorf("the call gave %v", err)
	}
	if got := r.text("mcp__fake__write", `{}`); got != "xx" || pid(t, dir) == first {
		t.Errorf("the next call gave %q", got)
	}
	if r.status("fake").State != mcp.Ready || len(r.told("mcp_server_gone")) != 1 {
		t.Errorf("the status is %+v, told was %q", r.status("fake"), r.told("mcp_server_gone"))
	}
}

func TestCrashAtEachStage(t *testing.T) {
	r := newRig(t)
	var entries []mcp.Entry
	for _, stage := range []string{"initialize", "list", "call"} {
		entry, _ := r.fake(stage, "crash-once-"+stage)
		entries = append(entries, entry)
	}
	r.serve(entries...)
	for _, stage := range []string{"initialize", "list"} {
		r.until("it is there at the second try", func() bool { return r.status(stage).State == mcp.Ready })
		if got := r.text("mcp__"+stage+"__echo", `{"text":"on"}`); got != "on" {
			t.Errorf("%s gave %q", stage, got)
		}
	}
	if _, err := r.call(t.Context(), "mcp__call__echo", `{"text":""}`, nil); code(err) != "server_gone" {
		t.Errorf("the call gave %v", err)
	}
	if got := r.text("mcp__call__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the next gave %q", got)
	}
}

// Where a server does not come back its tools stay listed, and a call says that it is not there.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entry, _ := r.fake("fake", "crash-again-initialize")
	r.serve(entry)
	if _, err := r.call(t.Context(), "mcp__fake__die", `{}`, nil); code(err) != "server_gone" {
		t.Errorf("the call gave %v", err)
	}
	if _, err := r.call(t.Context(), "mcp__fake__echo", `{"text":""}`, nil); code(err) != "server_unavailable" {
		t.Errorf("the next gave %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, tools.ErrTimeout)
	defer cancel()
	if _, err := r.call(ctx, "mcp__fake__echo", `{"text":""}`, nil); !errors.Is(err, tools.ErrTimeout) && code(err) != "server_unavailable" {
		t.Errorf("a call without time gave %v", err)
	}
	r.until("it is given up", func() bool { return len(r.told("mcp_server_failed")) == 2 })
	if _, err := r.call(t.Context(), "mcp__fake__echo", `{"text":""}`, nil); code(err) != "server_unavailable" {
		t.Errorf("a call to what was given up gave %v", err)
	}
}

func TestJunk(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "junk")
	r.serve(entry)
	if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the call gave %q", got)
	}
	told := r.told("mcp_junk")
	if s := r.status("fake"); s.Junk != 4 || len(told) != 1 || !strings.Contains(told[0], "Server listening on stdin!") {
		t.Errorf("%d lines were junk, told was %q", s.Junk, told)
	}
}

// Messages that are none break nothing.
func TestMalformed(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "malformed")
	r.serve(entry)
	if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the call gave %q", got)
	}
	for _, test := range []struct{ answer, code string }{
		{`{"content":[{"type":"hologram","text":"x"}]}`, "bad_response"},
		{`{"content":[null]}`, "bad_response"},
		{`{"content":{}}`, "bad_response"},
		{`{"content":[{"type":"image","data":"not base64!"}]}`, "bad_response"},
		{`"text"`, "bad_response"},
		{`null`, ""},
		{`{}`, ""},
		{`{"content":null,"structuredContent":null,"isError":false}`, ""},
		{`{"content":[{"type":"tool_result","content":[{"type":"text","text":"x"}]},{"type":"tool_use"}]}`, ""},
		{`{"content":[{"type":"resource"},{"type":"resource_link"},{"type":"audio"},{"type":"image"}]}`, ""},
		{`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":null}}}`, "bad_response"},
		{`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}}`, "tool_failed"},
	} {
		input, _ := json.Marshal(map[string]string{"answer": test.answer})
		result, err := r.call(t.Context(), "mcp__fake__odd", string(input), nil)
		if code(err) != test.code || err == nil && len(result.Content) == 0 {
			t.Errorf("%s gave %+v, %v", test.answer, result, err)
		}
	}
	for _, mode := range []string{"nulls", "no-list"} {
		entry, _ := r.fake(mode, mode)
		r.serve(entry)
		t.Logf("%s: %+v", mode, r.status(mode))
	}
}

func TestFlood(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "flood")
	r.serve(entry)
	if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the call gave %q", got)
	}
	if told := r.told("mcp_log"); len(told) > 100 {
		t.Errorf("%d messages were passed on", len(told))
	}
}

// What a server says of its tools is taken as far as it makes sense.
func TestOffers(t *testing.T) {
	r := newRig(t)
	for _, mode := range []string{"pages", "circle", "many", "lies"} {
		entry, _ := r.fake(mode, mode)
		r.serve(entry)
		s := r.status(mode)
		want := map[string]int{"pages": 64, "circle": 2, "many": 512, "lies": 6}[mode]
		if s.State != mcp.Ready || s.Tools != want || len(s.LeftOut) == 0 || len(r.told("mcp_left_out")) == 0 {
			t.Errorf("%s: %+v", mode, s)
		}
		if mode != "lies" {
			continue
		}
		if left := strings.Join(s.LeftOut, "\n"); len(s.LeftOut) != 7 || !strings.Contains(left, "file:///etc/passwd") || !strings.Contains(left, "branches") {
			t.Errorf("left out is\n%s", left)
		}
		if text := r.tool("mcp__lies__good").Spec().Description; text != "ab hidden" {
			t.Errorf("a description is %q", text)
		}
		choices := r.tool("mcp__lies__choices")
		if shown := string(choices.Spec().InputSchema); strings.Contains(shown, "oneOf") || !strings.Contains(shown, `"id"`) || !strings.Contains(shown, `"name"`) {
			t.Errorf("choices are shown as %s", shown)
		}
		for input, want := range map[string]string{`{"id":1}`: "", `{"name":"a"}`: "", `{}`: "invalid_input", `{"id":1,"name":"a"}`: "invalid_input"} {
			if _, err := choices.Parse(json.RawMessage(input)); code(err) != want {
				t.Errorf("%s gave %v", input, err)
			}
		}
	}
}

// Killing a server at any moment neither blocks a call nor leaves a process, and the next call works.
func TestKill(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	r.serve(entry)
	random := rand.New(rand.NewPCG(1, 2))
	var pids []int
	for round := range 4 {
		var calls sync.WaitGroup
		var lost, done atomic.Int64
		victim := pid(t, dir)
		pids = append(pids, victim)
		for n := range 4 {
			action, err := r.tool("mcp__fake__echo").Parse(json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, n)))
			if err != nil {
				t.Fatal(err)
			}
			env := r.env(action)
			calls.Go(func() {
				for range 100 {
					switch result, err := action.Run(t.Context(), env); code(err) {
					case "":
						if textOf(result) != fmt.Sprint(n) {
							t.Errorf("call %d gave %q", n, textOf(result))
						}
						done.Add(1)
					case "server_gone":
						lost.Add(1)
					default:
						t.Errorf("call %d gave %v", n, err)
					}
				}
			})
		}
		moment := random.Int64N(300)
		r.until("it is time", func() bool { return done.Load() >= moment })
		_ = syscall.Kill(victim, syscall.SIGKILL)
		calls.Wait()
		if t.Logf("round %d: %d answered, %d lost", round, done.Load(), lost.Load()); lost.Load() > 8 {
			t.Errorf("%d calls were lost with one server, where 4 ran at once", lost.Load())
		}
		r.until("a new server is there", func() bool { return !alive(victim) && pid(t, dir) != victim && r.status("fake").State == mcp.Ready })
		if got := r.text("mcp__fake__echo", `{"text":"next"}`); got != "next" {
			t.Errorf("the next call gave %q", got)
		}
	}
	pids = append(pids, pid(t, dir))
	r.set.Close()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d runs on", pid)
		}
	}
}
