// The commands that run a turn: a model's message (run) or one call (call). They hold the conversation and print what
// came of it; the message is read in feed.go, the conversation itself is in conversation.go.

package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// runForms are the forms in which run prints results.
var runForms = []string{formText, formJSON, formJSONL, formAnthropic, formOpenAI, formResponses}

func (s *app) runCommand() *cobra.Command {
	var f turnFlags
	var form string
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
		RunE: doing(func(ctx context.Context, args []string) error {
			if s.json && form == formText {
				form = formJSON
			}
			if err := checkForm(form, runForms...); err != nil {
				return err
			}
			return s.run(ctx, args, f, form)
		}),
	}
	f.add(cmd)
	f.addTurn(cmd)
	cmd.Flags().StringVarP(&form, "output", "o", formText, "how results are printed: "+strings.Join(runForms, ", "))
	cmd.Flags().StringVar(&f.turn, "turn", "", "the message's name, for model servers that start their ids again in each message (default: the API's id of the message)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(runForms, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

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
			"  toold call Glob '{\"pattern\":\"**/*.go\"}' --session work",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeFirst(s.completeTools),
		RunE: doing(func(ctx context.Context, args []string) error {
			u, err := s.readCallArgs(ctx, args, f.session)
			if err != nil {
				return err
			}
			u.id, u.timeout = "toold-"+uuid.NewString(), limit
			f.only = u.name
			form := formContent
			if s.json {
				form = formJSON
			}
			return s.runTurn(ctx, arrival{format: dialect.Lines, uses: []use{u}, end: &messageEnd{}}, nil, f, form)
		}),
	}
	f.add(cmd)
	f.addTurn(cmd)
	cmd.Flags().DurationVar(&limit, "timeout", 0, "how long the call may run (default: as the tool has it)")
	return cmd
}

// run reads a message and runs its turn. Nothing is started for a message that holds no tool use.
func (s *app) run(ctx context.Context, args []string, f turnFlags, form string) error {
	file := s.stdin
	if len(args) > 0 && args[0] != "-" {
		opened, err := os.Open(args[0])
		if err != nil {
			return misused("the message cannot be read: %v", err)
		}
		defer opened.Close()
		file = opened
	} else if len(args) == 0 && terminal.Open(s.stdin).Terminal {
		s.say("reading tool uses from the terminal; end with Ctrl-D")
	}
	in, err := newFeed(file)
	if err != nil {
		return err
	}
	defer in.close()
	first := <-in.arrivals
	if len(first.uses) > 0 {
		f.aside = true
		return s.runTurn(ctx, first, in, f, form)
	}
	if err := s.tellEnd(first.end, form); err != nil {
		return err
	}
	s.say("the message holds no tool use: nothing was run%s", nothingToAppend(form))
	if form == formJSON {
		_, err = s.stdout.WriteString("[]\n")
	}
	return err
}

// nothingToAppend is the end of a sentence that says why nothing is printed.
func nothingToAppend(form string) string {
	if slices.Contains(appendForms, form) {
		return ", and there is nothing to append"
	}
	return ""
}

// tellEnd returns how a message ended, if it did not end as it should.
func (s *app) tellEnd(end *messageEnd, form string) error {
	if end == nil {
		return nil
	}
	for _, name := range end.CutOff {
		s.say("a call of %s was cut off in the middle of its input, and was not run", toolWord(name))
	}
	switch failure := end.failure(); {
	case failure != nil:
		return failed("%v. The message does not count: its calls are discarded%s.", failure, nothingToAppend(form))
	case errors.Is(end.err, dialect.ErrEmpty):
		return misused("%v. Give a model's message or JSON lines such as {\"name\":\"LS\",\"input\":{\"path\":\".\"}}", end.err)
	case end.err != nil:
		return misused("%v", end.err)
	case end.Broken:
		return failed("the model's event stream broke off before the end of the message")
	}
	return nil
}

func toolWord(name string) string {
	if name == "" {
		return "a tool"
	}
	return terminal.VisibleLine(name)
}

