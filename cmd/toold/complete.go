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

// offers are the words that the shell offers.
type offers struct {
	session string // that --session names
	words   []string
}

// add offers a word, with what it stands for.
func (o *offers) add(word, about string) {
	o.words = append(o.words, word+"\t"+terminal.VisibleLine(about))
}

// completing makes a completion of what a daemon that runs answers. What it does not answer is not offered.
func (s *app) completing(ask func(ctx context.Context, l *toold.Conn, o *offers)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completePatience)
		defer cancel()
		var o offers
		if l, err := s.daemon.Running(ctx); err == nil {
			defer l.Close()
			if flag := cmd.Flag("session"); flag != nil {
				o.session = flag.Value.String()
			}
			ask(ctx, l, &o)
		}
		return o.words, cobra.ShellCompDirectiveNoFileComp
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
	return first(s.completing(func(ctx context.Context, l *toold.Conn, o *offers) {
		list, _ := l.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{})
		for _, tool := range list.GetTools() {
			o.add(tool.GetName(), terminal.Fit(firstLine(tool.GetDescription()), 60))
		}
	}))
}

func (s *app) completeSessions() cobra.CompletionFunc {
	return s.completing(func(ctx context.Context, l *toold.Conn, o *offers) {
		list, _ := l.ListSessions(ctx, false)
		for _, x := range list {
			o.add(x.GetSessionId(), x.GetWorkingDirectory())
		}
	})
}

// completeCalls offers the open calls of the session that --session names, or of all sessions.
func (s *app) completeCalls() cobra.CompletionFunc {
	return s.completing(func(ctx context.Context, l *toold.Conn, o *offers) {
		list, _ := openSessions(ctx, l, o.session)
		for _, x := range list {
			for _, c := range x.GetOpenCalls() {
				o.add(c.GetToolUseId(), c.GetTitle())
			}
		}
	})
}

// completeRecorded offers all calls of the session that --session names, the newest first.
func (s *app) completeRecorded() cobra.CompletionFunc {
	return first(s.completing(func(ctx context.Context, l *toold.Conn, o *offers) {
		if o.session == "" {
			return
		}
		request := &tooldv1.WatchRequest{SessionId: o.session, NoFollow: true}
		_ = records.Watch(ctx, l, request, func(event *tooldv1.ExecuteResponse) error {
			if a := event.GetAccepted(); a != nil {
				o.add(a.GetToolUseId(), a.GetTitle())
			}
			return nil
		})
		slices.Reverse(o.words)
	}))
}
