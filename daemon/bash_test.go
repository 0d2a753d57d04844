// Real commands: a failure that stops its siblings with everything that they have started, and the bounds of a session.

package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"google.golang.org/protobuf/types/known/durationpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestBashAborts: a failed command stops what runs beside it, a setsid grandchild too, and says which and why.
func TestBashAborts(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	c.use("long", "Bash", `{"command":"sleep 1000"}`)
	c.until("long started")
	c.use("fails", "Bash", `{"command":"grep x absent"}`)
	c.use("waits", "Bash", `{"command":"touch never"}`)
	c.endTurn()
	results := c.results()
	want(t, outcomes(results), map[string]string{"long": "ABORTED aborted", "fails": "ERROR exit_code", "waits": "ABORTED aborted"})
	if text := results["waits"].GetContent()[0].GetText(); !strings.Contains(text, "Bash(grep x absent) failed in the same turn") || !strings.Contains(text, "2") {
		t.Errorf("text %q, want the command and its exit code", text)
	}
	if _, err := os.Stat(h.root + "/never"); err == nil {
		t.Error("an aborted call has run")
	}
}

// TestBenignExit: a grep without a match aborts nothing.
func TestBenignExit(t *testing.T) {
	h := serve(t)
	h.file("f", "text\n")
	c := h.join("s", free())
	c.use("none", "Bash", `{"command":"grep nothing f"}`)
	c.use("next", "Bash", `{"command":"touch made"}`)
	c.endTurn()
	want(t, outcomes(c.results()), map[string]string{"none": "OK", "next": "OK"})
}

// TestCancelledBashLeavesNothing: also what has left the command's own kernel session is gone when the result comes.
func TestCancelledBashLeavesNothing(t *testing.T) {
	h := prepare(t).outside()
	h.start()
	c := h.join("s", free())
	c.use("a", "Bash", `{"command":"setsid sleep 1000 & echo $!; wait"}`)
	var pid string
	for pid == "" {
		pid = strings.TrimSpace(c.until("").GetProgress().GetOutput().GetText())
	}
	c.cancelCall("a")
	result := c.until("a CANCELLED").GetToolResult()
	if !strings.Contains(result.GetContent()[0].GetText(), pid) {
		t.Errorf("content %v, want what it had printed first", result.GetContent())
	}
	if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil && !strings.Contains(string(status), "State:\tZ") {
		t.Errorf("process %s lives on:\n%s", pid, status)
	}
}

// TestOwnChild: what a call has started cannot use the daemon, not even as an orphan; another process of the user can.
func TestOwnChild(t *testing.T) {
	h := prepare(t).outside()
	h.start()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	call := callSocket + "=" + h.socket + " " + self
	c := h.join("s", free())
	c.use("child", "Bash", `{"command":"`+call+`"}`)
	c.use("orphan", "Bash", `{"command":"(setsid env `+call+` >said &) ; until [ -s said ]; do :; done; cat said"}`)
	c.endTurn()
	results := c.results()
	for _, id := range []string{"child", "orphan"} {
		if said := results[id].GetContent()[0].GetText(); !strings.HasPrefix(said, "own_child\n") {
			t.Errorf("%s was told %q", id, said)
		}
	}
	friend := exec.Command(self)
	friend.Env = append(os.Environ(), callSocket+"="+h.socket)
	if said, err := friend.Output(); err != nil || string(said) != "\n" {
		t.Errorf("another process was told %q, %v", said, err)
	}
}

// TestTimeLimit: the client's limit is cut to the tool's, which the result says; a call over its limit is stopped.
func TestTimeLimit(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	bash := func(id string, limit time.Duration, command string) {
		use := text("Bash", `{"command":"`+command+`"}`)
		use.Id, use.Timeout = id, durationpb.New(limit)
		c.ask(use)
	}
	bash("over", 50*time.Millisecond, "sleep 1000")
	c.until("over TIMED_OUT timed_out")
	c.endTurn()
	bash("cut", 100*time.Hour, "true")
	content := c.until("cut OK").GetToolResult().GetContent()
	if said := content[len(content)-1].GetText(); !strings.Contains(said, "100h0m0s was cut to 10m0s") {
		t.Errorf("%q, want it said that the limit was cut", said)
	}
}

