// The commands that run a turn: a model's message (run) or one call (call). The turn itself is in internal/turn; the
// commands print what came of it.

package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/callargs"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) runCommand() *cobra.Command {
	var f turnFlags
	form := formText
	cmd := &cobra.Command{
		Use:   "run [FILE|-]",
		Short: "Run the tool uses of a model's message as one turn",
		Long: "Runs the tool uses of one message as one turn. A message is JSON lines ({\"id\",\"name\",\"input\"} or {\"tool_use\":{...}}),\n" +
			"a model's message as the API gave it, or the event stream of the API, as server-sent events or JSON lines: Anthropic\n" +
			"Messages, OpenAI Chat Completions and OpenAI Responses. Which of them it is, is detected. Reads standard input without\n" +
			"FILE. Each tool use starts as soon as it is complete; one that the stream breaks off never runs.\n\n" +
			"--output jsonl prints every event as it comes. --output anthropic prints the message to append to the conversation,\n" +
			"openai the messages, responses the items.\n\n" +
			"Without --session, on a terminal, it runs in the session of this directory and terminal, so that a file that was read\n" +
			"can be edited by the next run; elsewhere in a session that ends with the turn. In a session that --session names, a\n" +
			"tool use with an id that was run before is answered from the journal and not run again.\n\n" +
			"Ctrl-C stops the turn and prints every result; a second one quits at once.",
		Example: "  toold run --output anthropic response.json\n" +
			"  echo '{\"name\":\"Glob\",\"input\":{\"pattern\":\"**/*.go\"}}' | toold run\n" +
			"  curl -sN https://api.anthropic.com/v1/messages ... | toold run --output anthropic\n" +
			"  toold run --session work --mode acceptEdits message.json",
		Args: cobra.MaximumNArgs(1),
		RunE: cli.Action(func(ctx context.Context, args []string) error {
			if s.JSON && form == formText {
				form = formJSON
			}
			return s.run(ctx, args, f, form)
		}),
	}
	f.addTurn(cmd)
	cli.AddChoice(cmd, &form, "output", "o", "how results are printed: "+strings.Join(runForms, ", "), runForms...)
	cli.AddChoice(cmd, &f.format, "format", "", "whose own tools the message may call, which cannot be detected: anthropic-native for bash, str_replace_based_edit_tool and memory; agent-toolset for those of Claude's managed agents", slices.Sorted(maps.Keys(messageFormats))...)
	cmd.Flags().StringVar(&f.turn, "turn", "", "the message's name, for model servers that start their ids again in each message (default: the API's id of the message)")
	return cmd
}

// messageFormats are the forms of messages that cannot be told from others.
var messageFormats = map[string]dialect.Format{"anthropic-native": dialect.AnthropicNative, "agent-toolset": dialect.AgentToolset}

func (s *app) callCommand() *cobra.Command {
	var f turnFlags
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "call NAME [JSON | FIELD=VALUE...] | 'NAME(VALUE)'",
		Short: "Run one call",
		Long: "Runs one call and prints what it gave. JSON is the tool's input, and \"-\" reads it from standard input. Instead, the\n" +
			"fields can be given one by one, or the value of the main field in parentheses, as in rules.\n\n" +
			"Ctrl-C stops the call and prints its result; a second one quits at once.",
		Example: "  toold call Bash '{\"command\":\"git log --oneline | head\"}'\n" +
			"  toold call 'Bash(ls -l)'\n" +
			"  toold call Grep pattern=TODO path=src output_mode=content\n" +
			"  toold call Glob '{\"pattern\":\"**/*.go\"}' --session work\n" +
			"  toold call 'Bash(make)' --address tcp://users.example:7443 --root workspace:project",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeTools(),
		RunE: cli.Action(func(ctx context.Context, args []string) error {
			at, err := f.callPlace()
			if err != nil {
				return err
			}
			u, err := callargs.Read(ctx, s.daemon, args, at)
			if err != nil {
				return err
			}
			u.ID, u.Timeout = "toold-"+uuid.NewString(), limit
			f.only = u.Name
			form := formContent
			if s.JSON {
				form = formJSON
			}
			return s.runTurn(ctx, turn.Arrival{Format: dialect.Lines, Uses: []turn.Use{u}, End: &turn.MessageEnd{}}, nil, f, form)
		}),
	}
	f.addTurn(cmd)
	cmd.Flags().DurationVar(&limit, "timeout", 0, "how long the call may run (default: as the tool has it)")
	return cmd
}

// run reads a message and runs its turn. Nothing is started for a message that holds no tool use.
func (s *app) run(ctx context.Context, args []string, f turnFlags, form string) error {
	file := s.Stdin
	if len(args) > 0 && args[0] != "-" {
		opened, err := os.Open(args[0])
		if err != nil {
			return cli.Misused("the message cannot be read: %v", err)
		}
		defer opened.Close()
		file = opened
	} else if len(args) == 0 && terminal.Open(s.Stdin).Terminal {
		s.Say("reading tool uses from the terminal; end with Ctrl-D")
	}
	in, err := turn.NewFeed(file, messageFormats[f.format])
	if err != nil {
		return err
	}
	defer in.Close()
	first := <-in.Arrivals
	if len(first.Uses) > 0 {
		f.aside = true
		return s.runTurn(ctx, first, in, f, form)
	}
	if err := s.tellEnd(first.End, form); err != nil {
		return err
	}
	s.Say("the message holds no tool use: nothing was run%s", nothingToAppend(form))
	if form == formJSON {
		_, err = s.Stdout.WriteString("[]\n")
	}
	return err
}