// runTurn runs a turn that begins with first and goes on with what in brings, and prints its results.
func (s *app) runTurn(ctx context.Context, first arrival, in *feed, f turnFlags, form string) error {
	attach, err := f.attach()
	if err != nil {
		return err
	}
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	c := &conversation{link: l, attach: attach, uses: first.uses, end: first.end, soft: f.interrupt == interruptSoft}
	defer func() { c.link.close() }() // not l: the conversation may have moved on to another
	if in != nil && first.end == nil {
		c.feed = in.arrivals
	}
	turn := f.turn
	if turn == "" {
		turn = first.id
	}
	err = s.converse(ctx, c, turn, f, form)
	if errors.Is(err, errBroken) {
		return err // at once: the session ends by itself, since nobody is attached to it
	}
	if attach.GetSessionId() == "" && !c.left { // else it ends by itself, with what was left behind
		defer s.closeSession(c)
	}
	if err != nil {
		return err
	}
	return s.tellTurn(c, first.format, form)
}

// tellTurn prints the results of a turn that has ended, and what else is to be known.
func (s *app) tellTurn(c *conversation, format dialect.Format, form string) error {
	if c.end.failure() == nil || !slices.Contains(appendForms, form) {
		if err := s.printResults(c, format, form); err != nil {
			return err
		}
	}
	if c.prompter == nil && c.turn.Ended("cannot_ask") {
		s.say("nobody could be asked: run it on a terminal, put a rule into your settings (\"toold explain\" names those that would do), or choose another --mode")
	}
	if err := s.tellEnd(c.end, form); err != nil {
		return err
	}
	if n := c.turn.Failures(); n > 0 {
		return &ending{code: exitFailed, text: terminal.FailureLine(c.turn, n)}
	}
	return nil
}

// converse holds the conversation, with the live view and the user if there is a terminal.
func (s *app) converse(ctx context.Context, c *conversation, turn string, f turnFlags, form string) error {
	inTerminal := f.session == "" && s.joinTerminal(c.attach, f)
	if inTerminal && f.turn == "" { // what is run again is meant to run again
		turn = "run-" + uuid.NewString()
	}
	c.turn = turnStateOf(turn, c.attach.GetRoots()[0], c.uses)
	shown := terminal.Open(s.stderr)
	if shown.Live() {
		c.renderer = &terminal.Renderer{Page: shown}
	}
	c.prompter = terminal.NewPrompter(shown, c.input)
	defer c.prompter.Close()
	c.prompter.Passes(c.attach.GetSessionId() == "")
	c.notify = func(text string) { s.say("%s", text) }
	if form == formJSONL {
		c.seen = s.printEvent
	}
	c.attach.Capabilities.Answers = c.prompter != nil
	err := s.converseIn(ctx, c, inTerminal)
	for _, warning := range s.unsaid(c) {
		s.say("warning: %s", warning.GetText())
	}
	for _, n := range c.turn.Notices {
		s.say("notice: %s (%s)", n.GetMessage(), n.GetCode())
	}
	if n := c.turn.Replays(); n > 0 {
		s.say("%s answered from the journal: this session has run the same tool use before", terminal.Count(n, "call"))
	}
	s.noted("session %s", c.session)
	return err
}

// printEvent prints an event as one line.
func (s *app) printEvent(event *tooldv1.ExecuteResponse) error {
	return terminal.PrintJSON(s.stdout, event)
}

// closePatience is how long the client waits for the end of what its session still runs.
const closePatience = 5 * time.Second

// closeSession ends a session that was made for one turn, with whatever of the turn still runs. Its records stay.
func (s *app) closeSession(c *conversation) {
	if c.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience) // also after an interrupt
	defer cancel()
	if _, err := c.link.sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: c.session}); err != nil {
		s.noted("session %s was not closed: %s", c.session, whatWentWrong(err))
	}
}

// input returns a use's input by its id.
func (c *conversation) input(id string) (string, bool) {
	for _, u := range c.uses {
		if u.id == id {
			return u.input, true
		}
	}
	return "", false
}
