package daemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// agentUses are run by toold and by the SDK, each in a directory of its own. alike is how the results are: "same" text, the same
// lines but "numbered", or only the "outcome", in other words.
var agentUses = []struct{ name, input, alike string }{
	{"write", `{"file_path":"sub/a.txt","content":"one\ntwo\nthree\n"}`, "outcome"},
	{"write", `{"file_path":"b.txt","content":""}`, "outcome"},
	{"read", `{"file_path":"sub/a.txt"}`, "numbered"},
	{"read", `{"file_path":"sub/a.txt","view_range":[2,2]}`, "numbered"},
	{"read", `{"file_path":"sub/a.txt","view_range":[2,0]}`, "numbered"},
	{"read", `{"file_path":"sub/a.txt","view_range":[1]}`, "outcome"},
	{"read", `{"file_path":"no.txt"}`, "outcome"},
	{"read", `{"file_path":"sub"}`, "outcome"},
	{"edit", `{"file_path":"sub/a.txt","old_string":"two","new_string":"2"}`, "outcome"},
	{"edit", `{"file_path":"sub/a.txt","old_string":"t","new_string":"$&"}`, "outcome"},
	{"edit", `{"file_path":"sub/a.txt","old_string":"no such","new_string":"2"}`, "outcome"},
	{"edit", `{"file_path":"sub/a.txt","old_string":"e","new_string":"E"}`, "outcome"},
	{"edit", `{"file_path":"sub/a.txt","old_string":"e","new_string":"E","replace_all":true}`, "outcome"},
	{"edit", `{"file_path":"no.txt","old_string":"e","new_string":"E"}`, "outcome"},
	{"write", `{"file_path":"sub/a.txt","content":"over\n"}`, "outcome"},
	{"bash", `{"command":"echo one"}`, "same"},
	{"bash", `{"command":"cd sub; export X=1; pwd"}`, "same"},
	{"bash", `{"command":"pwd; echo $X"}`, "same"},
	{"bash", `{"command":"cat a.txt; printf 'no end'"}`, "same"},
	{"bash", `{"command":"false"}`, "outcome"},
	{"bash", `{"command":"sleep 30","timeout_ms":100}`, "outcome"},
	{"bash", `{}`, "outcome"},
	{"bash", `{"restart":true}`, "outcome"},
	{"bash", `{"command":"pwd; echo \"[$X]\""}`, "same"},
	{"bash", `{"command":"read x; echo \"<$x>\""}`, "same"},
	{"grep", `{"pattern":"ov.r"}`, "same"},
	{"grep", `{"pattern":"ov.r","path":"sub"}`, "same"},
	{"grep", `{"pattern":"no such"}`, "outcome"},
	{"grep", `{"pattern":"("}`, "outcome"},
}

// agentDifferences are calls that end in another way here, as docs/models.md lists them, with what the result has in it.
var agentDifferences = []struct{ name, input, want string }{
	{"bash", `{"command":"pwd","restart":true}`, "!restart goes with an empty command"},
	{"write", `{"file_path":"unread.txt","content":"y"}`, "!"},
	{"edit", `{"file_path":"unread.txt","old_string":"no such","new_string":"y"}`, "!"},
	{"read", `{"file_path":"/etc/hostname"}`, "     1\t"}, // in this mode; it asks in the mode default
	{"grep", `{"pattern":"no such"}`, "No matches"},
}

// TestAgentToolsetOfTheSDK runs the calls with the SDK's own implementation beside this one, and compares results and files.
func TestAgentToolsetOfTheSDK(t *testing.T) {
	const sdk = "../tools/memory/testdata/sdk"
	if _, err := os.Stat(filepath.Join(sdk, "node_modules/@anthropic-ai/sdk")); err != nil {
		if os.Getenv("TOOLD_CI") != "" {
			t.Fatal("this test needs \"make clients\"")
		}
		t.Skip("this test needs \"make clients\"")
	}
	theirs := resolved(t, t.TempDir())
	var calls []string
	for _, u := range agentUses {
		calls = append(calls, fmt.Sprintf(`{"name":"%s","input":%s}`, u.name, u.input))
	}
	node := exec.CommandContext(t.Context(), "node", "agent.js", theirs)
	node.Dir, node.Stdin, node.Stderr = sdk, strings.NewReader("["+strings.Join(calls, ",")+"]"), new(bytes.Buffer)
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, node.Stderr)
	}
	var wanted []struct{ Text, Error string }
	if err := json.Unmarshal(out, &wanted); err != nil {
		t.Fatal(err)
	}
	h := serve(t)
	h.root = resolved(t, h.root)
	c := h.join("s", free())
	call := func(id, name, input string) (text string, failed bool) {
		c.ask(&tooldv1.ToolUse{NativeJson: fmt.Sprintf(`{"type":"agent.tool_use","id":"%s","name":"%s","input":%s}`, id, name, input)})
		c.endTurn()
		result := c.results()[id]
		return strings.ReplaceAll(result.GetContent()[0].GetText(), h.root, "ROOT"), result.GetIsError()
	}
	for i, u := range agentUses {
		got, failed := call(fmt.Sprint("id", i), u.name, u.input)
		want := strings.ReplaceAll(wanted[i].Text+wanted[i].Error, theirs, "ROOT")
		if !alike(u.alike, got, want) || failed != (wanted[i].Error != "") {
			t.Errorf("%s %s (%s)\n toold %t %q\n SDK   %t %q", u.name, u.input, u.alike, failed, got, !failed, want)
		}
	}
	same := exec.CommandContext(t.Context(), "diff", "-r", h.root, theirs)
	if out, err := same.CombinedOutput(); err != nil {
		t.Errorf("the files differ: %v\n%s", err, out)
	}
	h.file("unread.txt", "x\n")
	for i, u := range agentDifferences {
		got, failed := call(fmt.Sprint("other", i), u.name, u.input)
		if want, fails := strings.CutPrefix(u.want, "!"); failed != fails || !strings.Contains(got, want) {
			t.Errorf("%s %s: %t %q, want %q", u.name, u.input, failed, got, u.want)
		}
	}
}

var lineNumber = regexp.MustCompile(`(?m)^ *\d+\t`)

// alike reports whether toold's text is as like the SDK's as it should be.
func alike(how, got, want string) bool {
	got, want = strings.TrimSuffix(got, "\n"), strings.TrimSuffix(want, "\n")
	switch how {
	case "same":
		return got == want
	case "numbered": // what follows the lines, and whether the last one ends, is told in other words
		text, _, _ := strings.Cut(lineNumber.ReplaceAllString(got, ""), "\n(")
		return strings.TrimSuffix(text, "\n") == strings.TrimSuffix(want, "\n")
	}
	return how == "outcome"
}
