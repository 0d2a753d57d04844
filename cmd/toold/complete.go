// What the shell offers when Tab is pressed: names of tools, sessions and calls, from the daemon that runs. No daemon
// is started, and nothing is offered where none answers.

package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/records"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// completePatience is how long a shell waits for a daemon. Ours: longer is felt.
const completePatience = time.Second

// A completer offers words for an argument or a flag.
type completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completing makes a completer of what a daemon is asked for, for the first argument.
func (s *app) completing(ask func(ctx context.Context, cmd *cobra.Command, l *toold.Conn) ([]string, error)) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completePatience)
		defer cancel()
		l, err := s.daemon.Running(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer l.Close()
		words, _ := ask(ctx, cmd, l)
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func (s *app) completeTools(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return s.completing(func(ctx context.Context, _ *cobra.Command, l *toold.Conn) (names []string, err error) {
		list, err := l.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{})
		for _, tool := range list.GetTools() {
			names = append(names, tool.GetName()+"\t"+terminal.Fit(firstLine(tool.GetDescription()), 60))
		}
		return names, err
	})(cmd, args, typed)
}

// completeFirst offers words for the first argument only.
func (s *app) completeFirst(offer completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, typed)
	}
}

func (s *app) completeSessions(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return s.completing(func(ctx context.Context, _ *cobra.Command, l *toold.Conn) (names []string, err error) {
		list, err := l.ListSessions(ctx, false)
		for _, x := range list {
			names = append(names, x.GetSessionId()+"\t"+terminal.VisibleLine(x.GetWorkingDirectory()))
		}
		return names, err
	})(cmd, args, typed)
}

// completeCalls offers the open calls of the session that --session names, or of all sessions.
func (s *app) completeCalls(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return s.completing(func(ctx context.Context, cmd *cobra.Command, l *toold.Conn) (ids []string, err error) {
		err = eachOpen(ctx, l, cmd.Flag("session").Value.String(), func(x *tooldv1.GetSessionResponse) error {
			for _, c := range x.GetOpenCalls() {
				ids = append(ids, c.GetToolUseId()+"\t"+terminal.VisibleLine(c.GetTitle()))
			}
			return nil
		})
		return ids, err
	})(cmd, args, typed)
}

// completeRecorded offers all calls of the session that --session names.
func (s *app) completeRecorded(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return s.completing(func(ctx context.Context, cmd *cobra.Command, l *toold.Conn) (ids []string, err error) {
		session := cmd.Flag("session").Value.String()
		if session == "" {
			return nil, nil
		}
		err = records.Watch(ctx, l, &tooldv1.WatchRequest{SessionId: session, NoFollow: true}, func(event *tooldv1.ExecuteResponse) error {
			if a := event.GetAccepted(); a != nil {
				ids = append(ids, a.GetToolUseId()+"\t"+terminal.VisibleLine(a.GetTitle()))
			}
			return nil
		})
		slices.Reverse(ids)
		return ids, err
	})(cmd, args, typed)
}
