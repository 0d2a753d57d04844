package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

var demoFiles = map[string]string{
	"README.md": "# greet\n\nA program that greets. It greets in one language.\n",
	".toold/settings.json": `{
  "permissions": {
    "allow": ["Edit(./*)"],
    "deny": ["Bash(rm *)"]
  }
}
`,
	"greet.go": "package main\n\nimport \"fmt\"\n\n// main greets the world.\nfunc main() {\n" +
		"\tfmt.Println(\"Hello, world\")\n}\n",
}

// A part is one tool use of the demo's turn, with the outcome that it is there to show.
type part struct {
	tool, input string // WORKSPACE in input stands for the workspace's path
	want        tooldv1.Outcome
	point       string // said above its result; empty: the result is not shown
}

const (
	demoOK      = tooldv1.Outcome_OUTCOME_OK
	demoError   = tooldv1.Outcome_OUTCOME_ERROR
	demoDenied  = tooldv1.Outcome_OUTCOME_DENIED
	demoAborted = tooldv1.Outcome_OUTCOME_ABORTED
	demoAsked   = tooldv1.Outcome_OUTCOME_UNSPECIFIED // whatever the person makes of it
)

// demoParts is one turn: a batch that overlaps, a serial edit that a rule of the workspace allows, a call that another one
// denies, one that is asked about, and a failure that takes its siblings with it, the one that runs and the one that waits.
var demoParts = []part{
	{"Read", `{"file_path":"WORKSPACE/README.md"}`, demoOK, ""},
	{"Read", `{"file_path":"WORKSPACE/greet.go"}`, demoOK, ""},
	{"Grep", `{"pattern":"greet","output_mode":"content"}`, demoOK, ""},
	{"Bash", `{"command":"echo 'checking 1 of 3'; sleep 0.5; echo 'checking 2 of 3'; sleep 0.5; echo 'checking 3 of 3'; sleep 0.5"}`, demoOK, ""},
	{"Bash", `{"command":"sleep 1"}`, demoOK, ""},
	{
		"Edit", `{"file_path":"WORKSPACE/greet.go","old_string":"Hello, world","new_string":"Good morning"}`, demoOK,
		"What is not read-only needs a permission. A rule gives it to edits here; the edit shows what it changed:",
	},
	{
		"Bash", `{"command":"rm -r ../other-project"}`, demoDenied,
		"Another rule denies this, and says where it stands:",
	},
	{
		"Bash", `{"command":"touch built"}`, demoAsked,
		"No rule is about this command, so the user has to be asked:",
	},
	{"Read", `{"file_path":"WORKSPACE/greet.go"}`, demoOK, ""},
	{
		"Bash", `{"command":"sleep 30"}`, demoAborted,
		"A sibling that ran is stopped, with everything it had started:",
	},
	{
		"Bash", `{"command":"sleep 0.7; ls no-such-folder"}`, demoError,
		"A failed command:",
	},
	{
		"Write", `{"file_path":"WORKSPACE/notes.txt","content":"made after the failed command\n"}`, demoAborted,
		"A sibling that waited is never started:",
	},
}

// demoOrders is the turn that is run in both orders: commands that only read, and files that are written. The last call
// writes what the command before it reads, which takes long enough for the last call to come meanwhile.
var demoOrders = []part{
	{"Bash", `{"command":"cat greet.go; sleep 0.4"}`, demoOK, ""},
	{"Write", `{"file_path":"WORKSPACE/one.txt","content":"one\n"}`, demoOK, ""},
	{"Bash", `{"command":"cat greet.go; sleep 0.4"}`, demoOK, ""},
	{"Write", `{"file_path":"WORKSPACE/two.txt","content":"two\n"}`, demoOK, ""},
	{"Write", `{"file_path":"WORKSPACE/three.txt","content":"three\n"}`, demoOK, ""},
	{"Bash", `{"command":"cat one.txt; sleep 0.4"}`, demoOK, ""},
	{"Write", `{"file_path":"WORKSPACE/one.txt","content":"one again\n"}`, demoOK, ""},
}

