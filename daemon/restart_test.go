// Daemons that are killed, and what the next one makes of what they have left.

package daemon_test

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// spawn runs the daemon as a process of its own; the function that it gives kills it.
func (h *house) spawn() (kill func()) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), daemonSocket+"="+h.socket, daemonState+"="+h.state, daemonRoot+"="+h.root, daemonRules+"="+h.settings)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		if h.conn != nil {
			h.conn.Close()
			h.conn = nil
		}
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		kill()
		h.t.Fatalf("the daemon said %q (%v)", line, err)
	}
	h.connect()
	return kill
}

// records returns every record of a session.
func (h *house) records(session string) []*tooldv1.ExecuteResponse {
	h.t.Helper()
	watch, err := h.sessions().Watch(h.t.Context(), &tooldv1.WatchRequest{SessionId: session, AfterSeq: new(uint64), NoFollow: true})
	if err != nil {
		h.t.Fatal(err)
	}
	events, err := drain(func() (*tooldv1.ExecuteResponse, error) {
		response, err := watch.Recv()
		return response.GetEvent(), err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return events
}

// TestKilled: after kill -9 in the middle of a turn every call has exactly one result, none ran twice, and nothing of
// the dead daemon is running.
func TestKilled(t *testing.T) {
	h := prepare(t).outside()
	kill := h.spawn()
	path := h.file("f", "text\n")
	c := h.join("s", free())
	c.use("done", "Read", `{"file_path":"`+path+`"}`)
	c.until("done OK")
	c.use("runs", "Bash", `{"command":"echo once >> ran; echo $$; sleep 1000"}`)
	c.use("waits", "Bash", `{"command":"echo once >> ran"}`)
	c.until("waits accepted")
	var pid string
	for pid == "" {
		pid = strings.TrimSpace(c.until("").GetProgress().GetOutput().GetText())
	}
	kill()

	h.start()
	want(t, outcomes(resultsOf(h.records("s"))), map[string]string{"done": "OK", "runs": "INTERRUPTED interrupted", "waits": "INTERRUPTED interrupted"})
	told := story(h.records("s"))
	for _, once := range []string{"done OK", "runs INTERRUPTED interrupted", "waits INTERRUPTED interrupted", "turn 1 ended 3/3"} {
		if n := strings.Count(strings.Join(told, "\n"), once); n != 1 {
			t.Errorf("%q is told %d times in %q", once, n, told)
		}
	}
	results := resultsOf(h.records("s"))
	if text := results["runs"].GetContent()[0].GetText(); !strings.Contains(text, "may have had effects") || !strings.Contains(text, "Its output is in "+h.state) {
		t.Errorf("text %q, want that it may have had effects, and its output's file", text)
	}
	if text := results["waits"].GetContent()[0].GetText(); !strings.Contains(text, "was not started") {
		t.Errorf("text %q, want that it had not started", text)
	}
	if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil && !strings.Contains(string(status), "State:\tZ") {
		t.Errorf("process %s has outlived its daemon:\n%s", pid, status)
	}
	c = h.join("s", nil)
	c.use("runs", "Bash", `{"command":"echo once >> ran; echo $$; sleep 1000"}`)
	c.until("runs INTERRUPTED")
	c.use("new", "Bash", `{"command":"cat ran"}`)
	c.endTurn()
	if text := c.until("new OK").GetToolResult().GetContent()[0].GetText(); strings.Count(text, "once") != 1 {
		t.Errorf("it ran %q", text)
	}
	before := len(h.records("s"))
	h.stop()
	h.start()
	after := story(h.records("s"))
	if !slices.Equal(after[:len(told)], told) || len(h.records("s")) < before {
		t.Errorf("%q after another restart, want it to begin with %q", after, told)
	}
}

// TestKilledWhileResultsWait: an ending that ordered_results holds back is durable, and is told in its order.
func TestKilledWhileResultsWait(t *testing.T) {
	h := prepare(t)
	kill := h.spawn()
	ordered := true
	c := h.join("s", free(&tooldv1.Options{OrderedResults: &ordered}))
	c.use("a", "Bash", `{"command":"sleep 1000"}`)
	c.use("b", "Read", `{"file_path":"`+h.file("f", "text\n")+`"}`)
	c.use("c", "Bash", `{"command":"sleep 1000"}`)
	for started := 0; started < 3; { // each at its own time
		if c.until("").GetStarted() != nil {
			started++
		}
	}
	for running := uint32(3); running > 2; { // until b has ended
		info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		running = info.GetRunningCalls()
	}
	kill()
	h.start()
	var told []string
	for _, event := range h.records("s") {
		if event.GetToolResult() != nil {
			told = append(told, tell(event))
		}
	}
	want(t, told, []string{"a INTERRUPTED interrupted", "b OK", "c INTERRUPTED interrupted"})
}

// TestStateSurvives: what a session has come to is there after a restart, its client's environment is not.
func TestStateSurvives(t *testing.T) {
	h := serve(t)
	c := h.converse()
	c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Options: free(), Env: map[string]string{"PATH": os.Getenv("PATH"), "FROM_CLIENT": "yes"}})
	path := h.file("sub/f", "one\n")
	c.use("1", "Bash", `{"command":"cd sub && export OF_CALL=kept && echo $FROM_CLIENT"}`)
	c.use("2", "Read", `{"file_path":"`+path+`"}`)
	c.use("3", "TodoWrite", `{"todos":[{"content":"x","status":"pending","activeForm":"xing"}]}`)
	c.endTurn()
	c.until("turn 1")
	if text := resultsOf(c.events)["1"].GetContent()[0].GetText(); !strings.Contains(text, "yes") {
		t.Errorf("text %q, want the client's variable", text)
	}
	h.stop()
	h.start()
	session, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	s := session.GetSession()
	if !strings.HasSuffix(s.GetWorkingDirectory(), "/sub") || len(s.GetTodos()) != 1 || s.GetOptions().GetPermissionMode() != free().GetPermissionMode() {
		t.Errorf("session %v, want its directory, todos and options", s)
	}
	c = h.join("s", nil)
	c.use("4", "Bash", `{"command":"touch x; echo $OF_CALL.$FROM_CLIENT."}`)
	c.use("5", "Edit", `{"file_path":"`+path+`","old_string":"one","new_string":"two"}`)
	c.endTurn()
	c.until("turn 2")
	results := resultsOf(c.events)
	if text := results["4"].GetContent()[0].GetText(); !strings.Contains(text, "kept..") {
		t.Errorf("text %q, want the call's export and not the client's", text)
	}
	want(t, results["5"].GetOutcome(), tooldv1.Outcome_OUTCOME_OK)
}

// TestDrain: running calls get their time, what waits is interrupted, nothing new is taken, and clients get it all.
func TestDrain(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.pass("runs", writes)
	c.pass("waits", writes)
	c.until("waits accepted")
	g.await(t, "runs")
	if _, err := h.daemon().Shutdown(t.Context(), &tooldv1.ShutdownRequest{}); err != nil {
		t.Fatal(err)
	}
	c.until("waits INTERRUPTED")
	other := h.converse()
	if err := other.closed(); reasonOf(err) != "shutting_down" {
		t.Errorf("a new stream: %v", err)
	}
	g.open("runs")
	if err := c.closed(); reasonOf(err) != "shutting_down" {
		t.Errorf("the stream ends with %v", err)
	}
	h.left()
	want(t, outcomes(resultsOf(c.events)), map[string]string{"runs": "OK", "waits": "INTERRUPTED interrupted"})
	want(t, tell(c.events[len(c.events)-1]), "turn 1 ended 2/2")
}
