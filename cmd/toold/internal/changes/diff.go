package changes

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// DiffCommand returns "toold diff".
func DiffCommand(daemon *connect.Finder) *cobra.Command {
	s := changes{daemon}
	var f changeFlags
	var stat bool
	cmd := &cobra.Command{
		Use:   "diff [CALL]",
		Short: "Show what calls have changed",
		Long: "Shows what a session, one turn of it (--turn) or one call (CALL, its id) has changed, as far as that is kept: as a\n" +
			"unified diff that git apply takes in the session's root. What was changed and put back again is not shown.",
		Example: "  toold diff\n  toold diff --stat\n  toold diff --turn 3 --session work\n  toold diff toolu_01 | git apply -R",
		Args:    cobra.MaximumNArgs(1),

		PreRunE: func(cmd *cobra.Command, args []string) error { return f.read(cmd, args) },
		RunE:    cli.Action(func(ctx context.Context, _ []string) error { return s.diff(ctx, f, stat) }),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&stat, "stat", false, "count lines, file by file, and show no diff")
	return cmd
}

func (s changes) diff(ctx context.Context, f changeFlags, stat bool) error {
	l, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	session, _, err := f.find(ctx, l, func(c *tooldv1.Checkpoint) bool { return own(c) && (f.call == "" || c.GetToolUseId() == f.call) })
	if err != nil {
		return err
	}
	request := &tooldv1.ListCheckpointsRequest{SessionId: session, ToolUseId: f.call, Paths: f.paths, Net: true, NoDiffs: true, Limit: 1000}
	if f.turned {
		request.Turn = &f.turn
	}
	list, err := l.Sessions.ListCheckpoints(ctx, request)
	if err != nil {
		return err
	}
	if len(list.GetCheckpoints()) == 0 {
		return cli.Failed("session %q has changed nothing there that is kept. \"toold log --session %s\" shows what it did", session, session)
	}
	if s.JSON {
		return terminal.PrintJSON(s.Stdout, list)
	}
	p := terminal.Open(s.Stdout)
	if stat {
		_, err = io.WriteString(s.Stdout, terminal.StatText(list.GetNet(), p.Ink))
	} else {
		err = terminal.PrintDiffs(s.Stdout, p, list.GetNet())
	}
	if n := list.GetMoreNet(); n > 0 {
		fmt.Fprintf(s.Stderr, "%s of which nothing is shown: there are too many. --path shows some alone.\n", terminal.Count(int(n), "more file"))
	}
	if err != nil {
		return err
	}
	return s.tellNotKept(ctx, l, request, list)
}

// tellNotKept returns what of the changes cannot be put back, on all pages of the list.
func (s changes) tellNotKept(ctx context.Context, l *toold.Conn, request *tooldv1.ListCheckpointsRequest, list *tooldv1.ListCheckpointsResponse) (err error) {
	var missing []*tooldv1.PathReason
	var more uint32
	for {
		for _, c := range list.GetCheckpoints() {
			missing, more = append(missing, c.GetNotKept()...), more+c.GetMoreNotKept()
		}
		if request.PageToken = list.GetNextPageToken(); request.PageToken == "" {
			break
		}
		request.Net = false
		if list, err = l.Sessions.ListCheckpoints(ctx, request); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(s.Stderr, terminal.ReasonLines("Not kept, so it cannot be put back:", missing, more))
	return err
}
