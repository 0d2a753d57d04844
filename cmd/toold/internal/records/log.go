// Package records prints the journal of sessions: as an audit log, or record by record, once or live.
package records

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A filter is what is wanted; an empty field stands for all.
type filter struct {
	session, tool, outcome string
	since, until           string
	records, follow        bool
	inputs                 bool // each call with its input
}

// Command returns "toold log".
func Command(daemon *connect.Finder) *cobra.Command {
	var f filter
	var wanted selection
	outcomes := outcomes()
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show what was done, by whom, and why it was allowed",
		Long: "Shows the calls that the journal keeps, session by session: when each ended and how, how long it ran, why it was\n" +
			"allowed or not, and by which rule. --records shows every record instead, --json gives them as the wire has them,\n" +
			"one a line, each with its session. A time is a span back from now (24h) or a date (2026-11-21, or\n" +
			"2026-11-21T15:04:05).",
		Example: "  toold log --session work\n  toold log --tool Bash --outcome denied --since 24h\n  toold log --session work --input\n  toold log --follow\n  toold log --json",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) (err error) {
			wanted, err = newSelection(f, time.Now())
			return err
		},
		RunE: daemon.Action(func(ctx context.Context, l *toold.Conn, _ []string) error {
			page := terminal.Open(daemon.Stdout)
			width, _ := page.Size()
			out := &logWriter{Finder: daemon, filter: f, wanted: wanted, ink: page.Ink, width: width, sessions: map[string]*audit{}}
			if f.follow {
				return out.follow(ctx, l)
			}
			return out.whole(ctx, l)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "this session alone")
	flags.StringVar(&f.tool, "tool", "", "calls of this tool alone")
	cli.AddChoice(cmd, &f.outcome, "outcome", "", "calls with this outcome alone: "+strings.Join(outcomes, ", "), outcomes...)
	flags.StringVar(&f.since, "since", "", "nothing from before this time")
	flags.StringVar(&f.until, "until", "", "nothing from after this time")
	flags.BoolVar(&f.records, "records", false, "every record, instead of a few lines a call")
	flags.BoolVar(&f.inputs, "input", false, "each call's input too, with marks in place of secrets")
	flags.BoolVar(&f.follow, "follow", false, "go on with what happens from now on")
	return cmd
}

// outcomes are the words of the wire's outcomes, in their order.
func outcomes() (words []string) {
	for n := 1; n < len(tooldv1.Outcome_name); n++ {
		words = append(words, terminal.Word(tooldv1.Outcome(n)))
	}
	return words
}

