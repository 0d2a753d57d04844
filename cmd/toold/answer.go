// Answering a question from another terminal or from a script.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// answerFlags are the answer as the command line has it.
type answerFlags struct {
	session, remember string
	answer            tooldv1.Answer
}

func (s *app) answerCommand() *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer [QUESTION yes|no [MESSAGE]]",
		Short: "Answer an open question, or list those that are open",
		Long: "Answers an open question from beside the session. QUESTION is its id or that of the call that it is about. MESSAGE is\n" +
			"for the model, with a no. Without arguments it lists the open questions.",
		Example: "  toold answer\n  toold answer q-1f0c2a yes\n  toold answer toolu_01 no 'use another file'\n" +
			"  toold answer toolu_01 yes --remember session",
		Args:              cobra.MaximumNArgs(3),
		ValidArgsFunction: s.completeAnswer,
		PreRunE:           func(_ *cobra.Command, args []string) error { return f.read(args) },
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, args []string) error {
			if len(args) == 0 {
				return s.listQuestions(ctx, l, f.session)
			}
			return s.answerQuestion(ctx, l, args[0], &f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "the question's session (default: all)")
	flags.StringVar(&f.answer.UpdatedInputJson, "input", "", "with yes: the input to run in place of the one that was asked about, as JSON")
	cli.AddChoice(cmd, &f.remember, "remember", "", "with yes: keep the rules that the question offers, for the session, local, project or user", terminal.KeeperWords()...)
	flags.BoolVar(&f.answer.InterruptTurn, "stop", false, "with no: stop the whole turn")
	return cmd
}

// read takes what follows the question on the command line.
func (f *answerFlags) read(args []string) error {
	switch len(args) {
	case 0:
		return nil
	case 1:
		return cli.Misused("say yes or no: toold answer %s yes", args[0])
	case 3:
		f.answer.Message = turn.ValidText(args[2])
	}
	a := &f.answer
	switch strings.ToLower(args[1]) {
	case "y", "yes":
		if a.Decision = tooldv1.Decision_DECISION_ALLOW; a.Message != "" || a.InterruptTurn {
			return cli.Misused("a message and --stop go with a no")
		}
	case "n", "no":
		if a.Decision = tooldv1.Decision_DECISION_DENY; a.UpdatedInputJson != "" || f.remember != "" {
			return cli.Misused("--input and --remember go with a yes")
		}
	default:
		return cli.Misused("%q is neither yes nor no", args[1])
	}
	return nil
}

// An openQuestion is a question with its session.
type openQuestion struct {
	session string
	*tooldv1.Question
}

func openQuestions(ctx context.Context, l *toold.Conn, session string) (questions []openQuestion, err error) {
	list, err := openSessions(ctx, l, session)
	for _, x := range list {
		for _, q := range x.GetOpenQuestions() {
			questions = append(questions, openQuestion{x.GetSession().GetSessionId(), q})
		}
	}
	return questions, err
}

func (s *app) listQuestions(ctx context.Context, l *toold.Conn, session string) error {
	list, err := openQuestions(ctx, l, session)
	if err != nil {
		return err
	}
	if len(list) == 0 && !s.JSON {
		_, err = fmt.Fprintln(s.Stdout, "no open questions")
		return err
	}
	k := terminal.Open(s.Stdout).Ink
	for _, q := range list {
		if s.JSON {
			text, err := terminal.WireJSON(q.Question)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Stdout, "{\"session_id\":%q,\"question\":%s}\n", q.session, text)
			continue
		}
		fmt.Fprintf(s.Stdout, "%s  session %s", k.Strong.Render(q.GetQuestionId()), terminal.VisibleLine(q.session))
		if call := q.GetToolUseId(); call != "" {
			fmt.Fprintf(s.Stdout, ", call %s", terminal.VisibleLine(call))
		}
		fmt.Fprint(s.Stdout, terminal.QuestionText(q.Question, k))
	}
	return nil
}

// answerQuestion answers the one open question with that id, or about the call with that id.
func (s *app) answerQuestion(ctx context.Context, l *toold.Conn, id string, f *answerFlags) error {
	list, err := openQuestions(ctx, l, f.session)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(q openQuestion) bool { return q.GetQuestionId() != id && q.GetToolUseId() != id })
	switch len(list) {
	case 0:
		return cli.Failed("the question %q is not open: it was answered or withdrawn, or never asked. \"toold answer\" lists those that are.", id)
	case 1:
	default:
		return cli.Misused("%d open questions are about a call %q: name the question, or the session with --session", len(list), id)
	}
	q := list[0]
	f.answer.QuestionId, f.answer.InputDigest = q.GetQuestionId(), q.GetInputDigest()
	if f.remember != "" {
		if f.answer.Remember = terminal.Remembered(q.GetSuggestions(), f.remember); len(f.answer.Remember) == 0 {
			return cli.Failed("%s", terminal.NoSuggestion(q.Question))
		}
	}
	_, err = l.Sessions.Answer(ctx, &tooldv1.AnswerRequest{SessionId: q.session, Answer: &f.answer})
	return err
}

func (s *app) completeAnswer(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return []string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp
	}
	return first(s.completing(func(ctx context.Context, l *toold.Conn, o *offers) {
		list, _ := openQuestions(ctx, l, o.session)
		for _, q := range list {
			o.add(q.GetQuestionId(), q.GetTitle())
		}
	}))(cmd, args, typed)
}
