package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// shellReply is the item that answers a shell_call.
type shellReply struct {
	Type      string
	CallID    string `json:"call_id"`
	MaxOutput *int   `json:"max_output_length"`
	Output    []struct {
		Stdout, Stderr string
		Outcome        struct {
			Type     string
			ExitCode *int `json:"exit_code"`
		}
	}
}

// reply returns the answer to the shell_call of that id, in short.
func (c *conversation) shellReply(id string) (reply shellReply, ends []string) {
	c.t.Helper()
	var native string
	for native == "" {
		if r := c.until("").GetToolResult(); r.GetToolUseId() == id {
			native = r.GetNativeJson()
		} else if r.GetNativeJson() != "" {
			c.t.Errorf("a command has an item of its own: %s", r.GetNativeJson())
		}
	}
	if err := json.Unmarshal([]byte(native), &reply); err != nil {
		c.t.Fatalf("%s: %v", native, err)
	}
	for _, o := range reply.Output {
		end := o.Outcome.Type
		if o.Outcome.ExitCode != nil {
			end += fmt.Sprint(" ", *o.Outcome.ExitCode)
		}
		ends = append(ends, end)
	}
	return reply, ends
}

func shellCallOf(id string, timeout int, commands ...string) *tooldv1.ToolUse {
	item := map[string]any{"type": "shell_call", "call_id": id, "status": "completed", "action": map[string]any{"commands": commands, "timeout_ms": timeout, "max_output_length": nil}}
	if timeout == 0 {
		item["action"].(map[string]any)["timeout_ms"] = nil
	}
	text, _ := json.Marshal(item)
	return &tooldv1.ToolUse{NativeJson: string(text)}
}

