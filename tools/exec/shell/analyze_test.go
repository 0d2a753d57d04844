package shell

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// labelled is a command with the answer that it must get. In commands.jsonl the
// note is where the label comes from; traps.jsonl holds the pairs of traps and
// of their harmless neighbours; in everyday.jsonl the note is why a command
// that looks harmless, or is, is refused.
type labelled struct {
	Command  string `json:"command"`
	ReadOnly bool   `json:"read_only"`
	Note     string `json:"note"`
}

var labelledFiles = []string{"testdata/commands.jsonl", "testdata/traps.jsonl", "testdata/everyday.jsonl"}

func readLabelled(t testing.TB, file string) []labelled {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []labelled
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var c labelled
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v: %s", file, err, s.Text())
		}
		all = append(all, c)
	}
	return all
}

func TestReadOnly(t *testing.T) {
	for _, file := range labelledFiles {
		for _, c := range readLabelled(t, file) {
			a := Analyze(c.Command)
			if a.ReadOnly != c.ReadOnly {
				t.Errorf("%q\n  read-only: %v, labelled %v %s\n  reason: %s", c.Command, a.ReadOnly, c.ReadOnly, c.Note, a.Reason)
			}
			checkConsistent(t, c.Command, a)
		}
	}
}

// checkConsistent holds for every analysis of every text.
func checkConsistent(t testing.TB, script string, a Analysis) {
	t.Helper()
	if a.Concurrent && !a.ReadOnly {
		t.Errorf("%q: concurrent but not read-only", script)
	}
	if a.Reason.Empty() != a.Concurrent {
		t.Errorf("%q: concurrent %v, reason %q", script, a.Concurrent, a.Reason)
	}
	if a.Err != nil && (a.ReadOnly || !a.Unlisted || a.Last != "") {
		t.Errorf("%q: %v, yet read-only %v, unlisted %v, last %q", script, a.Err, a.ReadOnly, a.Unlisted, a.Last)
	}
	for _, c := range a.Commands {
		if len(c.Assigns) > 0 && (c.Transparent || c.ReadOnly && c.Name != "" && c.Name != "read") {
			t.Errorf("%q: %q is transparent or read-only in spite of %q", script, c.Text, c.Assigns)
		}
	}
	if !a.ReadOnly {
		checkBlamed(t, script, a)
		return
	}
	if !a.Opaque.Empty() || len(a.Writes) > 0 {
		t.Errorf("%q: read-only, yet opaque %q, writes %q", script, a.Opaque, a.Writes)
	}
	for _, c := range a.Commands {
		if !c.ReadOnly || !c.Literal && !strings.HasPrefix(c.Name, "[[") && !strings.HasPrefix(c.Name, "((") {
			t.Errorf("%q: read-only, yet %q is not", script, c.Text)
		}
	}
	for _, r := range a.Redirects {
		if r.Writes || !r.Target.foretold() {
			t.Errorf("%q: read-only, yet %s %s", script, r.Op, r.Target.Text)
		}
	}
}

// checkBlamed: a script that is not read-only has a part to which a rule can refer that is
// not read-only either.
func checkBlamed(t testing.TB, script string, a Analysis) {
	t.Helper()
	blamed := a.Err != nil || !a.Opaque.Empty()
	for _, c := range a.Commands {
		blamed = blamed || !c.ReadOnly && !c.Transparent && !c.DenyOnly
	}
	for _, r := range a.Redirects {
		blamed = blamed || r.Writes || !r.Target.foretold()
	}
	if !blamed {
		t.Errorf("%q is not read-only (%s), but each of its parts is", script, a.Reason)
	}
}
