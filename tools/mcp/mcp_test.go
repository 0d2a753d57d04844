//go:build !no_mcp

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/tooltest"
)

func TestToolsOfAServer(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	entry.AlwaysLoad, entry.Timeout = true, 5*time.Second
	r.serve(entry)
	echo := r.tool("mcp__fake__echo").Spec()
	if echo.Origin != tools.MCP || !echo.AlwaysLoad || echo.TimeLimit != 5*time.Second || !echo.ReadOnly || !echo.OpenWorld || echo.Destructive || echo.OnInterrupt != tools.Stop {
		t.Errorf("echo is %+v", echo)
	}
	write := r.tool("mcp__fake__write").Spec()
	if write.ReadOnly || !write.Destructive || write.OnInterrupt != tools.Finish {
		t.Errorf("write is %+v", write)
	}
	if most := r.tool("mcp__fake__consent").Spec().MaxResultChars; most != 500_000 {
		t.Errorf("a request for 9,000,000 characters gave %d", most)
	}
	names := func() (all []string) {
		for _, tool := range r.set.Tools() {
			all = append(all, tool.Spec().Name)
		}
		return all
	}
	if first := names(); !slices.IsSorted(first) || !slices.Equal(first, names()) || len(first) != 15 {
		t.Errorf("the tools are %q", first)
	}
	if s := r.status("fake"); s.State != mcp.Ready || s.Tools != 15 || s.Server != "fake 1" || s.Why != "" {
		t.Errorf("its status is %+v", s)
	}
	r.set.Close()
	if alive(pid(t, dir)) || !there(filepath.Join(dir, "ended")) {
		t.Error("the server runs on, or was not let end by itself")
	}
}