// TestShell: each command of a shell_call is a call of Bash with a verdict of its own. It begins where the item began, whatever the
// others have done, and the answer has one element for each.
func TestShell(t *testing.T) {
	h := prepare(t).outside()
	if err := os.WriteFile(h.settings, []byte(`{"permissions":{"deny":["Bash(rm *)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	c, _ := h.natively("s", -1)
	c.ask(shellCallOf("a", 0,
		"mkdir sub && cd sub && export X=1 && pwd", "pwd; echo \"[$X]\"", "echo out; echo err >&2; exit 3", "rm sub", "kill -9 $$", "seq 3000", "[ -d sub ]", " ",
	))
	reply, ends := c.shellReply("a")
	want := []string{"exit 0", "exit 0", "exit 3", "exit 126", "exit 137", "exit 0", "exit 0", "exit 126"}
	if reply.Type != "shell_call_output" || reply.CallID != "a" || reply.MaxOutput != nil || fmt.Sprint(ends) != fmt.Sprint(want) {
		t.Fatalf("%+v, want %q", reply, want)
	}
	for i, text := range []string{filepath.Join(h.root, "sub") + "\n", h.root + "\n[]\n", "out\n", "", "", "1\n2\n"} {
		if !strings.HasPrefix(reply.Output[i].Stdout, text) || text == "" && reply.Output[i].Stdout != "" && i != 4 {
			t.Errorf("command %d has printed %q, want %q", i, reply.Output[i].Stdout, text)
		}
	}
	if reply.Output[2].Stderr != "err\n" || !strings.Contains(reply.Output[3].Stderr, "Bash(rm *)") || !strings.Contains(reply.Output[7].Stderr, "empty") {
		t.Errorf("stderr is %q, %q and %q", reply.Output[2].Stderr, reply.Output[3].Stderr, reply.Output[7].Stderr)
	}
	if len(reply.Output[5].Stdout) < 10_000 {
		t.Errorf("a long output has %d characters", len(reply.Output[5].Stdout))
	}
	// The session is where it was.
	c.use("b", "Bash", `{"command":"pwd; echo \"[$X]\""}`)
	for {
		if r := c.until("").GetToolResult(); r.GetToolUseId() == "b" {
			if text := r.GetContent()[0].GetText(); text != h.root+"\n[]\n" {
				t.Errorf("behind it the shell is at %q", text)
			}
			break
		}
	}
	names := map[string]string{}
	for _, e := range c.events {
		if a := e.GetAccepted(); a != nil {
			names[a.GetToolUseId()] = a.GetName() + " " + a.GetNativeType() + " " + a.GetParentToolUseId()
		}
	}
	if names["a"] != "Shell shell_call " || names["a/0"] != "Bash  a" || names["a/7"] != "Bash  a" {
		t.Errorf("the record has %q", names)
	}
}

// TestShellEndsEarly: a command that takes too long, and a call that is stopped.
func TestShellEndsEarly(t *testing.T) {
	t.Parallel() // the first command waits until its time is over, which is long enough for the second one on a busy machine
	h := serve(t)
	c, _ := h.natively("s", -1)
	c.ask(shellCallOf("a", 4000, "echo begun; sleep 1000", "echo next"))
	reply, ends := c.shellReply("a")
	if want := []string{"timeout", "exit 0"}; fmt.Sprint(ends) != fmt.Sprint(want) || !strings.Contains(reply.Output[0].Stdout, "begun") {
		t.Errorf("%q, %+v, want %q", ends, reply, want)
	}
	mark := filepath.Join(h.root, "mark")
	c.ask(shellCallOf("b", 0, "touch mark; sleep 1000", "echo never"))
	for {
		if _, err := os.Stat(mark); err == nil {
			break
		}
		c.until("")
	}
	c.cancelCall("b")
	reply, ends = c.shellReply("b")
	if want := []string{"exit 130", "exit 130"}; fmt.Sprint(ends) != fmt.Sprint(want) || reply.Output[1].Stderr == "" {
		t.Errorf("%q, %+v, want %q", ends, reply, want)
	}
}

// TestOwnItemsAsEvents: the items of OpenAI's own tools in a stream of events are calls as soon as they are complete, and each
// has its answer in the form of the API.
func TestOwnItemsAsEvents(t *testing.T) {
	h := serve(t)
	h.file("a.txt", "one\ntwo\n")
	c, _ := h.natively("s", -1)
	for i, event := range []string{
		`{"type":"response.created","response":{"id":"resp_1"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"apply_patch_call","call_id":"p","status":"in_progress","operation":{"type":"update_file","path":"a.txt","diff":""}}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"apply_patch_call","call_id":"p","status":"completed","operation":{"type":"update_file","path":"a.txt","diff":"@@\n-one\n+1\n"},"caller":{"type":"direct"}}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-two\n+2\n*** End Patch"}}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"shell_call","call_id":"s","status":"completed","action":{"commands":["cat b.txt","exit 7"],"timeout_ms":60000,"max_output_length":100}}}`,
		`{"type":"response.completed","response":{"id":"resp_1"}}`,
	} {
		c.event("m", i, event)
	}
	c.until("turn 1 ended")
	root, _ := json.Marshal(h.root)
	at := strings.Trim(string(root), `"`)
	want := map[string]string{
		"p":   `{"type":"apply_patch_call_output","call_id":"p","status":"completed","output":"Updated ` + at + `/a.txt.\n","caller":{"type":"direct"}}`,
		"c":   `{"type":"custom_tool_call_output","call_id":"c","output":"Moved ` + at + `/a.txt to ` + at + `/b.txt.\n"}`,
		"s":   `{"type":"shell_call_output","call_id":"s","max_output_length":100,"output":[{"stdout":"1\n2\n","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"","outcome":{"type":"exit","exit_code":7}}]}`,
		"s/0": "", "s/1": "",
	}
	results := resultsOf(c.events)
	for id, native := range want {
		if got := results[id].GetNativeJson(); results[id] == nil || got != native {
			t.Errorf("%s is answered by %s, want %s", id, got, native)
		}
	}
	for _, e := range c.events {
		if a := e.GetAccepted(); a.GetToolUseId() == "c" && (a.GetName() != "ApplyPatch" || a.GetNativeType() != "custom_tool_call") {
			t.Errorf("the record has %v", a)
		}
	}
}
