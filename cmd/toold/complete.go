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

// offered is a word that the shell offers, with what it stands for.
func offered(word, about string) string { return word + "\t" + about }

// completing makes a completion of what a daemon that runs answers. ask gets the session that --session names.
func (s *app) completing(ask func(ctx context.Context, l *toold.Conn, session string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (words []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completePatience)
		defer cancel()
		if l, err := s.daemon.Running(ctx); err == nil {
			defer l.Close()
			session := ""
			if flag := cmd.Flag("session"); flag != nil {
				session = flag.Value.String()
			}
			words, _ = ask(ctx, l, session)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// first offers words for the first argument only.
func first(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, typed)
	}
}

func (s *app) completeTools() cobra.CompletionFunc {
	return s.completing(func(ctx context.Context, l *toold.Conn, _ string) (names []string, err error) {
		list, err := l.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{})
		for _, tool := range list.GetTools() {
			names = append(names, offered(tool.GetName(), terminal.Fit(firstLine(tool.GetDescription()), 60)))
		}
		return names, err
	})
}

func (s *app) completeSessions() cobra.CompletionFunc {
	return s.completing(func(ctx context.Context, l *toold.Conn, _ string) (names []string, err error) {
		list, err := l.ListSessions(ctx, false)
		for _, x := range list {
			names = append(names, offered(x.GetSessionId(), terminal.VisibleLine(x.GetWorkingDirectory())))
		}
		return names, err
	})
}

// completeCalls offers the open calls of the session that --session names, or of all sessions.
func (s *app) completeCalls() cobra.CompletionFunc {
	return s.completing(func(ctx context.Context, l *toold.Conn, session string) (ids []string, err error) {
		list, err := openSessions(ctx, l, session)
		for _, x := range list {
			for _, c := range x.GetOpenCalls() {
				ids = append(ids, offered(c.GetToolUseId(), terminal.VisibleLine(c.GetTitle())))
			}
		}
		return ids, err
	})
}

// completeRecorded offers all calls of the session that --session names, the newest first.
func (s *app) completeRecorded() cobra.CompletionFunc {
	return first(s.completing(func(ctx context.Context, l *toold.Conn, session string) (ids []string, err error) {
		if session == "" {
			return nil, nil
		}
		err = records.Watch(ctx, l, &tooldv1.WatchRequest{SessionId: session, NoFollow: true}, func(event *tooldv1.ExecuteResponse) error {
			if a := event.GetAccepted(); a != nil {
				ids = append(ids, offered(a.GetToolUseId(), terminal.VisibleLine(a.GetTitle())))
			}
			return nil
		})
		slices.Reverse(ids)
		return ids, err
	}))
}