func TestEffects(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	for _, test := range []struct {
		name, input string
		concurrent  bool
	}{{"echo", `{"text":""}`, true}, {"write", `{}`, false}} {
		action, err := r.tool("mcp__fake__" + test.name).Parse(json.RawMessage(test.input))
		if err != nil {
			t.Fatal(err)
		}
		effects := action.Effects()
		if effects.External != "fake" || effects.ReadOnly() || effects.Concurrent() != test.concurrent {
			t.Errorf("%s has the effects %+v", test.name, effects)
		}
	}
	action, err := r.tool("mcp__fake__consent").Parse(json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if preview, err := action.Check(t.Context(), r.env(action)); err != nil || preview.Ask == "" {
		t.Errorf("a tool that wants consent gives %+v, %v", preview, err)
	}
	if _, err := r.tool("mcp__fake__echo").Parse(json.RawMessage(`{"text":1}`)); code(err) != "invalid_input" {
		t.Errorf("an input that does not fit gave %v", err)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	for _, test := range []struct{ tool, input, text, code string }{
		{"echo", `{"text":"grüß"}`, "grüß", ""},
		{"progress", `{}`, "(The server returned no content.)", ""},
		{"fail", `{}`, "no such thing", "tool_failed"},
		{"refuse", `{}`, "", "tool_failed"},
		{"roots", `{}`, "{\"roots\":[{\"uri\":\"file://" + r.room.Root + "\"}]}", ""},
		{"ask", `{}`, `{"action":"decline"}`, ""},
		{"large", `{"bytes":52428800,"where":"first"}`, "", "response_too_large"},
		{"large", `{"bytes":17825792,"where":"last"}`, "", "response_too_large"},
		{"large", `{"bytes":1000000}`, strings.Repeat("long ", 200_000), ""},
		{"echo", `{"text":"still there"}`, "still there", ""},
	} {
		result, err := r.call(t.Context(), "mcp__fake__"+test.tool, test.input, nil)
		if got := textOf(result); got != test.text || code(err) != test.code {
			t.Errorf("%s %s gave %.200q, %v", test.tool, test.input, got, err)
		}
	}
}

func TestBlocks(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	result, err := r.call(t.Context(), "mcp__fake__blocks", `{}`, nil)
	if err != nil || len(result.Content) != 8 {
		t.Fatalf("%d blocks, %v", len(result.Content), err)
	}
	b := result.Content
	structured, err := json.Marshal(result.Structured)
	if b[0].Text != "words" || b[1].Image.MediaType != "image/png" || b[2].Document.MediaType != "audio/wav" ||
		b[3].Text != "Resource file:///a.txt:\ninside" || b[4].Text != "Resource file:///a.bin:" || string(b[5].Document.Data) != "RIFF" ||
		*b[6].Link != (tools.Link{URI: "https://example.com/", Name: "there"}) || !strings.Contains(b[7].Text, "is left out") {
		t.Errorf("the blocks are %+v", b)
	}
	if string(structured) != `{"n":7}` {
		t.Errorf("structured is %s, %v", structured, err)
	}
}

func TestProgress(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	var steps []tools.Step
	if _, err := r.call(t.Context(), "mcp__fake__progress", `{}`, func(env *tools.Env) {
		env.Report = func(s tools.Step) { steps = append(steps, s) }
	}); err != nil {
		t.Fatal(err)
	}
	// News of a call may come in after its answer; none is reported then.
	for i, s := range steps {
		if s.Total != 3 || s.Done != int64(i+1) || !strings.HasPrefix(s.Message, "step ") {
			t.Errorf("step %d is %+v", i, s)
		}
	}
}

func TestQuestions(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	for _, test := range []struct {
		reply tools.Reply
		err   error
		want  string
	}{
		{tools.Reply{Yes: true, Content: json.RawMessage(`{"color":"red"}`)}, nil, `{"action":"accept","content":{"color":"red"}}`},
		{tools.Reply{Why: "no"}, nil, `{"action":"decline"}`},
		{tools.Reply{}, errors.New("nobody"), `{"action":"cancel"}`},
	} {
		var asked tools.Form
		result, err := r.call(t.Context(), "mcp__fake__ask", `{}`, func(env *tools.Env) {
			env.Ask = func(_ context.Context, form tools.Form) (tools.Reply, error) {
				asked = form
				return test.reply, test.err
			}
		})
		if err != nil || textOf(result) != test.want || asked.Message != "Which color?" || !strings.Contains(string(asked.Schema), `"color"`) {
			t.Errorf("%+v gave %q, %v after %+v", test.reply, textOf(result), err, asked)
		}
	}
}

// A question ends with its call, and the Env is not used afterwards.
func TestQuestionEndsWithTheCall(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("cancelled in the middle")
	over := false
	_, err := r.call(ctx, "mcp__fake__ask", `{}`, func(env *tools.Env) {
		env.Ask = func(ctx context.Context, _ tools.Form) (tools.Reply, error) {
			cancel(gone)
			<-ctx.Done()
			over = true
			return tools.Reply{}, context.Cause(ctx)
		}
	})
	if !errors.Is(err, gone) || !over {
		t.Errorf("the call gave %v; the question was over: %t", err, over)
	}
}

// A call that is cancelled ends at once, and the server is told.
func TestCancel(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	r.serve(entry)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.call(ctx, "mcp__fake__wait", `{}`, nil)
		done <- err
	}()
	r.until("the server has the call", func() bool { return there(filepath.Join(dir, "waiting")) })
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := <-done; !errors.Is(err, stopped) {
		t.Errorf("the call gave %v", err)
	}
	r.until("the server knows", func() bool { return there(filepath.Join(dir, "cancelled")) })
	if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the next call gave %q", got)
	}
}

func TestListChanged(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	before := r.tool("mcp__fake__echo").Spec()
	r.text("mcp__fake__grow", `{}`)
	r.until("the new tool is listed", func() bool {
		return slices.ContainsFunc(r.set.Tools(), func(t tools.Tool) bool { return t.Spec().Name == "mcp__fake__grown" })
	})
	if after := r.tool("mcp__fake__echo").Spec(); string(after.InputSchema) != string(before.InputSchema) {
		t.Errorf("echo was %s and is %s", before.InputSchema, after.InputSchema)
	}
}

func TestLog(t *testing.T) {
	r := newRig(t)
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	r.text("mcp__fake__log", `{}`)
	r.until("the log is passed on", func() bool { return len(r.told("mcp_log")) > 0 })
	if told := r.told("mcp_log"); len(told) != 1 || !strings.Contains(told[0], "disk") {
		t.Errorf("told was %q", told)
	}
}

// A process gets what its entry declares, what no program works without, and nothing else.
func TestEnvironment(t *testing.T) {
	r := newRig(t)
	t.Setenv("HOME", r.room.Root)
	entry, dir := r.fake("fake", "good")
	entry.Env = append(entry.Env, "API_TOKEN=declared")
	r.serve(entry)
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LC_ALL", "TZ", fakeMode, fakeDir, "API_TOKEN", "GORACE"}, name) && !strings.HasPrefix(name, "TOOLD") {
			t.Errorf("it has %s", line)
		}
	}
	if !strings.Contains(string(text), "API_TOKEN=declared") {
		t.Error("it lacks what its entry declares")
	}
}

