// The journal as an audit log, and a session watched live. Both are the daemon's records as lines; this file does not
// know what the records mean.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A filter says which records are wanted; an empty field wants all.
type filter struct {
	session, tool, outcome string
	since                  time.Duration
}

func (s *setup) logCommand() *cobra.Command {
	var f filter
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show the journal's records",
		Long: "Shows the journal's records, session by session. --tool shows the records of that tool's calls, --outcome\n" +
			"results alone. --json gives the records as the wire has them, one a line, each with its session.",
		Example: "  toold log --session work\n  toold log --tool Bash --outcome denied --since 24h\n  toold log --json",
		Args:    cobra.NoArgs,
		RunE: doing(func(ctx context.Context, _ []string) error {
			if f.outcome != "" && !slices.Contains(outcomes(), f.outcome) {
				return misused("the outcome %q is not known: choose one of %s", f.outcome, strings.Join(outcomes(), ", "))
			}
			return s.log(ctx, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "this session alone")
	flags.StringVar(&f.tool, "tool", "", "calls of this tool alone")
	flags.StringVar(&f.outcome, "outcome", "", "results with this outcome alone: "+strings.Join(outcomes(), ", "))
	flags.DurationVar(&f.since, "since", 0, "records of the last so long alone, such as 24h")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// outcomes are the words of the wire's outcomes, in their order.
func outcomes() []string {
	var words []string
	for n := range int32(len(tooldv1.Outcome_name)) {
		if n > 0 {
			words = append(words, outcomeWord(tooldv1.Outcome(n)))
		}
	}
	return words
}

func (s *setup) log(ctx context.Context, f filter) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	names := []string{f.session}
	if f.session == "" {
		list, err := l.sessions.ListSessions(ctx, &tooldv1.ListSessionsRequest{IncludeClosed: true})
		if err != nil {
			return err
		}
		names = nil
		for _, x := range list.GetSessions() {
			names = append(names, x.GetSessionId())
		}
		slices.Reverse(names) // the newest last, as in any log
	}
	for _, name := range names {
		if err := s.logSession(ctx, l, name, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *setup) logSession(ctx context.Context, l *link, name string, f filter) error {
	stream, err := l.sessions.Watch(ctx, &tooldv1.WatchRequest{SessionId: name, AfterSeq: proto.Uint64(0), NoFollow: true})
	if err != nil {
		return err
	}
	p := pageOf(s.stdout)
	wanted := newSelection(f, time.Now())
	headed := s.json
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		event := response.GetEvent()
		if !wanted.record(event) {
			continue
		}
		if !headed {
			headed = true
			if _, err := fmt.Fprintln(s.stdout, p.ink.strong.Render("session "+visibleLine(name))); err != nil {
				return err
			}
		}
		if err := s.printRecord(name, event, p.ink); err != nil {
			return err
		}
	}
}

func (s *setup) printRecord(session string, event *tooldv1.ExecuteResponse, k ink) error {
	if !s.json {
		line := eventLine(event, k)
		if line == "" {
			return nil
		}
		_, err := fmt.Fprintln(s.stdout, line)
		return err
	}
	text, err := wireJSON(event)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "{\"session_id\":%q,\"event\":%s}\n", session, text)
	return err
}

// A selection applies a filter to one session's records, in their order. It remembers which tool a call is of.
type selection struct {
	filter filter
	from   time.Time
	tools  map[string]string
}

func newSelection(f filter, now time.Time) *selection {
	sel := &selection{filter: f, tools: map[string]string{}}
	if f.since > 0 {
		sel.from = now.Add(-f.since)
	}
	return sel
}

func (sel *selection) record(event *tooldv1.ExecuteResponse) bool {
	if a := event.GetAccepted(); a != nil {
		sel.tools[a.GetToolUseId()] = a.GetName()
	}
	if event.GetSeq() == 0 || event.GetTime().AsTime().Before(sel.from) {
		return false
	}
	if sel.filter.tool != "" && sel.tools[callOf(event)] != sel.filter.tool {
		return false
	}
	if sel.filter.outcome == "" {
		return true
	}
	r := event.GetToolResult()
	return r != nil && outcomeWord(r.GetOutcome()) == sel.filter.outcome
}
