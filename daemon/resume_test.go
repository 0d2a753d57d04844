// Clients that go away, come back, take over, or never read.

package daemon_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestEveryRecordOnce: whoever attaches again with the last number seen gets every record once, however often the
// connection is cut while calls run.
func TestEveryRecordOnce(t *testing.T) {
	h := serve(t)
	path := h.file("f", "text\n")
	main := h.join("s", free())
	main.until("")
	var reader sync.WaitGroup
	seen := map[uint64]int{}
	done := make(chan struct{})
	reader.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		last := uint64(0)
		for ended := 0; ended < 20; {
			ctx, cancel := context.WithCancel(context.Background())
			watch, err := h.sessions().Watch(ctx, &tooldv1.WatchRequest{SessionId: "s", AfterSeq: &last})
			for n := random.IntN(40); err == nil && n >= 0 && ended < 20; n-- {
				var response *tooldv1.WatchResponse
				if response, err = watch.Recv(); err != nil {
					t.Error(err)
				} else if seq := response.GetEvent().GetSeq(); seq > 0 {
					seen[seq]++
					last = seq
				}
				if response.GetEvent().GetTurnEnded() != nil {
					ended++
				}
			}
			cancel()
		}
		close(done)
	})
	for turn := range 20 {
		send := func() {
			for n := range 10 {
				name, input := "Read", `{"file_path":"`+path+`"}`
				if n%4 == 3 {
					name, input = "Write", fmt.Sprintf(`{"file_path":"%s/%d.txt","content":"%d\n"}`, h.root, n, turn)
				}
				main.use(fmt.Sprintf("%d.%d", turn, n), name, input)
			}
			main.endTurn()
		}
		send()
		if turn%2 == 1 { // the main stream breaks too, with its turn under way; what may be lost is sent again
			last := main.events[len(main.events)-1].GetSeq()
			main.cancel()
			main = h.converse()
			main.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: &last})
			send()
		}
		main.until(fmt.Sprintf("turn %d ended 10/", turn+1))
	}
	<-done
	reader.Wait()
	session, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= session.GetSession().GetLastSeq(); seq++ {
		if seen[seq] != 1 {
			t.Errorf("record %d came %d times", seq, seen[seq])
		}
	}
}

// speaksOfTurn reports whether a warning is about an open turn.
func speaksOfTurn(warning string) bool {
	return strings.Contains(warning, "is open, and what there is of it so far is not sent")
}

// TestResumeOnTheMainStream: a stream that breaks ends no turn; the next one is told of it, gets what it missed, and
// tool uses that it sends again do not run again.
func TestResumeOnTheMainStream(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free())
	c.pass("a", reads)
	g.await(t, "a")
	last := c.until("a started").GetSeq()
	c.cancel()
	c = h.converse()
	hello := c.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: &last})
	open := hello.GetOpenTurns()
	if len(open) != 1 || open[0].GetTurn() != 1 || len(open[0].GetOpenToolUseIds()) != 1 || open[0].GetOpenToolUseIds()[0] != "a" {
		t.Errorf("open turns %v, want turn 1 with a", open)
	}
	if warned := hello.GetWarnings(); slices.ContainsFunc(warned, speaksOfTurn) {
		t.Errorf("a client that asks for the records is warned: %q", warned)
	}
	other := h.converse()
	if warned := other.attach(&tooldv1.Attach{SessionId: "s", Role: tooldv1.Role_ROLE_COMPANION}).GetWarnings(); slices.ContainsFunc(warned, speaksOfTurn) {
		t.Errorf("a companion is warned: %q", warned)
	}
	c.cancel()
	c = h.converse()
	if warned := c.attach(&tooldv1.Attach{SessionId: "s"}).GetWarnings(); !slices.ContainsFunc(warned, speaksOfTurn) {
		t.Errorf("a client that does not ask for the records is not told what it misses: %q", warned)
	}
	c.pass("a", reads)
	again := c.until("a accepted")
	if !again.GetAccepted().GetReplayed() || again.GetSeq() == 0 {
		t.Errorf("%v, want it replayed", again)
	}
	c.until("a started")
	g.open("a")
	c.until("a OK")
	c.pass("a", reads)
	c.until("a OK")
	c.pass("b", reads)
	g.await(t, "b")
	g.open("b")
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	want(t, tell(c.events[len(c.events)-1]), "turn 1 ended 2/1")
}

// TestDisplaced: the last main stream wins, and what the older one still says changes nothing.
func TestDisplaced(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	old := h.join("s", free())
	old.pass("a", reads)
	g.await(t, "a")
	c := h.join("s", free())
	for range 100 {
		if old.stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{Id: "late", Name: "Gate"}}}) != nil {
			break
		}
	}
	refused(t, old.closed(), codes.Aborted, "displaced")
	g.open("a")
	c.endTurn()
	c.until("turn 1 ended 1/1")
	_, err := h.tools().GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: "late"})
	refused(t, err, codes.NotFound, "unknown_call")
}

