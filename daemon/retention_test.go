// What goes when the journal is too large or too old, what stays, and what clients are told.

package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// large has the session make so many results of 20 KB each, in a turn of their own.
func (c *conversation) large(path, prefix string, n int) {
	c.t.Helper()
	for i := range n {
		c.use(fmt.Sprint(prefix, i), "Bash", `{"command":"cat `+path+`"}`)
	}
	c.endTurn()
	c.until("turn ")
}

func (h *house) largeFile() string {
	return h.file("large", strings.Repeat(strings.Repeat("x", 99)+"\n", 200))
}

func (h *house) retain(now time.Time) {
	h.t.Helper()
	if err := h.d.Retain(now); err != nil {
		h.t.Fatal(err)
	}
}

// kept returns the session's first and last record, and whether it is there at all.
func (h *house) kept(session string) (first, last uint64, there bool) {
	h.t.Helper()
	got, err := h.sessions().GetSession(h.t.Context(), &tooldv1.GetSessionRequest{SessionId: session})
	if err != nil {
		refused(h.t, err, codes.NotFound, "unknown_session")
		return 0, 0, false
	}
	return got.GetSession().GetFirstKeptSeq(), got.GetSession().GetLastSeq(), true
}

// TestSessionLimit: a session above its limit loses its oldest records, but none of an open turn; who has missed some is
// told, and what was run is not run again.
func TestSessionLimit(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"journal_session_bytes": 65536`)
	h.start()
	c := h.join("s", free())
	c.use("once", "Bash", `{"command":"echo ran >> ran; echo printed"}`)
	c.use("bad", "Bash", `{"command":"echo failed; exit 3"}`)
	c.endTurn()
	c.until("turn 1")
	path := h.largeFile()
	c.large(path, "a", 8)
	c.pass("g", writes)
	begun := c.until("g accepted").GetSeq()
	g.await(t, "g")
	outputs := func() int {
		files, err := filepath.Glob(filepath.Join(h.state, "sessions", "s", "s.1-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if outputs() == 0 {
		t.Fatal("the calls have left no output")
	}
	h.retain(time.Now())
	first, _, _ := h.kept("s")
	if first <= 10 || first > begun {
		t.Errorf("the oldest record is %d, want it between the first calls and the open turn's, which is %d", first, begun)
	}
	want(t, outputs(), 0)
	for n := range 4 { // the open turn alone is above the limit
		c.use(fmt.Sprint("b", n), "Bash", `{"command":"cat `+path+`"}`)
	}
	g.open("g")
	for ended := 0; ended < 5; {
		if c.until("").GetToolResult() != nil {
			ended++
		}
	}
	h.retain(time.Now())
	first, last, _ := h.kept("s")
	want(t, first, begun)

	c.use("once", "Bash", `{"command":"echo ran >> ran; echo printed"}`)
	again := c.until("once accepted")
	if !again.GetAccepted().GetReplayed() || again.GetSeq() != 0 {
		t.Errorf("%v, want it replayed without a number", again)
	}
	if text := c.until("once OK").GetToolResult().GetContent()[0].GetText(); !strings.Contains(text, "not run again") {
		t.Errorf("the result says %q", text)
	}
	c.use("bad", "Bash", `{"command":"echo failed; exit 3"}`)
	c.until("bad ERROR result_dropped")
	if text, err := os.ReadFile(filepath.Join(h.root, "ran")); err != nil || string(text) != "ran\n" {
		t.Errorf("it ran %q (%v)", text, err)
	}
	_, err := h.tools().GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: "once"})
	refused(t, err, codes.NotFound, "unknown_call")

	for after, told := range map[uint64]int{3: 1, 0: 0, first - 1: 0, first: 0} {
		late := h.converse()
		hello := late.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: &after})
		want(t, hello.GetFirstKeptSeq(), first)
		want(t, len(hello.GetWarnings()), told)
		late.until("b3 OK")
		missing := 0
		for _, event := range late.events {
			if event.GetNotice().GetCode() == "records_missing" {
				missing++
				details := event.GetNotice().GetDetails().AsMap()
				want(t, []any{details["first_seq"], details["last_seq"], details["damaged"]}, []any{float64(after + 1), float64(first - 1), false})
			}
		}
		want(t, missing, told)
	}
	h.stop()
	h.start() // the outcome is known there, too
	c = h.join("s", nil)
	c.use("bad", "Bash", `{"command":"echo failed; exit 3"}`)
	c.until("bad ERROR result_dropped")
	if now, _, _ := h.kept("s"); now < first || now > last {
		t.Errorf("the oldest record is %d after a restart, was %d of %d", now, first, last)
	}
}

// TestUnsentRecordsGoLast: what a stream has still to be sent goes at twice the limit alone, and the stream is told which
// numbers it does not see: they and those it does see are all there are.
func TestUnsentRecordsGoLast(t *testing.T) {
	h := prepare(t)
	h.limit(`"journal_session_bytes": 400000`)
	h.start()
	c := h.join("s", free())
	path := h.largeFile()
	slow, err := h.sessions().Watch(t.Context(), &tooldv1.WatchRequest{SessionId: "s", AfterSeq: new(uint64)})
	if err != nil {
		t.Fatal(err)
	}
	c.large(path, "a", 30) // 600 KB
	h.retain(time.Now())
	first, _, _ := h.kept("s")
	c.large(path, "b", 60)
	h.retain(time.Now())
	hard, last, _ := h.kept("s")
	if hard <= first || hard > last {
		t.Errorf("the oldest record was %d, is %d of %d", first, hard, last)
	}
	next, told := uint64(1), 0
	for next <= last {
		response, err := slow.Recv()
		if err != nil {
			t.Fatal(err)
		}
		event := response.GetEvent()
		if event.GetNotice().GetCode() == "records_missing" {
			details := event.GetNotice().GetDetails().AsMap()
			want(t, details["first_seq"].(float64), float64(next))
			next = uint64(details["last_seq"].(float64)) + 1
			if told++; next <= first {
				t.Errorf("records up to %d are gone that were not above the hard limit", next)
			}
		} else if event.GetSeq() > 0 {
			want(t, event.GetSeq(), next)
			next++
		}
	}
	want(t, told, 1)
}

// TestOldestGoFirst: above the limit of all sessions go what clients have acknowledged, then closed sessions whole, the
// oldest first, then the oldest records of the others.
func TestOldestGoFirst(t *testing.T) {
	h := prepare(t)
	h.limit(`"journal_bytes": 1048576`)
	h.start()
	path := h.largeFile()
	sessions := map[string]*conversation{}
	fill := func(name string, n int) {
		c := h.join(name, free())
		c.use("out", "Bash", `{"command":"echo printed"}`)
		c.large(path, "x", n)
		sessions[name] = c
	}
	fill("closed1", 18)
	fill("closed2", 18)
	for _, name := range []string{"closed1", "closed2"} {
		if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: name}); err != nil {
			t.Fatal(err)
		}
		if err := sessions[name].closed(); err == nil {
			t.Error("the stream of a closed session ends well")
		}
	}
	h.retain(time.Now())
	fill("acked", 22)
	_, last, _ := h.kept("acked")
	sessions["acked"].say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Ack{Ack: &tooldv1.Ack{Seq: last + 100}}})
	sessions["acked"].use("after", "Read", `{"file_path":"`+path+`"}`)
	sessions["acked"].endTurn()
	sessions["acked"].until("turn 2")
	h.retain(time.Now())
	if first, _, _ := h.kept("acked"); first == 1 {
		t.Error("nothing of what was acknowledged is gone")
	}
	for _, name := range []string{"closed1", "closed2"} {
		if first, _, there := h.kept(name); !there || first != 1 {
			t.Errorf("%s lost records while others were acknowledged", name)
		}
	}

	fill("young", 30)
	h.retain(time.Now())
	if _, _, there := h.kept("closed1"); there {
		t.Error("the oldest closed session is still there")
	}
	if _, err := os.Stat(filepath.Join(h.state, "sessions", "closed1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its outputs: %v", err)
	}
	if _, _, there := h.kept("closed2"); !there {
		t.Error("the younger closed session is gone, too")
	}

	fill("young2", 30)
	h.retain(time.Now())
	if _, _, there := h.kept("closed2"); there {
		t.Error("the other closed session is still there")
	}
	if first, _, _ := h.kept("young"); first == 1 {
		t.Error("the oldest records of all are still there")
	}
	if first, _, _ := h.kept("young2"); first != 1 {
		t.Error("the youngest are gone")
	}
}

// TestAge: what is older than the limit goes: of an open session the records, a closed one whole.
func TestAge(t *testing.T) {
	h := prepare(t)
	h.limit(`"journal_age": "1h"`)
	h.start()
	path := h.file("f", "text\n")
	c := h.join("open", free())
	c.large(path, "x", 2)
	other := h.join("closed", free())
	other.large(path, "x", 2)
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "closed"}); err != nil {
		t.Fatal(err)
	}
	if err := other.closed(); err == nil {
		t.Error("the stream of a closed session ends well")
	}
	h.retain(time.Now().Add(30 * time.Minute))
	for _, name := range []string{"open", "closed"} {
		if first, _, there := h.kept(name); first != 1 || !there {
			t.Errorf("%s has lost records before their time", name)
		}
	}
	h.retain(time.Now().Add(2 * time.Hour))
	if first, last, _ := h.kept("open"); first != last+1 {
		t.Errorf("the open session keeps %d to %d", first, last)
	}
	if _, _, there := h.kept("closed"); there {
		t.Error("the closed session is still there")
	}
	c.use("y", "Read", `{"file_path":"`+path+`"}`)
	c.until("y OK")
}