// nothingToAppend returns the end of a sentence about why nothing is printed.
func nothingToAppend(form string) string {
	if slices.Contains(appendForms, form) {
		return ", and there is nothing to append"
	}
	return ""
}

// tellEnd returns how a message ended, if it did not end as it should.
func (s *app) tellEnd(end *turn.MessageEnd, form string) error {
	if end == nil {
		return nil
	}
	for _, name := range end.CutOff {
		s.Say("a call of %s was cut off in the middle of its input, and was not run", cmp.Or(terminal.VisibleLine(name), "a tool"))
	}
	switch failure := end.Failure(); {
	case failure != nil:
		return cli.Failed("%v. The message does not count: its calls are discarded%s.", failure, nothingToAppend(form))
	case errors.Is(end.Err, dialect.ErrEmpty):
		return cli.Misused("%v. Give a model's message or JSON lines such as {\"name\":\"LS\",\"input\":{\"path\":\".\"}}", end.Err)
	case end.Err != nil:
		return cli.Misused("%v", end.Err)
	case end.Broken:
		return cli.Failed("the model's event stream broke off before the end of the message")
	}
	return nil
}

// runTurn runs a turn that begins with first and goes on with what in brings, and prints its results.
func (s *app) runTurn(ctx context.Context, first turn.Arrival, in *turn.Feed, f turnFlags, form string) error {
	attach, err := f.attach()
	if err != nil {
		return err
	}
	l, err := s.daemon.Connect(ctx)
	if err != nil {
		return err
	}
	c := &turn.Turn{Console: s.Console, Dial: s.daemon.Redial(l), Attach: attach, First: first, Soft: f.interrupt == interruptSoft}
	defer c.Close()
	if in != nil {
		c.Feed = in.Arrivals
	}
	err = s.converse(ctx, c, cmp.Or(f.turn, first.ID), f, form)
	if errors.Is(err, turn.ErrBroken) {
		return err // at once: the session ends by itself, since no client is attached to it
	}
	if attach.GetSessionId() == "" && !c.Left { // else it ends by itself, with what was left behind
		defer func() { turn.CloseSession(s.Console, c.Session) }()
	}
	if err != nil {
		return err
	}
	return s.tellTurn(c, first.Format, form)
}

// tellTurn prints the results of a turn that has ended, and what else is to be known.
func (s *app) tellTurn(c *turn.Turn, format dialect.Format, form string) error {
	if c.End.Failure() == nil || !slices.Contains(appendForms, form) {
		if err := s.printResults(c, format, form); err != nil {
			return err
		}
	}
	if !c.Prompter.Asks() && c.State.Ended("cannot_ask") {
		where := "put a rule into your settings"
		if s.daemon.Remote.Address != "" { // where this machine's settings do not count
			where = "name a file that has a rule with --settings"
		}
		s.Say("nobody could be asked: run it on a terminal, %s (\"toold explain\" names those that would do), or choose another --mode", where)
	}
	if err := s.tellEnd(c.End, form); err != nil {
		return err
	}
	if n := c.State.Failures(); n > 0 {
		return &cli.Error{Code: cli.ExitFailed, Text: terminal.FailureLine(c.State, n)}
	}
	return nil
}

// converse holds the conversation, with the live view and the user if there is a terminal.
func (s *app) converse(ctx context.Context, c *turn.Turn, id string, f turnFlags, form string) error {
	inTerminal := f.session == "" && turn.JoinTerminal(s.Console, c.Attach, f.aside)
	if inTerminal && f.turn == "" { // what is run again is meant to run again
		id = "run-" + uuid.NewString()
	}
	c.State = terminal.NewTurnState(id, c.Attach.GetRoots()[0])
	shown := terminal.Open(s.Stderr)
	c.Renderer.Page = shown
	c.Prompter = terminal.NewPrompter(shown, c.Input)
	defer c.Prompter.Close()
	c.Prompter.Passing = c.Attach.GetSessionId() == ""
	if form == formJSONL {
		c.Seen = func(event *tooldv1.ExecuteResponse) error { return terminal.PrintJSON(s.Stdout, event) }
	}
	c.Attach.Capabilities.Answers = c.Prompter.Asks()
	err := c.RunIn(ctx, inTerminal)
	for _, warning := range s.unsaid(c) {
		s.Say("warning: %s", warning.GetText())
	}
	for _, n := range c.State.Notices {
		s.Say("notice: %s (%s)", n.GetMessage(), n.GetCode())
	}
	if n := c.State.Replays(); n > 0 {
		s.Say("%s answered from the journal: this session has run the same tool use before", terminal.Count(n, "call"))
	}
	if c.Session != nil {
		s.Noted("session %s", c.Session.ID())
	}
	return err
}
