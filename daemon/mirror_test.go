package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A copyMirror is a mirror that can be held up, and refuse.
type copyMirror struct {
	mu      sync.Mutex // held while the mirror is held up
	epoch   string
	changes []journal.Change
	refuse  error
}

func (m *copyMirror) append(epoch string, changes []journal.Change, _ func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch = epoch
	if m.refuse == nil {
		m.changes = append(m.changes, changes...)
	}
	return m.refuse
}

// TestMirrorGoesFirst: while the mirror does not answer no call begins to act and no client is shown anything; when it
// refuses the daemon ends. Another daemon goes on from what the mirror has.
func TestMirrorGoesFirst(t *testing.T) {
	gate := gateTool()
	h := prepare(t, gate)
	m := &copyMirror{}
	config := h.config()
	config.Mirror = m.append
	h.begin(config)
	c := h.join("s", free())
	c.use("first", "Write", `{"file_path":"`+filepath.Join(h.root, "first")+`","content":"1"}`)
	c.until("first OK")
	c.pass("through", reads)
	c.until("through started")
	gate.await(t, "through")
	m.mu.Lock()
	held := len(m.changes)
	c.use("second", "Write", `{"file_path":"`+filepath.Join(h.root, "second")+`","content":"2"}`)
	gate.open("through") // its result, too, waits for the mirror
	m.refuse = errors.New("another has taken over")
	m.mu.Unlock()
	h.left()
	_ = c.rest() // which ends with the daemon
	if last := story(c.events); slices.Contains(last, "through OK") {
		t.Errorf("the client was shown %q, which the mirror does not have", last)
	}
	if _, err := os.Stat(filepath.Join(h.root, "second")); err == nil {
		t.Error("a call has acted of whose start the mirror does not know")
	}

	successor := prepare(t)
	store, err := journal.Open(filepath.Join(successor.state, "journal"), journal.Config{Epoch: m.epoch, Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range m.changes[:held] {
		if err := store.Apply(change); err != nil {
			t.Fatal(err)
		}
	}
	moved, err := json.Marshal(mirror.Moved{Code: "node_lost", Message: "The files are older."})
	if err != nil {
		t.Fatal(err)
	}
	rolledBack, err := json.Marshal(mirror.RolledBack{ToolUseID: "first", Turn: 1, Reason: "The files are older."})
	if err != nil {
		t.Fatal(err)
	}
	key := callKey(t, m.changes, "first")
	if err := store.Apply(journal.Change{Log: "s", State: []journal.Put{
		{Key: mirror.MovedKey, Value: moved}, {Key: mirror.CheckpointKey + key}, {Key: mirror.RolledBackKey + key, Value: rolledBack},
	}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	successor.start()
	again := successor.converse()
	attached := again.attach(&tooldv1.Attach{SessionId: "s", AfterSeq: new(uint64)})
	want(t, attached.GetEpoch(), m.epoch)
	again.until("turn 1 ended")
	told := outcomes(resultsOf(again.events))
	want(t, told["first"], "OK")
	want(t, told["through"], "INTERRUPTED node_lost")
	want(t, told["second"], "")
	want(t, codesOf(again.events), []string{"bypass_mode", "node_lost"})
	_, err = successor.sessions().Restore(t.Context(), &tooldv1.RestoreRequest{SessionId: "s", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "first"}})
	refused(t, err, codes.FailedPrecondition, "rolled_back")
	_, err = successor.sessions().Restore(t.Context(), &tooldv1.RestoreRequest{SessionId: "s", CallTurn: new(uint64(1)), Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "first"}})
	refused(t, err, codes.FailedPrecondition, "rolled_back")
	_, err = successor.sessions().Restore(t.Context(), &tooldv1.RestoreRequest{SessionId: "s", Point: &tooldv1.RestoreRequest_Turn{Turn: 1}})
	refused(t, err, codes.FailedPrecondition, "rolled_back")
	for _, tells := range []bool{true, false} { // once
		result := again.do(fmt.Sprint("next", tells), "TodoWrite", `{"todos":[]}`)
		want(t, strings.Contains(shown(result), "Note: The files are older."), tells)
	}
}

// callKey returns the key of a call.
func callKey(t *testing.T, changes []journal.Change, id string) string {
	t.Helper()
	for _, change := range changes {
		for _, entry := range change.Entries {
			var event tooldv1.ExecuteResponse
			if err := proto.Unmarshal(entry.Body, &event); err == nil && event.GetStarted().GetToolUseId() == id {
				return entry.Call
			}
		}
	}
	t.Fatalf("the call %q has not started", id)
	return ""
}

// codesOf returns the codes of notices.
func codesOf(events []*tooldv1.ExecuteResponse) (codes []string) {
	for _, e := range events {
		if notice := e.GetNotice(); notice != nil {
			codes = append(codes, notice.GetCode())
		}
	}
	return codes
}

// TestAcceptedWaitsForTheStart: that a call was accepted goes to the mirror together with its start, so that a call that
// changes something waits for the mirror twice. A machine that is too busy to start it within the bound makes it three times.
func TestAcceptedWaitsForTheStart(t *testing.T) {
	h := prepare(t)
	var mu sync.Mutex
	groups := map[int]bool{} // by how often the mirror was asked during one call
	asked := 0
	config := h.config()
	config.Mirror = func(string, []journal.Change, func()) error {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return nil
	}
	h.begin(config)
	c := h.join("s", free())
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
	for n := 0; !groups[2]; n++ {
		if n == 500 {
			t.Fatalf("no call of 500 waits for the mirror twice, but so often: %v", groups)
		}
		before := count()
		result := c.do(fmt.Sprint("w", n), "Write", fmt.Sprintf(`{"file_path":%q,"content":"%d"}`, filepath.Join(h.root, fmt.Sprint("f", n)), n))
		want(t, result.GetOutcome(), tooldv1.Outcome_OUTCOME_OK)
		want(t, c.about(fmt.Sprint("w", n)), "accepted, started, OK")
		after := count() - before
		if groups[after] = true; after < 2 {
			t.Fatalf("a call has waited for the mirror %d times, so that it has acted before its start was there, or shown its result", after)
		}
	}
}