// TestOnDisconnect: what becomes of calls when the main stream goes away.
func TestOnDisconnect(t *testing.T) {
	keep, cancel := tooldv1.OnDisconnect_ON_DISCONNECT_KEEP, tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL
	for _, test := range []struct {
		name    string
		attach  bool
		policy  tooldv1.OnDisconnect
		outcome string
	}{
		{"named", true, 0, "OK"},
		{"named, cancel", true, cancel, "CANCELLED"},
		{"anonymous", false, 0, "CANCELLED"},
		{"anonymous, keep", true, keep, "OK"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := gateTool()
			h := prepare(t, g)
			h.grace = 20 * time.Millisecond
			h.start()
			c := h.converse()
			if test.attach {
				c.attach(&tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Options: &tooldv1.Options{OnDisconnect: test.policy.Enum()}})
			}
			c.pass("a", reads)
			name := "s"
			if !test.attach {
				name = c.until("attached").GetAttached().GetSessionId()
			}
			g.await(t, "a")
			watch, err := h.sessions().Watch(t.Context(), &tooldv1.WatchRequest{SessionId: name, AfterSeq: new(uint64)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := watch.Recv(); err != nil { // it watches
				t.Fatal(err)
			}
			c.cancel()
			if test.outcome == "OK" {
				g.open("a")
			}
			for {
				response, err := watch.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if result := response.GetEvent().GetToolResult(); result != nil {
					want(t, result.GetOutcome().String(), "OUTCOME_"+test.outcome)
					return
				}
			}
		})
	}
}

// TestComeBackInTime: within the grace a client that comes back finds its call running.
func TestComeBackInTime(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("s", free(&tooldv1.Options{OnDisconnect: tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL.Enum()}))
	c.pass("a", reads)
	g.await(t, "a")
	c.cancel()
	c = h.join("s", nil)
	g.open("a")
	c.endTurn()
	c.until("a OK")
}

