// Stopping calls, turns, background tasks and sessions from another terminal or from a script.

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
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// cancelFlags are what is to be stopped, beside the calls and tasks that are named.
type cancelFlags struct {
	session   string
	turn, all bool
}

// cancelReason is what the model reads of it.
const cancelReason = "the user ran toold cancel"

func (s *app) cancelCommand() *cobra.Command {
	var f cancelFlags
	cmd := &cobra.Command{
		Use:   "cancel CALL... | --turn | --all",
		Short: "Stop calls, a turn, or everything that runs",
		Long: "Stops calls by their id, also background tasks by theirs. --turn stops the open turn of a session: the one of\n" +
			"--session, or the newest that works here. --all stops everything, background tasks too: of --session, or of all\n" +
			"sessions. Calls that run are stopped, and those that wait never start; each gets its result.",
		Example:           "  toold cancel toolu_01\n  toold cancel --turn\n  toold cancel --all --session work",
		ValidArgsFunction: s.completeCalls,
		RunE: cli.Action(func(ctx context.Context, args []string) error {
			chosen := 0
			for _, is := range []bool{len(args) > 0, f.turn, f.all} {
				if is {
					chosen++
				}
			}
			if chosen != 1 {
				return cli.Misused("name calls, or choose --turn or --all")
			}
			return s.cancel(ctx, args, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "in this session only")
	flags.BoolVar(&f.turn, "turn", false, "the open turn of the session")
	flags.BoolVar(&f.all, "all", false, "everything that runs or waits")
	return cmd
}

func (s *app) cancel(ctx context.Context, calls []string, f cancelFlags) error {
	l, err := s.daemon.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	switch {
	case f.turn:
		return s.cancelTurn(ctx, l, f.session)
	case f.all:
		return eachOpen(ctx, l, f.session, func(x *tooldv1.GetSessionResponse) error { return s.cancelAll(ctx, l, x) })
	}
	for _, id := range calls {
		if err := s.cancelNamed(ctx, l, id, f.session); err != nil {
			return err
		}
	}
	return nil
}

func (s *app) cancelTurn(ctx context.Context, l *toold.Conn, session string) (err error) {
	if session == "" {
		if session, err = newestHere(ctx, l); err != nil {
			return err
		}
	}
	response, err := l.Sessions.CancelTurn(ctx, &tooldv1.CancelTurnRequest{SessionId: session, Reason: cancelReason})
	if err != nil {
		return err
	}
	if response.GetTurns() == 0 {
		return cli.Failed("no turn is open in session %q", session)
	}
	return s.stopped("turn", "", session)
}

// cancelAll stops what is open in one session.
func (s *app) cancelAll(ctx context.Context, l *toold.Conn, x *tooldv1.GetSessionResponse) error {
	session := x.GetSession().GetSessionId()
	if _, err := l.Sessions.CancelTurn(ctx, &tooldv1.CancelTurnRequest{SessionId: session, All: true, Reason: cancelReason}); err != nil {
		return err
	}
	for _, c := range x.GetOpenCalls() {
		if err := s.stopped("call", c.GetToolUseId(), session); err != nil {
			return err
		}
	}
	for _, task := range x.GetSession().GetBackgroundTasks() {
		if err := s.killTask(ctx, l, session, task.GetTaskId()); err != nil {
			return err
		}
	}
	return nil
}

// cancelNamed stops the open call with that id, or the background task with that id, wherever it is.
func (s *app) cancelNamed(ctx context.Context, l *toold.Conn, id, session string) error {
	var in, task []string
	err := eachOpen(ctx, l, session, func(x *tooldv1.GetSessionResponse) error {
		name := x.GetSession().GetSessionId()
		if slices.ContainsFunc(x.GetOpenCalls(), func(c *tooldv1.OpenCall) bool { return c.GetToolUseId() == id }) {
			in = append(in, name)
		}
		for _, t := range x.GetSession().GetBackgroundTasks() {
			if t.GetTaskId() == id || t.GetToolUseId() == id {
				task = append(task, name, t.GetTaskId())
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(in)+len(task)/2 > 1:
		return cli.Misused("%q is open in several sessions: name one with --session", id)
	case len(task) > 0:
		return s.killTask(ctx, l, task[0], task[1])
	case len(in) == 0:
		return cli.Failed("no call or background task %q is open. \"toold log\" shows calls that have ended.", id)
	}
	response, err := l.Sessions.CancelCall(ctx, &tooldv1.CancelCallRequest{SessionId: in[0], ToolUseId: id, Reason: cancelReason})
	if err != nil {
		return err
	}
	if !response.GetCancelled() {
		return cli.Failed("the call %q had ended already", id)
	}
	return s.stopped("call", id, in[0])
}

func (s *app) killTask(ctx context.Context, l *toold.Conn, session, id string) error {
	if _, err := l.Sessions.KillTask(ctx, &tooldv1.KillTaskRequest{SessionId: session, TaskId: id}); err != nil {
		return err
	}
	return s.stopped("background task", id, session)
}

// stopped prints what was stopped; without an id it is the one thing of its kind.
func (s *app) stopped(kind, id, session string) error {
	if s.JSON {
		_, err := fmt.Fprintf(s.Stdout, "{\"session_id\":%q,\"kind\":%q,\"id\":%q}\n", session, kind, id)
		return err
	}
	text := "stopped " + strings.TrimSpace(kind+" "+terminal.VisibleLine(id)) + " in session " + terminal.VisibleLine(session)
	if kind == "session" {
		text = "closed session " + terminal.VisibleLine(session)
	}
	_, err := fmt.Fprintln(s.Stdout, text)
	return err
}

func (s *app) closeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close SESSION...",
		Short: "End sessions",
		Long: "Ends sessions: their calls are stopped, and their background tasks. Returns when all of them have ended. The records\n" +
			"of a closed session stay for a while; \"toold log\" shows them.",
		Example:           "  toold close work",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeSessions,
		RunE: cli.Action(func(ctx context.Context, args []string) error {
			l, err := s.daemon.Connect(ctx)
			if err != nil {
				return err
			}
			defer l.Close()
			for _, name := range args {
				if _, err := l.Sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: name}); err != nil {
					return err
				}
				if err := s.stopped("session", "", name); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
