// Watching a session live from beside its stream, and answering its questions. No other client is displaced.

package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/records"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) attachCommand() *cobra.Command {
	var replay bool
	cmd := &cobra.Command{
		Use:   "attach [SESSION]",
		Short: "Watch a session live and answer its questions",
		Long: "Shows what happens in a session as it happens, and puts its questions to you when there is a terminal: also those of\n" +
			"clients that cannot ask themselves, such as MCP clients. Without SESSION it is the newest that works here, in the\n" +
			"current directory or one above it. Ends with the session, or with Ctrl-C, which stops no call.",
		Example:           "  toold attach\n  toold attach work\n  toold attach work --replay --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: first(s.completeSessions()),
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, args []string) (err error) {
			request := &tooldv1.WatchRequest{SessionId: strings.Join(args, "")}
			if request.SessionId == "" {
				request.SessionId, err = newestHere(ctx, l)
			}
			if replay {
				request.AfterSeq = proto.Uint64(0)
			}
			if err != nil {
				return err
			}
			return s.watch(ctx, l, request)
		}),
	}
	cmd.Flags().BoolVar(&replay, "replay", false, "first show every record that is kept")
	return cmd
}

func (s *app) watch(ctx context.Context, l *toold.Conn, request *tooldv1.WatchRequest) (err error) {
	p := terminal.NewPrompter(terminal.Open(s.Stderr), func(string) (string, bool) { return "", false })
	w := watching{app: s, session: request.GetSessionId(), prompter: p, out: terminal.Open(s.Stdout)}
	defer func() {
		p.Close()
		if failed := w.flush(); err == nil {
			err = failed
		}
	}()
	request.Answers = p.Asks()
	ctx, cancel := context.WithCancel(ctx)
	var receiver sync.WaitGroup
	defer receiver.Wait()
	defer cancel()
	watched, err := toold.Watch(ctx, l, request)
	if err != nil {
		return err
	}
	events := make(chan toold.Event)
	receiver.Go(func() {
		defer close(events)
		for event, err := range watched {
			select {
			case events <- toold.Event{ExecuteResponse: event, Err: err}:
			case <-ctx.Done():
				return
			}
		}
	})
	if p.Asks() {
		s.Say("watching session %s", request.GetSessionId())
	}
	for {
		select {
		case e, more := <-events:
			if !more || e.Err != nil {
				return e.Err
			}
			if err := w.seen(ctx, e.ExecuteResponse); err != nil || e.GetSessionChanged().GetClosed() {
				return err
			}
		case answer := <-p.Answers():
			if err := w.flush(); err != nil {
				return err
			}
			p.Answered(ctx)
			if err := s.answer(ctx, l, request.GetSessionId(), answer, p); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A watching shows a session's events. While a question stands on the terminal that they are shown on, they wait.
type watching struct {
	*app
	session  string
	prompter *terminal.Prompter
	out      terminal.Terminal
	held     []*tooldv1.ExecuteResponse
}

// mostHeld bounds what waits. More of it is shown into the question.
const mostHeld = 1000

func (w *watching) seen(ctx context.Context, event *tooldv1.ExecuteResponse) error {
	if event.GetQuestion() != nil { // asked below what is shown of it
		defer w.prompter.Take(ctx, event)
	} else {
		w.prompter.Take(ctx, event)
	}
	busy := w.out.Terminal && !w.JSON && w.prompter.Busy()
	if !busy || event.GetProgress() == nil {
		w.held = append(w.held, event)
	}
	if busy && len(w.held) < mostHeld {
		return nil
	}
	return w.flush()
}

// flush shows what has waited.
func (w *watching) flush() error {
	for _, event := range w.held {
		if err := records.Print(w.Console, w.session, event, w.out.Ink); err != nil {
			return err
		}
	}
	w.held = nil
	return nil
}

// answer sends an answer from beside the stream. One that came too late is told and changes nothing; one that the
// daemon does not take is asked for again.
func (s *app) answer(ctx context.Context, l *toold.Conn, session string, a *tooldv1.Answer, p *terminal.Prompter) error {
	_, err := l.Sessions.Answer(ctx, &tooldv1.AnswerRequest{SessionId: session, Answer: a})
	refusal := status.Convert(err)
	switch {
	case slices.Contains(turn.AnswerRefusals, toold.Reason(err)) && p.Refused(ctx, cli.Describe(err)):
	case refusal.Code() == codes.NotFound, refusal.Code() == codes.FailedPrecondition:
		s.Say("the answer was not taken: %s", cli.Describe(err))
	default:
		return err
	}
	return nil
}
