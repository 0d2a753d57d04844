package demo

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

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

// demoUses makes the turn's tool uses for a workspace.
func demoUses(workspace string) ([]turn.Use, error) {
	path, err := json.Marshal(filepath.Clean(workspace))
	if err != nil {
		return nil, err
	}
	inside := strings.Trim(string(path), `"`)
	uses := make([]turn.Use, len(demoParts))
	for i, p := range demoParts {
		id := fmt.Sprintf("demo-%d", i+1)
		uses[i] = turn.Use{Given: id, ID: id, Name: p.tool, Input: strings.ReplaceAll(p.input, "WORKSPACE", inside)}
	}
	return uses, nil
}

// review returns what happened: the results that make a point, the timeline, and whether all was as in the script.
func (s demo) review(b *terminal.TurnState) error {
	p := terminal.Open(s.Stdout)
	var out strings.Builder
	var strange []string
	for i, c := range b.Calls {
		wanted := demoParts[i]
		if got := c.Answer().GetOutcome(); got != wanted.want && wanted.want != demoAsked {
			strange = append(strange, fmt.Sprintf("%s %s ended as %s and not as %s", c.Name, c.Subject, terminal.Word(got), terminal.Word(wanted.want)))
		}
		if wanted.point != "" {
			fmt.Fprintf(&out, "\n%s\n", p.Ink.Strong.Render(wanted.point))
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
	if len(strange) > 0 {
		return cli.Failed("the demo did not go as it is written: %s", strings.Join(strange, "; "))
	}
	return nil
}
