// The verdict on a call, as the daemon derives it, for the user and for scripts.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/callargs"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// exitAsks is the exit code of explain for a call that would be asked about: neither allowed nor denied.
const exitAsks = 4

func (s *app) explainCommand() *cobra.Command {
	var f placeFlags
	var session string
	var request *tooldv1.ExplainRequest
	cmd := &cobra.Command{
		Use:   "explain CALL",
		Short: "Tell whether a call may run, and why, without running it",
		Long: "Prints the verdict on a call and everything that it is derived from. The call is not run, nobody is asked,\n" +
			"nothing is recorded. For a command that reads git, git is asked for the repository's settings.\n\n" +
			"CALL is a tool with the value of its main field, as in rules: the command of Bash, the path of Read, Write, Edit and LS,\n" +
			"the pattern of Glob and Grep, the url of WebFetch. What else Edit and Write need is filled in with any text. For all\n" +
			"else it is a tool use as JSON ({\"name\",\"input\"}); \"-\" reads CALL from standard input.\n\n" +
			"Of Shell, each of its commands is judged too, as the call of Bash that it is; with --json each has a line of its own.\n\n" +
			"It is judged as in a new session, or in --session as that one is now.\n\n" +
			"Exit codes: 0 it may run, 1 it would be denied or is invalid, 4 it would be asked about; 2 usage, 3 no daemon.",
		Example: "  toold explain 'Bash(git push --force)'\n" +
			"  toold explain 'Read(~/.ssh/config)' --root ~/src/project --mode plan\n" +
			"  toold explain '{\"name\":\"Grep\",\"input\":{\"pattern\":\"x\",\"path\":\"/etc\"}}' --json",
		Args: cobra.ExactArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if session != "" && len(f.roots) > 0 {
				return cli.Misused("--session and --root exclude each other: a session has its roots")
			}
			request, err = s.explainRequest(args[0], session, f)
			return err
		},
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, _ []string) error { return s.explain(ctx, l, request) }),
	}
	cmd.Flags().StringVar(&session, "session", "", "judge it in this session (default: in a new one)")
	f.add(cmd)
	return cmd
}

func (s *app) explainRequest(call, session string, f placeFlags) (*tooldv1.ExplainRequest, error) {
	roots, options, err := f.read()
	if err != nil {
		return nil, err
	}
	if call == "-" {
		text, err := io.ReadAll(s.Stdin)
		if err != nil {
			return nil, cli.Misused("standard input cannot be read: %v", err)
		}
		call = string(text)
	}
	u, err := callargs.Parse(call, inside(roots[0]))
	if err != nil {
		return nil, err
	}
	if session != "" {
		roots = nil
	}
	return &tooldv1.ExplainRequest{ToolUse: u.Wire(""), SessionId: session, Roots: roots, Options: options}, nil
}

// explain shows the verdict on a call, and on each of the calls that it is made of. The error has the exit code of the strictest.
func (s *app) explain(ctx context.Context, l *toold.Conn, request *tooldv1.ExplainRequest) error {
	code := 0
	for _, use := range append([]*tooldv1.ToolUse{request.GetToolUse()}, commandsOf(request.GetToolUse())...) {
		request.ToolUse = use
		response, err := l.Daemon.Explain(ctx, request)
		if err != nil {
			return err
		}
		call := strings.TrimSpace(terminal.VisibleLine(use.GetName()) + " " + terminal.Subject(use.GetInputJson(), ""))
		if err := s.Show(response, explanationText(call, response, terminal.Open(s.Stdout).Ink)); err != nil {
			return err
		}
		switch d := response.GetDecision(); {
		case d == tooldv1.Decision_DECISION_ALLOW || code == cli.ExitFailed:
		case d == tooldv1.Decision_DECISION_ASK:
			code = exitAsks
		default:
			code = cli.ExitFailed
		}
	}
	if code != 0 {
		return &cli.Error{Code: code}
	}
	return nil
}

