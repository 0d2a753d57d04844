// The sender alone, on a clock of its own.

package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// TestRepeatThenHalfClose: a stream that has sent again what it was asked for, and has nothing else to wait for, ends
// at once and not when something wakes it.
func TestRepeatThenHalfClose(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := journal.Open(dir, journal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		log, err := store.Create("s")
		if err != nil {
			t.Fatal(err)
		}
		last, err := log.Append(entry(&pipeline.Use{ID: "a", Key: "1-0"}, pipeline.Accepted{}))
		if err != nil {
			t.Fatal(err)
		}
		s := &session{log: log}
		var sent []*tooldv1.ExecuteResponse
		st := newStream(s, last, eventSender{send: func(message any) error {
			event := &tooldv1.ExecuteResponse{}
			wire, err := newCodec().Marshal(message)
			if err == nil {
				err = proto.Unmarshal(wire.Materialize(), event)
			}
			sent = append(sent, event)
			return err
		}})
		st.again, st.halfClosed = []string{"1-0"}, true
		began := time.Now()
		if err := st.run(t.Context()); err != nil {
			t.Error(err)
		}
		if len(sent) != 1 || !sent[0].GetAccepted().GetReplayed() {
			t.Errorf("sent %v, want the acceptance replayed", sent)
		}
		if late := time.Since(began); late > 0 { // nothing but a timer moves this clock
			t.Errorf("it ended %s late", late)
		}
	})
}
