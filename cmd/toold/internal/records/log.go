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
	s := journalLog{daemon}
	var f filter
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show what was done, by whom, and why it was allowed",
		Long: "Shows the calls that the journal keeps, session by session: when each ended and how, how long it ran, why it was\n" +
			"allowed or not, and by which rule. --records shows every record instead, --json gives them as the wire has them,\n" +
			"one a line, each with its session. A time is a span back from now (24h) or a date (2026-11-21, or\n" +
			"2026-11-21T15:04:05).",
		Example: "  toold log --session work\n  toold log --tool Bash --outcome denied --since 24h\n  toold log --session work --input\n  toold log --follow\n  toold log --json",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			if f.outcome != "" && !slices.Contains(outcomes(), f.outcome) {
				return cli.Misused("the outcome %q is not known: choose one of %s", f.outcome, strings.Join(outcomes(), ", "))
			}
			wanted, err := newSelection(f, time.Now())
			if err != nil {
				return err
			}
			return s.log(ctx, f, wanted)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "this session alone")
	flags.StringVar(&f.tool, "tool", "", "calls of this tool alone")
	flags.StringVar(&f.outcome, "outcome", "", "calls with this outcome alone: "+strings.Join(outcomes(), ", "))
	flags.StringVar(&f.since, "since", "", "nothing from before this time")
	flags.StringVar(&f.until, "until", "", "nothing from after this time")
	flags.BoolVar(&f.records, "records", false, "every record, instead of a few lines a call")
	flags.BoolVar(&f.inputs, "input", false, "each call's input too, with marks in place of secrets")
	flags.BoolVar(&f.follow, "follow", false, "go on with what happens from now on")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// outcomes are the words of the wire's outcomes, in their order.
func outcomes() []string {
	var words []string
	for n := range int32(len(tooldv1.Outcome_name)) {
		if n > 0 {
			words = append(words, terminal.OutcomeWord(tooldv1.Outcome(n)))
		}
	}
	return words
}

func (s journalLog) log(ctx context.Context, f filter, wanted selection) error {
	l, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	page := terminal.Open(s.Stdout)
	width, _ := page.Size()
	out := &logWriter{journalLog: s, filter: f, wanted: wanted, ink: page.Ink, width: width, sessions: map[string]*sessionLog{}}
	if f.follow {
		return out.follow(ctx, l)
	}
	names := []string{f.session}
	if f.session == "" {
		if names, err = sessionNames(ctx, l); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := Watch(ctx, l, f.request(name), func(event *tooldv1.ExecuteResponse) error { return out.take(name, event) })
		if err == nil {
			err = out.end(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// request asks for a session's records.
func (f filter) request(session string) *tooldv1.WatchRequest {
	return &tooldv1.WatchRequest{SessionId: session, NoFollow: !f.follow, Inputs: f.inputs}
}

// sessionNames are those of all sessions, the newest last, as in any log.
func sessionNames(ctx context.Context, l *toold.Conn) (names []string, err error) {
	list, err := l.ListSessions(ctx, true)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		names = append(names, x.GetSessionId())
	}
	slices.Reverse(names)
	return names, nil
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
	journalLog
	filter   filter
	wanted   selection
	ink      terminal.Ink
	width    int
	sessions map[string]*sessionLog
	headed   string // the session that was named last
}

// sessionLog is what there is of one session.
type sessionLog struct {
	wanted *selection
	audit  *audit
}

func (w *logWriter) session(name string) *sessionLog {
	if w.sessions[name] == nil {
		wanted := w.wanted
		wanted.tools = map[string]string{}
		w.sessions[name] = &sessionLog{&wanted, newAudit(&wanted, w.ink, w.width)}
	}
	return w.sessions[name]
}

// take writes what an event comes to. What has no number is not a record.
func (w *logWriter) take(name string, event *tooldv1.ExecuteResponse) error {
	x := w.session(name)
	switch {
	case event.GetSeq() == 0:
		return nil
	case w.JSON:
		if !x.wanted.record(event) {
			return nil
		}
		return Print(w.Console, name, event, w.ink)
	case w.filter.records:
		if line := terminal.EventLine(event, w.ink); x.wanted.record(event) && line != "" {
			return w.lines(name, line)
		}
		return nil
	}
	return w.lines(name, x.audit.take(event)...)
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
	return w.lines(name, w.session(name).audit.open()...)
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

func (sel *selection) at(when time.Time) bool {
	return !when.Before(sel.from) && (sel.to.IsZero() || when.Before(sel.to))
}

// call reports whether a call is wanted that ended so then, or is open and has no outcome.
func (sel *selection) call(tool string, when time.Time, outcome string) bool {
	return sel.at(when) && (sel.filter.tool == "" || sel.filter.tool == tool) && (sel.filter.outcome == "" || sel.filter.outcome == outcome)
}

func (sel *selection) record(event *tooldv1.ExecuteResponse) bool {
	if a := event.GetAccepted(); a != nil {
		sel.tools[a.GetToolUseId()] = a.GetName()
	}
	if !sel.at(event.GetTime().AsTime()) {
		return false
	}
	if sel.filter.tool != "" && sel.tools[terminal.CallOf(event)] != sel.filter.tool {
		return false
	}
	if sel.filter.outcome == "" {
		return true
	}
	r := event.GetToolResult()
	return r != nil && terminal.OutcomeWord(r.GetOutcome()) == sel.filter.outcome
}

// journalLog prints what the journal holds.
type journalLog struct{ *connect.Finder }
