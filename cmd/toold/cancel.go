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
		ValidArgsFunction: s.completeCalls(),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if f.turn && f.all || (len(args) > 0) == (f.turn || f.all) {
				return cli.Misused("name calls, or choose --turn or --all")
			}
			return nil
		},
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, calls []string) error {
			if f.turn {
				return s.cancelTurn(ctx, l, f.session)
			}
			if f.all {
				return s.cancelAll(ctx, l, f.session)
			}
			for _, id := range calls {
				if err := s.cancelNamed(ctx, l, id, f.session); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "in this session only")
	flags.BoolVar(&f.turn, "turn", false, "the open turn of the session")
	flags.BoolVar(&f.all, "all", false, "everything that runs or waits")
	return cmd
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

// cancelAll stops what is open in a session, or in all of them.
func (s *app) cancelAll(ctx context.Context, l *toold.Conn, session string) error {
	list, err := openSessions(ctx, l, session)
	for _, x := range list {
		session := x.GetSession().GetSessionId()
		if _, err = l.Sessions.CancelTurn(ctx, &tooldv1.CancelTurnRequest{SessionId: session, All: true, Reason: cancelReason}); err != nil {
			return err
		}
		for _, c := range x.GetOpenCalls() {
			if err = s.stopped("call", c.GetToolUseId(), session); err != nil {
				return err
			}
		}
		for _, task := range x.GetSession().GetBackgroundTasks() {
			if err = s.killTask(ctx, l, session, task.GetTaskId()); err != nil {
				return err
			}
		}
	}
	return err
}

// cancelNamed stops the open call with that id, or the background task with that id, wherever it is.
func (s *app) cancelNamed(ctx context.Context, l *toold.Conn, id, session string) error {
	list, err := openSessions(ctx, l, session)
	if err != nil {
		return err
	}
	var stops []func() error
	for _, x := range list {
		name := x.GetSession().GetSessionId()
		for _, c := range slices.Backward(x.GetOpenCalls()) { // the newest, if several turns have the id
			if c.GetToolUseId() == id {
				stops = append(stops, func() error { return s.cancelCall(ctx, l, name, c) })
				break
			}
		}
		for _, t := range x.GetSession().GetBackgroundTasks() {
			if t.GetTaskId() == id || t.GetToolUseId() == id {
				stops = append(stops, func() error { return s.killTask(ctx, l, name, t.GetTaskId()) })
			}
		}
	}
	switch len(stops) {
	case 0:
		return cli.Failed("no call or background task %q is open. \"toold log\" shows calls that have ended.", id)
	case 1:
		return stops[0]()
	default:
		return cli.Misused("%q is open in several sessions: name one with --session", id)
	}
}

func (s *app) cancelCall(ctx context.Context, l *toold.Conn, session string, c *tooldv1.OpenCall) error {
	id, turn := c.GetToolUseId(), c.GetTurn()
	response, err := l.Sessions.CancelCall(ctx, &tooldv1.CancelCallRequest{SessionId: session, ToolUseId: id, Turn: &turn, Reason: cancelReason})
	if err != nil {
		return err
	}
	if !response.GetCancelled() {
		return cli.Failed("the call %q had ended already", id)
	}
	return s.stopped("call", id, session)
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
	text := "stopped " + strings.TrimSpace(kind+" "+terminal.VisibleLine(id)) + " in session "
	if kind == "session" {
		text = "closed session "
	}
	_, err := fmt.Fprintln(s.Stdout, text+terminal.VisibleLine(session))
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
		ValidArgsFunction: s.completeSessions(),
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, names []string) error {
			for _, name := range names {
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