// TestLimits: what a session and the daemon take on is bounded, and refused in words.
func TestLimits(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"open_calls": 2, "sessions": 2, "output_bytes": 10000, "max_running_calls": 16`)
	h.start()
	c := h.join("s", free())
	c.pass("a", reads)
	c.pass("b", reads)
	c.pass("c", reads)
	c.until("c INVALID too_many_calls")
	g.await(t, "a", "b")
	g.open("a", "b")
	c.endTurn()
	c.until("turn 1 ended 3/1")
	c.pass("c", reads) // its id is free
	g.await(t, "c")
	g.open("c")
	c.until("c OK")
	c.use("loud", "Bash", `{"command":"yes"}`)
	result := c.until("loud ").GetToolResult()
	if result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK || result.GetUsage().GetOutputBytes() > 10_000 {
		t.Errorf("result %v, want the output cut at the limit", result)
	}

	second := h.join("second", nil)
	third := h.converse()
	third.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "third", Roots: []string{h.root}}}})
	refused(t, third.closed(), codes.ResourceExhausted, "too_many_sessions")
	if err := second.rest(); err != nil {
		t.Fatal(err)
	}
	h.join("third", nil) // second is idle and makes room
	info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.GetSessions() != 2 || info.GetLimits().GetOutputBytes() != 10_000 || info.GetVersion() != "test" || info.GetPid() != int32(os.Getpid()) ||
		info.GetEpoch() == "" || len(info.GetFeatures()) == 0 || info.GetDefaultRoot() != h.root || info.GetStarted() == nil || info.GetSandbox() == tooldv1.SandboxTier_SANDBOX_TIER_UNSPECIFIED {
		t.Errorf("info %v", info)
	}
	health := info.GetHealth()
	if run := health.GetPhases()[3]; run.GetPhase() != "run" || run.GetCalls() == 0 || run.GetP99().AsDuration() == 0 || health.GetCallsPerSecond() == 0 ||
		health.GetMemoryBytes() == 0 || health.GetJournalBytes() == 0 {
		t.Errorf("health %v", health)
	}
}

// TestNamedSessionsStay: where a session has to make room, one that the daemon has named goes before those that clients have
// named, and of those the longest idle one; also of sessions at rest.
func TestNamedSessionsStay(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(*testing.T, string) *house
	}{
		{"idle", func(t *testing.T, limits string) *house {
			h := prepare(t)
			h.limit(limits)
			h.start()
			return h
		}},
		{"at rest", restful},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.begin(t, `"sessions": 3`)
			open := func(name string) string {
				c := h.converse()
				id := c.attach(&tooldv1.Attach{SessionId: name, Roots: []string{h.root}}).GetSessionId()
				if err := c.rest(); err != nil {
					t.Fatal(err)
				}
				return id
			}
			left := func() (names []string) {
				list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list.GetSessions() {
					names = append(names, s.GetSessionId())
				}
				return slices.Sorted(slices.Values(names))
			}
			open("a")
			open("")
			open("b")
			open("c") // in place of the unnamed one, though a is idle for longer
			want(t, left(), []string{"a", "b", "c"})
			open("d") // there are none but named ones
			want(t, left(), []string{"b", "c", "d"})
		})
	}
}

// TestFairness: a thousand queued calls of one session do not make another's one call wait behind them.
func TestFairness(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"max_running_calls": 2`)
	h.start()
	greedy, modest := h.join("greedy", free()), h.join("modest", free())
	for n := range 900 {
		greedy.pass(fmt.Sprint(n), reads)
	}
	g.await(t, "0")
	greedy.until("899 accepted")
	modest.pass("one", reads)
	g.await(t, "one")
	g.open("one")
	modest.until("one OK")
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "greedy"}); err != nil {
		t.Fatal(err)
	}
	refused(t, greedy.closed(), codes.Aborted, "session_closed")
	ended := resultsOf(greedy.events)
	if len(ended) != 900 {
		t.Errorf("%d results, want one for each of 900 calls", len(ended))
	}
}

// TestIdleExit: a daemon that nobody uses ends by itself, and one that is used does not.
func TestIdleExit(t *testing.T) {
	h := prepare(t)
	config := h.config()
	config.IdleExit = 3 * time.Second // longer than a client takes to come
	h.begin(config)
	c := h.join("s", nil)
	c.use("a", "Read", `{"file_path":"`+h.file("f", "")+`"}`)
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	h.left()
}
