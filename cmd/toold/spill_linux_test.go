package main

// An output that was too long for its result: later sessions of the same user over the same root can read the file that the
// result names. What is cut, and where, is not known here.

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSpilledOutputIsReadable: also where each call is a session of its own.
func TestSpilledOutputIsReadable(t *testing.T) {
	spilled(t, ordinary(t))
}

func TestSpilledOutputIsReadableWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	spilled(t, ordinary(t))
}

func TestSpilledOutputIsReadableAsNobody(t *testing.T) {
	asNobody(t, "testdata/ordinary", "^TestSpilledOutputIsReadable$")
}

var wholeOutput = regexp.MustCompile(`the whole output is in (\S+)\]`)

func spilled(t *testing.T, h *house) {
	t.Helper()
	root, other := h.room(t, "spilled", nil), h.room(t, "elsewhere", nil)
	call := func(root, tool, input string) (string, error) {
		out, err := self(t, t.Context(), h.environ, root, "call", tool, input).CombinedOutput()
		return string(out), err
	}
	out, err := call(root, "Bash", bashed("seq 1 30000"))
	named := wholeOutput.FindStringSubmatch(out)
	if err != nil || named == nil {
		t.Fatalf("no file is named (%v):\n%.2000s", err, out)
	}
	path := named[1]
	uses := [][2]string{
		{"Read", fmt.Sprintf(`{"file_path":%q,"offset":29990}`, path)},
		{"Bash", bashed("tail -n 5 " + path)},
		{"Bash", bashed("tail -n 5 < " + path + "; ps >/dev/null")},
		{"Grep", fmt.Sprintf(`{"pattern":"^29999$","path":%q,"output_mode":"content"}`, path)},
	}
	for _, use := range uses {
		if out, err := call(root, use[0], use[1]); err != nil || !strings.Contains(out, "29999") {
			t.Errorf("toold call %s %s: %v\n%.2000s", use[0], use[1], err, out)
		}
		if out, err := call(other, use[0], use[1]); err == nil || strings.Contains(out, "29999") {
			t.Errorf("from another root: toold call %s %s: %v\n%.2000s", use[0], use[1], err, out)
		}
	}
	for _, use := range [][2]string{
		{"Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, path)},
		{"Read", fmt.Sprintf(`{"file_path":%q}`, path+"/../../../journal.db")},
		{"Bash", bashed("echo x > " + path)},
	} {
		if out, err := call(root, use[0], use[1]); err == nil {
			t.Errorf("toold call %s %s went well:\n%.2000s", use[0], use[1], out)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 30000 {
		t.Errorf("the output was changed (%v)", err)
	}
}