// TestRunToolClientGone: the call of a RunTool whose client has gone is cancelled, and its session is closed.
func TestRunToolClientGone(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.grace = 20 * time.Millisecond
	h.start()
	ctx, cancel := context.WithCancel(t.Context())
	run, err := h.tools().RunTool(ctx, &tooldv1.RunToolRequest{Name: "Gate", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: fmt.Sprintf(reads, "a")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Recv(); err != nil {
		t.Fatal(err)
	}
	g.await(t, "a")
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if err != nil || len(list.GetSessions()) != 1 || !list.GetSessions()[0].GetAnonymous() {
		t.Fatalf("sessions %v, %v; want the anonymous one", list, err)
	}
	watch, err := h.sessions().Watch(t.Context(), &tooldv1.WatchRequest{SessionId: list.GetSessions()[0].GetSessionId(), AfterSeq: new(uint64)})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	events, err := drain(func() (*tooldv1.ExecuteResponse, error) {
		response, err := watch.Recv()
		return response.GetEvent(), err
	})
	refused(t, err, codes.Aborted, "session_closed")
	told := story(events)
	if len(told) < 2 || told[len(told)-3] != " CANCELLED cancelled" && !strings.HasSuffix(told[len(told)-3], " CANCELLED cancelled") || told[len(told)-1] != "closed" {
		t.Errorf("%q, want the call cancelled and the session closed", told)
	}
}

// TestClientThatNeverReads stalls nobody, and the daemon ends all the same.
func TestClientThatNeverReads(t *testing.T) {
	h := serve(t)
	path := h.file("big", strings.Repeat(strings.Repeat("x", 99)+"\n", 800))
	lazy := h.join("lazy", free())
	brisk := h.join("brisk", free())
	const calls = 60 // results of some 80 KiB each: far more than the wire holds
	for n := range calls {
		lazy.use(fmt.Sprint(n), "Read", `{"file_path":"`+path+`"}`)
	}
	lazy.endTurn()
	brisk.use("a", "Read", `{"file_path":"`+path+`"}`)
	brisk.endTurn()
	brisk.until("turn 1 ended 1/1")
	watch, err := h.sessions().Watch(t.Context(), &tooldv1.WatchRequest{SessionId: "lazy", AfterSeq: new(uint64)})
	if err != nil {
		t.Fatal(err)
	}
	for {
		response, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if response.GetEvent().GetTurnEnded() != nil {
			break
		}
	}
	want(t, len(lazy.events), 1)
	h.d.Stop()
	h.left()
}

// TestAttachAt: the places at which a stream can begin.
func TestAttachAt(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	c.use("a", "Read", `{"file_path":"`+h.file("f", "x\n")+`"}`)
	c.endTurn()
	last := c.until("turn 1").GetSeq()
	for _, test := range []struct {
		after uint64
		code  codes.Code
	}{{0, 0}, {last - 1, 0}, {last, 0}, {last + 1, codes.OutOfRange}} {
		c := h.converse()
		c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s", AfterSeq: &test.after}}})
		if err := c.rest(); test.code != 0 {
			refused(t, err, test.code, "after_seq_beyond_end")
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		want(t, uint64(len(c.events)-1), last-test.after)
	}
	_, err := drain(recvOf(t, h, &tooldv1.WatchRequest{SessionId: "s", AfterSeq: new(uint64), NoFollow: true}))
	if err != nil {
		t.Error(err)
	}
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	events, err := drain(recvOf(t, h, &tooldv1.WatchRequest{SessionId: "s", AfterSeq: new(uint64)}))
	if err != nil || tell(events[len(events)-1]) != "closed" {
		t.Errorf("%q, %v; want the closed session's records to its end", story(events), err)
	}
	call, err := h.tools().GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: "a"})
	if err != nil || call.GetState() != tooldv1.CallState_CALL_STATE_ENDED || len(call.GetRecords()) != 3 {
		t.Errorf("%v, %v; want the call's three records", call, err)
	}
	c = h.converse()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s"}}})
	refused(t, c.closed(), codes.NotFound, "unknown_session")
	c = h.converse()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s", Roots: []string{h.root}}}})
	refused(t, c.closed(), codes.FailedPrecondition, "session_closed")
}

func recvOf(t *testing.T, h *house, request *tooldv1.WatchRequest) func() (*tooldv1.ExecuteResponse, error) {
	t.Helper()
	watch, err := h.sessions().Watch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return func() (*tooldv1.ExecuteResponse, error) {
		response, err := watch.Recv()
		return response.GetEvent(), err
	}
}

// TestProgress: what a command prints is streamed while it runs, without a gap, in whole characters, and never after
// its result; ReadOutput has the same bytes.
func TestProgress(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	script := filepath.Join(h.root, "go")
	c.use("a", "Bash", `{"command":"for i in 1 2 3 4 5; do printf 'täx%d' $i; printf 'err%d' $i >&2; done; printf '\\303'; until [ -e go ]; do :; done; printf '\\244 end'"}`)
	var out, err strings.Builder
	for !strings.Contains(out.String(), "täx5") {
		chunk := c.until("").GetProgress().GetOutput()
		collect(t, chunk, &out, &err)
	}
	if e := os.WriteFile(script, nil, 0o600); e != nil {
		t.Fatal(e)
	}
	c.endTurn()
	for ended := false; !ended; {
		event := c.until("")
		if event.GetProgress() != nil && resultsOf(c.events)["a"] != nil {
			t.Error("progress after the result")
		}
		collect(t, event.GetProgress().GetOutput(), &out, &err)
		ended = event.GetTurnEnded() != nil
	}
	want(t, out.String(), "täx1täx2täx3täx4täx5ä end")
	want(t, err.String(), "err1err2err3err4err5")
	for channel, all := range map[tooldv1.Channel]string{tooldv1.Channel_CHANNEL_STDOUT: out.String(), tooldv1.Channel_CHANNEL_STDERR: err.String()} {
		read, e := h.tools().ReadOutput(t.Context(), &tooldv1.ReadOutputRequest{SessionId: "s", ToolUseId: "a", Channel: channel, Offset: 3, Follow: true})
		if e != nil {
			t.Fatal(e)
		}
		var got strings.Builder
		for {
			response, e := read.Recv()
			if e != nil {
				t.Fatal(e)
			}
			got.Write(response.GetData())
			if response.GetEnd() {
				break
			}
		}
		want(t, got.String(), all[3:])
	}
}

// collect adds a chunk to the channel that it is of.
func collect(t *testing.T, chunk *tooldv1.OutputChunk, out, err *strings.Builder) {
	t.Helper()
	to := map[tooldv1.Channel]*strings.Builder{tooldv1.Channel_CHANNEL_STDOUT: out, tooldv1.Channel_CHANNEL_STDERR: err}[chunk.GetChannel()]
	if to == nil {
		return
	}
	if uint64(to.Len()) != chunk.GetOffset() || chunk.GetSkipped() != 0 {
		t.Errorf("a chunk at %d, after %d bytes, %d skipped", chunk.GetOffset(), to.Len(), chunk.GetSkipped())
	}
	to.WriteString(chunk.GetText())
}