// commandsOf returns the calls of Bash that a call of Shell is made of; of any other call none.
func commandsOf(use *tooldv1.ToolUse) (calls []*tooldv1.ToolUse) {
	var in struct{ Commands []string }
	if use.GetName() != "Shell" || json.Unmarshal([]byte(use.GetInputJson()), &in) != nil {
		return nil
	}
	for _, command := range in.Commands {
		input, err := json.Marshal(map[string]string{"command": command})
		if err == nil {
			calls = append(calls, &tooldv1.ToolUse{Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: string(input)}})
		}
	}
	return calls
}

// explanationText shows a derivation: the verdict, what the call does, what decides, and what would change it.
func explanationText(call string, e *tooldv1.ExplainResponse, k terminal.Ink) string {
	var b strings.Builder
	style, word := k.Bad, "✗ denied"
	switch {
	case !e.GetValid():
		word = "✗ invalid"
	case e.GetDecision() == tooldv1.Decision_DECISION_ALLOW:
		style, word = k.Good, "✓ allowed"
	case e.GetDecision() == tooldv1.Decision_DECISION_ASK:
		style, word = k.Warn, "? the user would be asked"
	}
	fmt.Fprintf(&b, "%s\n%s\n", k.Strong.Render(call), style.Render(word))
	if code := e.GetError().GetCode(); code != "" && e.GetValid() {
		fmt.Fprintf(&b, "  but as things stand it would end with %s: %s\n", terminal.VisibleLine(code), terminal.VisibleLine(e.GetError().GetMessage()))
	} else if code != "" {
		fmt.Fprintf(&b, "  error: %s\n", terminal.VisibleLine(code))
	}
	if e.GetValid() {
		fmt.Fprintf(&b, "  level: %s\n  mode: %s\n  order: %s\n", terminal.Word(e.GetLevel()), terminal.ModeName(e.GetPermissionMode()), orderWords(e))
		if c := e.GetConfinement(); c != nil {
			fmt.Fprintf(&b, "  sandbox: %s\n", terminal.Word(c.GetTier()))
		}
	}
	section(&b, k, "What it does:", e.GetEffects())
	section(&b, k, "Because:", derivation(e))
	var rules []string
	for _, x := range e.GetSuggestions() {
		rules = append(rules, strings.TrimSuffix(fmt.Sprintf("%s (%s)", x.GetRule(), terminal.Covers(x.GetRule())), " ()"))
	}
	section(&b, k, "The like of it would be allowed by "+terminal.Count(len(rules), "rule")+" in permissions.allow of your settings:", rules)
	section(&b, k, "Of the settings:", concerning(call, turn.Warnings(e.GetWarnings(), e.GetWarningDetails())))
	return b.String()
}

func orderWords(e *tooldv1.ExplainResponse) string {
	switch {
	case e.GetConcurrent():
		return "beside others; it is read-only"
	case e.GetReadOnly():
		return "alone, although it is read-only"
	default:
		return "alone; it is not read-only"
	}
}

// derivation is the reasons, each followed by what its ground has beyond it.
func derivation(e *tooldv1.ExplainResponse) []string {
	var lines []string
	grounds := map[string]*tooldv1.Ground{}
	for _, g := range e.GetGrounds() {
		grounds[g.GetText()] = g
	}
	for _, reason := range e.GetReasons() {
		lines = append(lines, reason)
		g := grounds[reason]
		hasPart, hasRule := terminal.Shows(g)
		if rule := terminal.RuleWords(g); rule != "" && !hasRule {
			lines = append(lines, "  "+rule)
		}
		if g.GetPart() != "" && !hasPart {
			lines = append(lines, "  about "+g.GetPart())
		}
	}
	return lines
}

func section(b *strings.Builder, k terminal.Ink, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", k.Strong.Render(title))
	for _, line := range lines {
		b.WriteString(terminal.Indent(terminal.VisibleText(line)))
	}
}
