// Answering a question from another terminal or from a script.

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// answerFlags are what an answer carries beside yes or no.
type answerFlags struct {
	session, input, remember string
	stop                     bool
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
		RunE: cli.Action(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return s.listQuestions(ctx, f.session)
			}
			return s.answerQuestion(ctx, args, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "the question's session (default: all)")
	flags.StringVar(&f.input, "input", "", "with yes: the input to run in place of the one that was asked about, as JSON")
	flags.StringVar(&f.remember, "remember", "", "with yes: keep the rules that the question offers, for the session, local, project or user")
	flags.BoolVar(&f.stop, "stop", false, "with no: stop the whole turn")
	_ = cmd.RegisterFlagCompletionFunc("remember", cobra.FixedCompletions([]string{"session", "local", "project", "user"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// An openQuestion is a question with its session.
type openQuestion struct {
	session string
	*tooldv1.Question
}

func openQuestions(ctx context.Context, l *toold.Conn, session string) (list []openQuestion, err error) {
	err = eachOpen(ctx, l, session, func(x *tooldv1.GetSessionResponse) error {
		for _, q := range x.GetOpenQuestions() {
			list = append(list, openQuestion{x.GetSession().GetSessionId(), q})
		}
		return nil
	})
	return list, err
}

func (s *app) listQuestions(ctx context.Context, session string) error {
	l, err := s.daemon.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
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

func (s *app) answerQuestion(ctx context.Context, args []string, f answerFlags) error {
	if len(args) < 2 {
		return cli.Misused("say yes or no: toold answer %s yes", args[0])
	}
	answer, err := f.answer(args[1:])
	if err != nil {
		return err
	}
	l, err := s.daemon.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	q, err := question(ctx, l, args[0], f.session)
	if err != nil {
		return err
	}
	answer.QuestionId, answer.InputDigest = q.GetQuestionId(), q.GetInputDigest()
	if f.remember != "" {
		scope, _ := terminal.ScopeNamed(f.remember)
		for _, x := range q.GetSuggestions() {
			answer.Remember = append(answer.Remember, &tooldv1.Remember{Rule: x.GetRule(), List: x.GetList(), Scope: scope})
		}
		if len(answer.Remember) == 0 {
			return cli.Failed("%s", terminal.NoSuggestion(q.Question))
		}
	}
	_, err = l.Sessions.Answer(ctx, &tooldv1.AnswerRequest{SessionId: q.session, Answer: answer})
	return err
}

// answer reads what follows the question on the command line.
func (f answerFlags) answer(args []string) (*tooldv1.Answer, error) {
	a := &tooldv1.Answer{UpdatedInputJson: f.input, InterruptTurn: f.stop}
	switch strings.ToLower(args[0]) {
	case "y", "yes":
		a.Decision = tooldv1.Decision_DECISION_ALLOW
	case "n", "no":
		a.Decision = tooldv1.Decision_DECISION_DENY
	default:
		return nil, cli.Misused("%q is neither yes nor no", args[0])
	}
	yes := a.Decision == tooldv1.Decision_DECISION_ALLOW
	if len(args) > 1 {
		a.Message = turn.ValidText(args[1])
	}
	_, known := terminal.ScopeNamed(f.remember)
	switch {
	case f.remember != "" && !known:
		return nil, cli.Misused("--remember %q is not known: choose session, local, project or user", f.remember)
	case yes && (a.Message != "" || f.stop):
		return nil, cli.Misused("a message and --stop go with a no")
	case !yes && (f.input != "" || f.remember != ""):
		return nil, cli.Misused("--input and --remember go with a yes")
	}
	return a, nil
}

// question finds the one open question with that id, or about the call with that id.
func question(ctx context.Context, l *toold.Conn, id, session string) (found openQuestion, err error) {
	list, err := openQuestions(ctx, l, session)
	if err != nil {
		return found, err
	}
	n := 0
	for _, q := range list {
		if q.GetQuestionId() == id || q.GetToolUseId() == id {
			found = q
			n++
		}
	}
	switch n {
	case 0:
		return found, cli.Failed("the question %q is not open: it was answered or withdrawn, or never asked. \"toold answer\" lists those that are.", id)
	case 1:
		return found, nil
	}
	return found, cli.Misused("%d open questions are about a call %q: name the question, or the session with --session", n, id)
}

func (s *app) completeAnswer(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return []string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp
	}
	return s.completeFirst(s.completing(func(ctx context.Context, cmd *cobra.Command, l *toold.Conn) (ids []string, err error) {
		list, err := openQuestions(ctx, l, cmd.Flag("session").Value.String())
		for _, q := range list {
			ids = append(ids, q.GetQuestionId()+"\t"+terminal.VisibleLine(q.GetTitle()))
		}
		return ids, err
	}))(cmd, args, typed)
}
