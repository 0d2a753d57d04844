package changes

import (
	"context"
	"fmt"

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
		RunE:    s.Action(func(ctx context.Context, l *toold.Conn, _ []string) error { return s.diff(ctx, l, f, stat) }),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&stat, "stat", false, "count lines, file by file, and show no diff")
	return cmd
}

func (s changes) diff(ctx context.Context, l *toold.Conn, f changeFlags, stat bool) error {
	session, _, err := f.find(ctx, l, func(c *tooldv1.Checkpoint) bool { return own(c) && (f.call == "" || c.GetToolUseId() == f.call) })
	if err != nil {
		return err
	}
	request := &tooldv1.ListCheckpointsRequest{SessionId: session, ToolUseId: f.call, Paths: f.paths, Net: true, NoDiffs: true, Limit: 1000}
	if f.turned {
		request.Turn = &f.turn
	}
	var missing []*tooldv1.PathReason
	var more uint32
	for list, err := range l.Checkpoints(ctx, request) {
		if err == nil && request.Net {
			err = s.show(list, session, stat)
		}
		if err != nil || s.JSON {
			return err
		}
		request.Net = false // it is not for a page
		for _, c := range list.GetCheckpoints() {
			missing, more = append(missing, c.GetNotKept()...), more+c.GetMoreNotKept()
		}
	}
	_, err = fmt.Fprint(s.Stderr, terminal.ReasonLines("Not kept, so it cannot be put back:", missing, more))
	return err
}

// show prints what has changed.
func (s changes) show(list *tooldv1.ListCheckpointsResponse, session string, stat bool) error {
	if len(list.GetCheckpoints()) == 0 {
		return cli.Failed("session %q has changed nothing there that is kept. \"toold log --session %s\" shows what it did", session, session)
	}
	p := terminal.Open(s.Stdout)
	text := terminal.DiffsText(list.GetNet(), p)
	if stat {
		text = terminal.StatText(list.GetNet(), p.Ink)
	}
	if !s.JSON {
		s.tellMore(list.GetMoreNet())
	}
	return s.Show(list, text)
}
