// A journal that was damaged while no daemon ran.

package daemon_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestDamagedJournal: one page of the journal is overwritten. The session comes back with the rest of its records, and
// everybody is told which are lost; the other session has all of its own.
func TestDamagedJournal(t *testing.T) {
	h := serve(t)
	path := h.file("f", "text\n")
	last := map[string]uint64{}
	for _, name := range []string{"hit", "sound"} {
		c := h.join(name, free())
		for n := range 60 {
			c.use(fmt.Sprintf("%s%03d", name, n), "Read", `{"file_path":"`+path+`"}`)
		}
		c.endTurn()
		last[name] = c.until("turn ").GetSeq()
	}
	info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	h.stop()
	file := filepath.Join(h.state, "journal", "journal.db")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page, leaf = 4096, 0x0d
	harmed := false
	for at := 0; at < len(content) && !harmed; at += page {
		if p := content[at : at+page]; p[0] == leaf && bytes.Contains(p, []byte("hit030")) {
			copy(p, strings.Repeat("garbage ", page/8))
			harmed = true
		}
	}
	if err := os.WriteFile(file, content, 0o600); err != nil || !harmed {
		t.Fatal(err, harmed)
	}
	h.start()
	now, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(now.GetWarnings(), "\n")
	if !strings.Contains(warnings, `session "hit" has lost the records`) || strings.Contains(warnings, `"sound"`) || !strings.Contains(warnings, "journal.db.damaged-") {
		t.Errorf("warnings:\n%s", warnings)
	}
	if now.GetEpoch() == info.GetEpoch() {
		t.Error("the epoch is the same although records are lost")
	}
	for _, name := range []string{"hit", "sound"} {
		c := h.converse()
		hello := c.attach(&tooldv1.Attach{SessionId: name, AfterSeq: new(uint64)})
		c.until("turn ")
		next, missing := uint64(1), 0
		for _, event := range c.events {
			if event.GetNotice().GetCode() == "records_missing" {
				details := event.GetNotice().GetDetails().AsMap()
				want(t, []any{details["first_seq"], details["damaged"]}, []any{float64(next), true})
				next = uint64(details["last_seq"].(float64)) + 1
				missing++
			} else if event.GetSeq() > 0 {
				want(t, event.GetSeq(), next)
				next++
			}
		}
		want(t, next, last[name]+1)
		lost := map[string]int{"hit": 1}[name]
		want(t, []int{missing, len(hello.GetWarnings())}, []int{lost, lost})
		c.use("goes on", "Read", `{"file_path":"`+path+`"}`)
		c.until("goes on OK")
	}
}

// TestDamagedState: what the journal knew of calls beside their records is lost for some. None of them runs again.
func TestDamagedState(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	const calls = 60
	use := func(n int) {
		c.use(fmt.Sprintf("id%03d", n), "Bash", fmt.Sprintf(`{"command":"echo %d >> ran"}`, n))
	}
	for n := range calls {
		use(n)
	}
	c.endTurn()
	c.until("turn 1")
	h.stop()
	file := filepath.Join(h.state, "journal", "journal.db")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page, leaf = 4096, 0x0a // of a table that is an index
	harmed := 0
	for at := 0; at < len(content); at += page {
		if p := content[at : at+page]; p[0] == leaf && bytes.Contains(p, []byte(`"id":"id03`)) {
			copy(p, strings.Repeat("garbage ", page/8))
			harmed++
		}
	}
	if err := os.WriteFile(file, content, 0o600); err != nil || harmed == 0 {
		t.Fatal(err, harmed)
	}
	h.start()
	info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || !strings.Contains(strings.Join(info.GetWarnings(), "\n"), `session "s" has lost a part of its state`) {
		t.Errorf("%v, %v; want a warning of lost state", info.GetWarnings(), err)
	}
	c = h.join("s", nil)
	for n := range calls {
		use(n)
	}
	c.use("new", "Bash", `{"command":"cat ran"}`)
	c.until("new OK")
	for len(resultsOf(c.events)) < calls+1 {
		c.until("") // the results of the others may come behind
	}
	want(t, len(resultsOf(c.events)), calls+1)
	if text := resultsOf(c.events)["new"].GetContent()[0].GetText(); len(strings.Fields(text)) != calls {
		t.Errorf("%d calls ran, want %d", len(strings.Fields(text)), calls)
	}
}

// TestUnreadableJournal: sessions begin again, and the file is kept.
func TestUnreadableJournal(t *testing.T) {
	h := prepare(t)
	dir := filepath.Join(h.state, "journal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || len(info.GetWarnings()) != 1 || !strings.Contains(info.GetWarnings()[0], "sessions begin again") {
		t.Errorf("%v, %v; want one warning", info, err)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "journal.db.damaged-*")); err != nil || len(kept) != 1 {
		t.Errorf("kept files %v (%v)", kept, err)
	}
	c := h.join("s", free())
	c.use("a", "Read", `{"file_path":"`+h.file("f", "text\n")+`"}`)
	c.until("a OK")
}
