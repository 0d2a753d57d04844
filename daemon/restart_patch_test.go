package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestKilledInAPatch: a daemon that is killed while ApplyPatch renames files leaves each of them old or new, and nothing beside
// them. The result of the call names files that are new.
func TestKilledInAPatch(t *testing.T) {
	const files = 200
	h := prepare(t).outside()
	kill := h.spawn()
	parts := []string{"*** Begin Patch"}
	for i := range files {
		h.file(fmt.Sprintf("f%03d", i), "old\n")
		parts = append(parts, fmt.Sprintf("*** Update File: f%03d", i), "@@", "-old", "+new")
	}
	input, err := json.Marshal(map[string]string{"patch": strings.Join(append(parts, "*** End Patch"), "\n")})
	if err != nil {
		t.Fatal(err)
	}
	c := h.join("s", free())
	c.use("patch", "ApplyPatch", string(input))
	c.until("patch accepted")
	for content := func(name string) string { data, _ := os.ReadFile(filepath.Join(h.root, name)); return string(data) }; content("f000") != "new\n"; {
		if ended := resultsOf(h.records("s"))["patch"]; ended != nil && ended.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
			t.Fatalf("it ended: %v", ended)
		}
	}
	kill()

	h.start()
	result := resultsOf(h.records("s"))["patch"]
	entries, err := os.ReadDir(h.root)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(h.root, entry.Name()))
		switch {
		case strings.HasPrefix(entry.Name(), ".toold-"):
			t.Errorf("%s was left behind", entry.Name())
		case err != nil || !strings.HasPrefix(entry.Name(), "f"):
		case string(data) == "new\n":
			changed = append(changed, entry.Name())
		case string(data) != "old\n":
			t.Errorf("%s is %q", entry.Name(), data)
		}
	}
	t.Logf("%d of %d files were changed", len(changed), files)
	if result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK {
		if len(changed) != files {
			t.Errorf("it ended well, and %d files were changed", len(changed))
		}
		return
	}
	text := result.GetContent()[0].GetText()
	if result.GetOutcome() != tooldv1.Outcome_OUTCOME_INTERRUPTED || len(changed) == 0 || !strings.Contains(text, "these are different now: "+filepath.Join(h.root, changed[0])) {
		t.Errorf("%v: %q, and %q were changed", result.GetOutcome(), text, changed)
	}
	if more := len(changed) - 10; more > 0 && !strings.Contains(text, fmt.Sprintf("and %d more", more)) {
		t.Errorf("%q, and %d were changed", text, len(changed))
	}
}
