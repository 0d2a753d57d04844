package workspace_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools/fs/workspace"
)

func state(hash string, seen ...workspace.Range) workspace.State {
	return workspace.State{Size: 1, Hash: hash, Lines: 100, Seen: seen}
}

func TestMemoryJoinsWhatWasSeen(t *testing.T) {
	m := workspace.NewReadState()
	m.Merge(map[string]workspace.State{"/f": state("a", workspace.Range{First: 1, Last: 10})})
	m.Merge(map[string]workspace.State{"/f": state("a", workspace.Range{First: 11, Last: 20})})
	got, _ := m.Lookup("/f")
	if want := []workspace.Range{{First: 1, Last: 20}}; !slices.Equal(got.Seen, want) || got.Unseen() != 80 {
		t.Errorf("seen %v, unseen %d", got.Seen, got.Unseen())
	}
	m.Merge(map[string]workspace.State{"/f": state("b", workspace.Range{First: 5, Last: 5})})
	if got, _ := m.Lookup("/f"); got.Unseen() != 99 {
		t.Errorf("another content inherits what was seen of the one before: %+v", got)
	}
}

func TestMemoryThroughJSON(t *testing.T) {
	m := workspace.NewReadState()
	s := state("a", workspace.Range{First: 3, Last: 4})
	s.Mtime, s.Inode, s.Text = time.Unix(5, 7).UTC(), 9, []byte("x")
	m.Merge(map[string]workspace.State{"/f": s})
	kept, _ := m.Lookup("/f")
	data, err := json.Marshal(map[string]workspace.State{"/f": kept})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]workspace.State
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	s.Text = nil
	if diff := cmp.Diff(map[string]workspace.State{"/f": s}, back); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryKeepsBoundedText(t *testing.T) {
	m := workspace.NewReadState()
	for i := range 200 {
		s := state(fmt.Sprint(i))
		s.Text = make([]byte, workspace.KeptFile)
		m.Merge(map[string]workspace.State{fmt.Sprint("/", i): s})
	}
	kept := 0
	for i := range 200 {
		s, _ := m.Lookup(fmt.Sprint("/", i))
		kept += len(s.Text)
	}
	if last, _ := m.Lookup("/199"); last.Text == nil || kept > 8<<20 || kept < 7<<20 {
		t.Errorf("%d bytes are kept, the latest %d", kept, len(last.Text))
	}
}

// However ranges come, the lines counted as unseen are those that no range held.
func TestUnseenCountsLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, seen := workspace.NewReadState(), map[int]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "reads") {
			r := workspace.Range{First: rapid.IntRange(1, 100).Draw(t, "first")}
			r.Last = min(r.First+rapid.IntRange(0, 20).Draw(t, "length"), 100)
			m.Merge(map[string]workspace.State{"/f": state("a", r)})
			for n := r.First; n <= r.Last; n++ {
				seen[n] = true
			}
		}
		if got, _ := m.Lookup("/f"); got.Unseen() != 100-len(seen) {
			t.Fatalf("unseen %d, want %d: %v", got.Unseen(), 100-len(seen), got.Seen)
		}
	})
}
