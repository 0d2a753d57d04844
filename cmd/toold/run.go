// The commands that run a turn: a model's message (run) or one call (call). They read the tool uses, hold the
// conversation and print what came of it; the conversation itself is in conversation.go.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *setup) runCommand() *cobra.Command {
	var f turnFlags
	var form, turn string
	cmd := &cobra.Command{
		Use:   "run [FILE|-]",
		Short: "Run the tool uses of a model's message as one turn",
		Long: "Runs the tool uses of one message as one turn: JSON lines ({\"id\",\"name\",\"input\"} or {\"tool_use\":{...}}), or a\n" +
			"model's message as the API gave it (Anthropic content with tool_use, OpenAI tool_calls or Responses items), which is\n" +
			"detected. Reads standard input without FILE.\n\n" +
			"--output anthropic prints the message to append to the conversation, --output openai the list of messages.\n" +
			"In a session that stays, a tool use with an id that was run before is answered from the journal and not run again.",
		Example: "  toold run --output anthropic response.json\n" +
			"  echo '{\"name\":\"Glob\",\"input\":{\"pattern\":\"**/*.go\"}}' | toold run\n" +
			"  toold run --session work --mode acceptEdits message.json",
		Args: cobra.MaximumNArgs(1),
		RunE: doing(func(ctx context.Context, args []string) error {
			if s.json && form == formText {
				form = formJSON
			}
			if err := checkForm(form, formText, formJSON, formAnthropic, formOpenAI); err != nil {
				return err
			}
			m, err := s.readInput(args)
			if err != nil {
				return err
			}
			if turn != "" {
				m.id = turn
			}
			return s.runMessage(ctx, m, f, form)
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&form, "output", "o", formText, "how results are printed: text, json, anthropic or openai")
	cmd.Flags().StringVar(&turn, "turn", "", "the message's name, for model servers that count ids anew in each message (default: the API's id of the message)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formText, formJSON, formAnthropic, formOpenAI}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (s *setup) callCommand() *cobra.Command {
	var f turnFlags
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "call NAME [JSON]",
		Short: "Run one call",
		Long:  "Runs one call and prints what it gave. JSON is the tool's input; \"-\" reads it from standard input.",
		Example: "  toold call Bash '{\"command\":\"git log --oneline | head\"}'\n" +
			"  toold call Glob '{\"pattern\":\"**/*.go\"}' --session work",
		Args: cobra.RangeArgs(1, 2),
		RunE: doing(func(ctx context.Context, args []string) error {
			input, err := s.callInput(args[1:])
			if err != nil {
				return err
			}
			f.only = args[0]
			m := message{dialect: lines, uses: []use{{name: args[0], input: input, timeout: limit}}}
			if err := m.name(); err != nil {
				return err
			}
			form := formContent
			if s.json {
				form = formJSON
			}
			return s.runMessage(ctx, m, f, form)
		}),
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&limit, "timeout", 0, "how long the call may run (default: as the tool has it)")
	return cmd
}

func (s *setup) callInput(args []string) (string, error) {
	input := "{}"
	if len(args) > 0 {
		input = args[0]
	}
	if input == "-" {
		text, err := io.ReadAll(s.stdin)
		if err != nil {
			return "", misused("standard input cannot be read: %v", err)
		}
		input = string(text)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(input), &object); err != nil {
		return "", misused("the input is not a JSON object: %v. In a shell, put it in single quotes: toold call Bash '{\"command\":\"ls\"}'", err)
	}
	return input, nil
}

func (s *setup) readInput(args []string) (message, error) {
	var text []byte
	var err error
	if len(args) == 0 || args[0] == "-" {
		if len(args) == 0 && pageOf(s.stdin).terminal {
			s.say("reading tool uses from the terminal; end with Ctrl-D")
		}
		text, err = io.ReadAll(s.stdin)
	} else {
		text, err = os.ReadFile(args[0])
	}
	if err != nil {
		return message{}, misused("the message cannot be read: %v", err)
	}
	m, err := readMessage(text)
	if errors.Is(err, errEmpty) {
		return m, misused("%v. Give a model's message or JSON lines such as {\"name\":\"LS\",\"input\":{\"path\":\".\"}}", err)
	}
	if err != nil {
		return m, misused("%v", err)
	}
	return m, nil
}

// runMessage runs a turn and prints its results.
func (s *setup) runMessage(ctx context.Context, m message, f turnFlags, form string) error {
	if len(m.uses) == 0 {
		s.say("the message holds no tool use: nothing was run")
		return s.printResults(m, newBoard("", "", nil), form)
	}
	attach, err := f.attach()
	if err != nil {
		return err
	}
	c, err := s.converse(ctx, m, attach)
	if err != nil {
		return err
	}
	if err := s.printResults(m, c.board, form); err != nil {
		return err
	}
	if c.person == nil && c.board.ended("cannot_ask") {
		s.say("nobody could be asked: run it on a terminal, put a rule into your settings (\"toold explain\" names those that would do), or choose another --mode")
	}
	if n := c.board.failures(); n > 0 {
		return &ending{code: exitFailed, text: failureLine(c.board, n)}
	}
	return nil
}

// converse holds the conversation, with the live view and the person if there is a terminal.
func (s *setup) converse(ctx context.Context, m message, attach *tooldv1.Attach) (*conversation, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conversation{link: l, attach: attach, board: newBoard(m.id, attach.GetRoots()[0], m.uses), uses: m.uses}
	defer func() { c.link.close() }() // not l: the conversation may have moved on to another
	shown := pageOf(s.stderr)
	if shown.live() {
		c.view = &view{page: shown}
	}
	c.person = meet(shown, m.input)
	c.notify = func(text string) { s.say("%s", text) }
	if c.person != nil {
		c.person.passing = attach.GetSessionId() == ""
	}
	defer c.person.close()
	attach.Capabilities.Answers = c.person != nil
	err = c.runToEnd(ctx, s.connect)
	if attach.GetSessionId() == "" {
		s.closeSession(c)
	}
	for _, warning := range s.unsaid(c) {
		s.say("warning: %s", warning)
	}
	for _, n := range c.board.notices {
		s.say("notice: %s (%s)", n.GetMessage(), n.GetCode())
	}
	if n := c.board.replays(); n > 0 {
		s.say("%s answered from the journal: this session has run the same tool use before", count(n, "call"))
	}
	s.noted("session %s", c.session)
	return c, err
}

// closePatience is how long the client waits for the end of what its session still runs.
const closePatience = 5 * time.Second

// closeSession ends a session that was made for one turn, with whatever of the turn still runs. Its records stay.
func (s *setup) closeSession(c *conversation) {
	if c.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience) // also after an interrupt
	defer cancel()
	if _, err := c.link.sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: c.session}); err != nil {
		s.noted("session %s was not closed: %s", c.session, whatWentWrong(err))
	}
}

// input gives a use's input by its id.
func (m message) input(id string) (string, bool) {
	for _, u := range m.uses {
		if u.id == id {
			return u.input, true
		}
	}
	return "", false
}