// whole writes what there is, one session after the other.
func (w *logWriter) whole(ctx context.Context, l *toold.Conn) error {
	names, err := w.names(ctx, l)
	for _, name := range names {
		if err = Watch(ctx, l, w.filter.request(name), func(event *tooldv1.ExecuteResponse) error { return w.take(name, event) }); err == nil {
			err = w.end(name)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// request asks for a session's records.
func (f filter) request(session string) *tooldv1.WatchRequest {
	return &tooldv1.WatchRequest{SessionId: session, NoFollow: !f.follow, Inputs: f.inputs}
}

// names returns the session that is wanted, or all sessions there are by now, the newest last, as in any log.
func (w *logWriter) names(ctx context.Context, l *toold.Conn) (names []string, err error) {
	if w.filter.session != "" {
		return []string{w.filter.session}, nil
	}
	list, err := l.ListSessions(ctx, true)
	for _, x := range slices.Backward(list) {
		names = append(names, x.GetSessionId())
	}
	return names, err
}

// Watch calls take with a session's records, from the first that is kept.
func Watch(ctx context.Context, l *toold.Conn, request *tooldv1.WatchRequest, take func(*tooldv1.ExecuteResponse) error) error {
	request.AfterSeq = proto.Uint64(0)
	events, err := toold.Watch(ctx, l, request)
	if err != nil {
		return err
	}
	for event, err := range events {
		if err == nil {
			err = take(event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A logWriter writes what is wanted of the sessions' records.
type logWriter struct {
	*connect.Finder
	filter   filter
	wanted   selection
	ink      terminal.Ink
	width    int
	sessions map[string]*audit
	headed   string // the session that was named last
}

func (w *logWriter) session(name string) *audit {
	if w.sessions[name] == nil {
		wanted := w.wanted
		wanted.tools = map[string]string{}
		w.sessions[name] = newAudit(&wanted, w.ink, w.width)
	}
	return w.sessions[name]
}

// take writes what an event comes to. What has no number is not a record.
func (w *logWriter) take(name string, event *tooldv1.ExecuteResponse) error {
	x := w.session(name)
	switch {
	case event.GetSeq() == 0:
		return nil
	case !w.JSON && !w.filter.records:
		return w.lines(name, x.take(event)...)
	case !x.wanted.record(event):
		return nil
	case w.JSON:
		return Print(w.Console, name, event, w.ink)
	}
	if line := terminal.EventLine(event, w.ink); line != "" {
		return w.lines(name, line)
	}
	return nil
}

// Print writes a record as one line, or as JSON with its session.
func Print(c *cli.Console, session string, event *tooldv1.ExecuteResponse, k terminal.Ink) error {
	if !c.JSON {
		line := terminal.EventLine(event, k)
		if line == "" {
			return nil
		}
		_, err := fmt.Fprintln(c.Stdout, line)
		return err
	}
	text, err := terminal.WireJSON(event)
	if err == nil {
		_, err = fmt.Fprintf(c.Stdout, "{\"session_id\":%q,\"event\":%s}\n", session, text)
	}
	return err
}

// end writes what is open at the end.
func (w *logWriter) end(name string) error {
	if w.JSON || w.filter.records {
		return nil
	}
	return w.lines(name, w.session(name).open()...)
}

// lines writes lines below the name of their session.
func (w *logWriter) lines(name string, lines ...string) error {
	if len(lines) > 0 && w.headed != name {
		w.headed = name
		lines = append([]string{w.ink.Strong.Render("session " + terminal.VisibleLine(name))}, lines...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// A selection applies a filter to one session's records, in their order. It remembers which tool a call is of.
type selection struct {
	filter   filter
	from, to time.Time // zero: no bound
	tools    map[string]string
}

func newSelection(f filter, now time.Time) (sel selection, err error) {
	sel = selection{filter: f, tools: map[string]string{}}
	if sel.from, err = timeOf("since", f.since, now); err == nil {
		sel.to, err = timeOf("until", f.until, now)
	}
	return sel, err
}

// timeOf parses a time as a user writes it; the zero time if it is empty.
func timeOf(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if back, err := time.ParseDuration(text); err == nil {
		return now.Add(-back), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Misused("--%s %q is no time: give a span back from now, such as 24h, or a date, such as 2026-11-21 or 2026-11-21T15:04:05", flag, text)
}

// call reports whether a call is wanted that ended so then, or is open and has no outcome.
func (sel *selection) call(tool string, when time.Time, outcome string) bool {
	return !when.Before(sel.from) && (sel.to.IsZero() || when.Before(sel.to)) &&
		(sel.filter.tool == "" || sel.filter.tool == tool) && (sel.filter.outcome == "" || sel.filter.outcome == outcome)
}

// record reports whether a record is wanted. It has to be asked about each of them.
func (sel *selection) record(event *tooldv1.ExecuteResponse) bool {
	if a := event.GetAccepted(); a != nil {
		sel.tools[a.GetToolUseId()] = a.GetName()
	}
	outcome := ""
	if r := event.GetToolResult(); r != nil {
		outcome = terminal.Word(r.GetOutcome())
	}
	return sel.call(sel.tools[terminal.CallOf(event)], event.GetTime().AsTime(), outcome)
}
