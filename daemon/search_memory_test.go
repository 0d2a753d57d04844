package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/grep"
)

// TestSearchMemory: GetInfo reports what Grep remembers, and what changes is found all the same.
func TestSearchMemory(t *testing.T) {
	h := prepare(t, grep.Tool())
	h.limit(`"search_bytes": 100000`)
	h.start()
	h.file("a.txt", "needle\n")
	h.file("below/b.txt", "other\n")
	c := h.join("s", free())
	calls := 0
	search := func(pattern string) string {
		calls++
		id := fmt.Sprint("call", calls)
		c.use(id, "Grep", fmt.Sprintf(`{"pattern":%q}`, pattern))
		return c.until(id + " OK").GetToolResult().GetContent()[0].GetText()
	}
	held := func() *tooldv1.SearchMemory {
		info, err := h.daemon().GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return info.GetSearchMemory()
	}
	for range 2000 { // until the files have settled
		if found := search("needle"); !strings.Contains(found, "a.txt") {
			t.Fatalf("found %q, want a.txt", found)
		}
		if held().GetFiles() == 2 && held().GetDirectories() == 2 {
			break
		}
	}
	got := held()
	if got.GetFiles() == 0 {
		t.Skip("nothing is remembered of files on this file system")
	}
	if got.GetFiles() != 2 || got.GetDirectories() != 2 || got.GetTextBytes() != 13 || got.GetBytes() == 0 || got.GetBytes() > got.GetLimitBytes() || got.GetLimitBytes() != 100_000 {
		t.Errorf("it holds %v, want two files of 13 bytes in two directories", got)
	}
	if found := search("elsewhere"); strings.Contains(found, ".txt") {
		t.Errorf("found %q, want nothing", found)
	}
	h.file("below/b.txt", "needle\n")
	h.file("new/c.txt", "needle\n")
	if found := search("needle"); strings.Count(found, ".txt") != 3 {
		t.Errorf("found %q, want three files", found)
	}
}