// What changes in an entry starts its server again; what does not change leaves it alone.
func TestServeAgain(t *testing.T) {
	r := newRig(t)
	one, first := r.fake("one", "good")
	two, second := r.fake("two", "good")
	r.serve(one, two)
	was, other := pid(t, first), pid(t, second)
	two.Timeout = time.Second
	r.serve(one, two)
	if pid(t, first) != was || pid(t, second) == other {
		t.Error("the wrong one was started again")
	}
	r.serve(two)
	r.until("the first has ended", func() bool { return !alive(was) && !alive(other) })
	if len(r.set.Servers()) != 1 || slices.ContainsFunc(r.set.Tools(), func(t tools.Tool) bool { return strings.HasPrefix(t.Spec().Name, "mcp__one") }) {
		t.Errorf("what was taken away is still there: %+v", r.set.Servers())
	}
}

func TestSharing(t *testing.T) {
	fleet, room := &mcp.Fleet{}, tooltest.NewRoom(t)
	a, b := newRigOf(t, fleet, room), newRigOf(t, fleet, room)
	entry, dir := a.fake("fake", "good")
	entry.Shared = true
	a.serve(entry)
	first := pid(t, dir)
	b.serve(entry)
	if pid(t, dir) != first {
		t.Error("it was started twice")
	}
	a.set.Close()
	if got := b.text("mcp__fake__echo", `{"text":"b"}`); got != "b" || !alive(first) {
		t.Errorf("without the first session it gives %q", got)
	}
	if _, err := b.call(t.Context(), "mcp__fake__die", `{}`, nil); code(err) != "server_gone" {
		t.Errorf("ending it gave %v", err)
	}
	if got := b.text("mcp__fake__echo", `{"text":"b"}`); got != "b" {
		t.Errorf("started again for the second session it gives %q", got)
	}
	second := pid(t, dir)
	b.set.Close()
	if alive(first) || alive(second) {
		t.Error("it outlives its last session")
	}
}

// Results are kept where the entry asks for it, and of tools that say they only read.
func TestCache(t *testing.T) {
	r := newRig(t)
	entry, dir := r.fake("fake", "good")
	entry.CacheTTL = time.Hour
	r.serve(entry)
	for _, input := range []string{`{"text":"kept","n":1}`, `{ "n":1, "text":"kept" }`, `{"text":"other"}`} {
		r.text("mcp__fake__echo", input)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "echoes")); string(text) != "xx" {
		t.Errorf("a tool that only reads was called %d times in place of 2, %v", len(text), err)
	}
	for range 3 {
		r.text("mcp__fake__write", `{}`)
	}
	if got := r.text("mcp__fake__write", `{}`); got != "xxxx" {
		t.Errorf("a tool that changes something was called %d times in place of 4", len(got))
	}
}

// Servers start side by side; one that does not start hinders nobody.
func TestOneFails(t *testing.T) {
	r := newRig(t)
	good, _ := r.fake("good", "good")
	crash, _ := r.fake("crash", "crash-initialize")
	missing := mcp.Entry{Name: "missing", Command: "no-such-program-anywhere", Origin: "settings.json:7"}
	nowhere := mcp.Entry{Name: "nowhere", URL: "http://127.0.0.1:1/mcp"}
	wrong := mcp.Entry{Name: "wrong", URL: "ftp://example.com/"}
	ambiguous := good
	ambiguous.Name = "good__echo"
	r.serve(good, crash, missing, nowhere, wrong, ambiguous)
	for name, why := range map[string]string{"crash": "crashed at initialize", "missing": "not in PATH", "nowhere": "refused", "wrong": "not an http", "good__echo": "underscore"} {
		if s := r.status(name); s.State == mcp.Ready || !strings.Contains(s.Why, why) {
			t.Errorf("%s is %+v", name, s)
		}
	}
	if got := r.text("mcp__good__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the good one gives %q", got)
	}
	if len(r.told("mcp_server_failed")) < 4 {
		t.Errorf("told was %q", r.told("mcp_server_failed"))
	}
}
