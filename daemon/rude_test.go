// Clients without manners: none of them holds up another, and each gets what it is due.

package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// brisk does one call as another client, and so shows that the daemon is there for it.
func (h *house) brisk(id string) {
	h.t.Helper()
	c := h.join("brisk", free())
	c.use(id, "Bash", `{"command":"echo here"}`)
	c.until(id + " OK")
	c.endTurn()
	c.until("turn ")
	c.cancel()
}

// TestDrippingClient: one that takes an event only now and then gets every record in the end, and fewer, larger pieces of
// output on the way.
func TestDrippingClient(t *testing.T) {
	h := serve(t)
	c := h.join("drips", free())
	for n := range 5 {
		c.use(fmt.Sprint(n), "Bash", `{"command":"seq 20000"}`)
	}
	c.endTurn()
	for n := 0; ; n++ {
		if n < 20 {
			h.brisk(fmt.Sprint(n)) // meanwhile
		}
		event, err := c.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		c.events = append(c.events, event)
		if event.GetTurnEnded() != nil {
			break
		}
	}
	next := uint64(1)
	for _, event := range c.events {
		if seq := event.GetSeq(); seq != 0 && event.GetAttached() == nil {
			if seq < next {
				t.Fatalf("record %d comes behind %d", seq, next-1)
			}
			next = seq + 1
		}
	}
	want(t, len(resultsOf(c.events)), 5)
}

// TestFlood: what a session sends above its limit is refused call by call, and nobody else waits for it.
func TestFlood(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	c := h.join("floods", free())
	c.pass("first", writes)
	g.await(t, "first")
	const flood = 1500
	for n := range flood {
		c.use(fmt.Sprint(n), "Bash", `{"command":"true"}`)
	}
	h.brisk("b")
	c.cancelCall("first")
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{}}})
	c.endTurn()
	c.until("turn 1")
	counts := map[string]int{}
	for _, result := range resultsOf(c.events) {
		counts[strings.TrimSpace(result.GetOutcome().String()+" "+result.GetError().GetCode())]++
	}
	want(t, counts["OUTCOME_INVALID too_many_calls"], flood+1-1000)
	want(t, counts["OUTCOME_CANCELLED cancelled"], 1000)
}

// TestHalfClosedAtOnce: a client that says all it has to say and half-closes gets everything, and a stream that ends in
// order.
func TestHalfClosedAtOnce(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	c.use("a", "Bash", `{"command":"sleep 0.1; echo a"}`)
	c.use("b", "Bash", `{"command":"echo b", "run_in_background":true}`)
	if err := c.rest(); err != nil {
		t.Fatal(err)
	}
	want(t, outcomes(resultsOf(c.events)), map[string]string{"a": "OK", "b": "OK"})
}

// TestAThousandStreams: as many companions on one connection get the same records, and another connection is served
// meanwhile.
func TestAThousandStreams(t *testing.T) {
	h := serve(t)
	main := h.join("s", free())
	const streams = 999 // with the main one that is what one connection may have
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	companions := make([]*conversation, streams)
	for n := range companions {
		stream, err := h.tools().Execute(ctx)
		if err != nil {
			t.Fatal(err)
		}
		companions[n] = &conversation{t: t, stream: stream, cancel: hangUp}
		companions[n].attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64), Role: tooldv1.Role_ROLE_COMPANION})
	}
	other := prepareBeside(h)
	if _, err := other.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{}); err != nil {
		t.Fatal(err)
	}
	main.use("a", "Bash", `{"command":"echo a"}`)
	main.endTurn()
	last := main.until("turn 1").GetSeq()
	for _, c := range companions {
		if seq := c.until("turn 1").GetSeq(); seq != last {
			t.Fatalf("a companion has the turn's end as record %d, the main stream as %d", seq, last)
		}
	}
	hangUp()
	main.use("b", "Read", `{}`)
	main.endTurn()
	main.until("turn 2")
}

// prepareBeside is another connection to the same daemon.
func prepareBeside(h *house) *house {
	beside := *h
	beside.conn = nil
	beside.connect()
	h.t.Cleanup(func() { beside.conn.Close() })
	return &beside
}