// demoUses makes a turn's tool uses for a workspace.
func demoUses(workspace string, parts []part) ([]turn.Use, error) {
	path, err := json.Marshal(filepath.Clean(workspace))
	if err != nil {
		return nil, err
	}
	inside := strings.Trim(string(path), `"`)
	uses := make([]turn.Use, len(parts))
	for i, p := range parts {
		id := fmt.Sprintf("demo-%d", i+1)
		uses[i] = turn.Use{Given: id, ID: id, Name: p.tool, Input: strings.ReplaceAll(p.input, "WORKSPACE", inside)}
	}
	return uses, nil
}

// review returns what happened: the results that make a point, the timeline, and whether all was as in the script.
func (s demo) review(b *terminal.TurnState, p terminal.Terminal) error {
	var out strings.Builder
	for i, c := range b.Calls {
		if point := demoParts[i].point; point != "" {
			fmt.Fprintf(&out, "\n%s\n", p.Ink.Strong.Render(point))
			out.WriteString(terminal.Indent(terminal.ResultHead(c, p.Ink) + "\n" + terminal.VisibleText(terminal.PlainContent(c.Answer()))))
			out.WriteString(terminal.DiffText(terminal.DiffOf(c.Answer()), p.Ink, "  "))
		}
	}
	width, _ := p.Size()
	fmt.Fprintf(&out, "\n%s\n%s", p.Ink.Strong.Render("The turn over time, by batch:"), terminal.Timeline(b, p.Ink, min(width, 120)))
	fmt.Fprintf(&out, "\n%s: %s of work in %s.\n", terminal.CallsInBatches(b.Turn), terminal.Span(b.Turn.GetWork().AsDuration()), terminal.Span(b.Turn.GetWall().AsDuration()))
	if _, err := s.Stdout.WriteString(out.String()); err != nil {
		return err
	}
	return strange(b, demoParts)
}

// strange returns an error if calls did not end as they are there to.
func strange(b *terminal.TurnState, parts []part) error {
	var found []string
	for i, c := range b.Calls {
		want := parts[i].want
		if got := c.Answer().GetOutcome(); got != want && want != demoAsked {
			found = append(found, fmt.Sprintf("%s %s ended as %s and not as %s", c.Name, c.Subject, terminal.Word(got), terminal.Word(want)))
		}
	}
	if len(found) > 0 {
		return cli.Failed("the demo did not go as it is written: %s", strings.Join(found, "; "))
	}
	return nil
}

// orders runs one turn in both orders and shows what waited for what. Its commands only read, so that no call waits for
// whether one fails.
func (s demo) orders(ctx context.Context, st *stage, p terminal.Terminal) error {
	width, _ := p.Size()
	for _, order := range []struct {
		ordering tooldv1.Ordering
		heading  string
		draw     func(*terminal.TurnState, terminal.Ink, int) string
	}{
		{tooldv1.Ordering_ORDERING_BATCHED, "Another turn in the order BATCHED: neighbours that only read run together.", terminal.Timeline},
		{tooldv1.Ordering_ORDERING_DEPENDENCY, "The same in the order DEPENDENCY: a call waits only for those that it conflicts with.", terminal.Dependencies},
	} {
		state, err := s.turn(ctx, st, p, demoOrders, &tooldv1.Options{
			Trusted: proto.Bool(true), Ordering: order.ordering.Enum(), SiblingAbort: tooldv1.SiblingAbort_SIBLING_ABORT_MUTATING_BASH.Enum(),
		}, nil)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Stdout, "\n%s\n%s\n%s of work in %s.\n", p.Ink.Strong.Render(order.heading), order.draw(state, p.Ink, min(width, 120)),
			terminal.Span(state.Turn.GetWork().AsDuration()), terminal.Span(state.Turn.GetWall().AsDuration()))
		for _, name := range []string{"one.txt", "two.txt", "three.txt"} { // the next turn begins as this one did
			err = cmp.Or(err, os.Remove(filepath.Join(st.workspace(), name)))
		}
		if err := cmp.Or(strange(state, demoOrders), err); err != nil {
			return err
		}
	}
	return nil
}
