package changes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// undoFlags are what is restored, and how.
type undoFlags struct {
	changeFlags
	dryRun, force, yes bool
}

// UndoCommand returns "toold undo".
func UndoCommand(daemon *connect.Finder) *cobra.Command {
	s := changes{daemon}
	var f undoFlags
	cmd := &cobra.Command{
		Use:   "undo [CALL]",
		Short: "Put back what calls have changed",
		Long: "Puts files back to how they were before a call (CALL, its id) or a turn (--turn), with all that was changed from\n" +
			"there on. Without either: before the newest turn that has changed something and is not undone, so that once more\n" +
			"undoes the one before.\n\n" +
			"The diff is shown and asked about; without a terminal say --yes. A file that is not as the last call has left it is\n" +
			"named, and nothing is put back, unless --path leaves it out or --force takes it too. What is there now is kept first:\n" +
			"the last line says how to bring it back. What cannot be kept stays as it is, also with --force, and is named.\n\n" +
			"Exit codes: 0 put back, or nothing to do; 1 it was not, or --dry-run has found conflicts; 2 usage, 3 no daemon.",
		Example: "  toold undo\n  toold undo --turn 3 --session work --dry-run\n  toold undo toolu_01 --path src/main.go --yes",
		Args:    cobra.MaximumNArgs(1),
		PreRunE: func(cmd *cobra.Command, args []string) error { return f.read(cmd, args) },
		RunE:    s.Action(func(ctx context.Context, l *toold.Conn, _ []string) error { return s.undo(ctx, l, f) }),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	flags.BoolVar(&f.force, "force", false, "also where a file is not as the last call has left it")
	flags.BoolVarP(&f.yes, "yes", "y", false, "ask nothing")
	return cmd
}

func (s changes) undo(ctx context.Context, l *toold.Conn, f undoFlags) error {
	request, plan, err := s.undoPlan(ctx, l, f)
	if err != nil {
		return err
	}
	conflicts := len(plan.GetConflicts()) + int(plan.GetMoreConflicts())
	switch {
	case !s.JSON:
		err = s.showPlan(plan)
	case f.dryRun:
		err = terminal.PrintJSON(s.Stdout, plan)
	}
	switch {
	case err != nil:
		return err
	case f.dryRun && conflicts > 0 && !f.force:
		return &cli.Error{Code: cli.ExitFailed}
	case f.dryRun:
		return nil
	case conflicts > 0 && !f.force:
		return cli.Failed("nothing was put back, since %s changed after the last call. Leave it out with --path, or put it back all the same with --force", terminal.Count(conflicts, "file"))
	case len(plan.GetFiles()) == 0:
		return s.nothingToUndo(ctx, l, request, plan)
	}
	if !f.yes {
		if err := s.confirm(filesOf(plan)); err != nil {
			return err
		}
	}
	request.DryRun, request.PlanDigest = false, plan.GetPlanDigest()
	done, err := l.Sessions.Restore(ctx, request)
	if err != nil {
		return err
	}
	return s.tellDone(plan, done)
}

// filesOf is how many files a plan is about, shown or not.
func filesOf(plan *tooldv1.RestoreResponse) int {
	return len(plan.GetRestored()) + int(plan.GetMoreRestored())
}

// nothingToUndo returns why there is nothing to be done: all is as it was, nothing can be done, or no call has changed what was
// asked about.
func (s changes) nothingToUndo(ctx context.Context, l *toold.Conn, request *tooldv1.RestoreRequest, plan *tooldv1.RestoreResponse) error {
	if len(plan.GetNotRestored()) > 0 {
		if err := s.Show(plan, ""); err != nil {
			return err
		}
		return cli.Failed("nothing was put back: nothing is left that could be")
	}
	if len(request.GetPaths()) > 0 {
		list, err := l.Sessions.ListCheckpoints(ctx, &tooldv1.ListCheckpointsRequest{SessionId: request.GetSessionId(), Paths: request.GetPaths(), NoDiffs: true, Limit: 1})
		if err != nil {
			return err
		}
		if len(list.GetCheckpoints()) == 0 {
			return cli.Failed("no call of session %q has changed anything at or below what --path names, as far as that is kept", request.GetSessionId())
		}
	}
	return s.Show(plan, "nothing to put back: all is as it was\n")
}

// undoPlan returns the request to restore files, and what it would do. It skips a turn that has nothing to restore, because the
// files were restored in another way or are not kept, unless the user asked for that turn.
func (s changes) undoPlan(ctx context.Context, l *toold.Conn, f undoFlags) (*tooldv1.RestoreRequest, *tooldv1.RestoreResponse, error) {
	below := uint64(math.MaxUint64)
	wanted := func(c *tooldv1.Checkpoint) bool {
		switch {
		case f.call != "":
			return c.GetToolUseId() == f.call
		case f.turned:
			return own(c)
		}
		return own(c) && !c.GetUndone() && len(c.GetFiles()) > 0 && c.GetTurn() < below
	}
	session, newest, err := f.find(ctx, l, wanted)
	if err != nil {
		return nil, nil, err
	}
	request := &tooldv1.RestoreRequest{SessionId: session, Paths: f.paths, Force: f.force, DryRun: true}
	var hopeless *tooldv1.RestoreResponse
	for {
		switch {
		case f.call != "":
			request.Point = &tooldv1.RestoreRequest_ToolUseId{ToolUseId: f.call}
		case f.turned:
			request.Point = &tooldv1.RestoreRequest_Turn{Turn: f.turn}
		case newest == nil && hopeless != nil:
			return request, hopeless, nil
		case newest == nil:
			return nil, nil, cli.Failed("session %q has changed nothing that is not undone. \"toold diff --session %s\" shows what it has changed, \"toold undo --turn N\" goes further back", session, session)
		default:
			request.Point = &tooldv1.RestoreRequest_Turn{Turn: newest.GetTurn()}
		}
		plan, err := l.Sessions.Restore(ctx, request)
		if toold.Reason(err) == "unknown_checkpoint" {
			return nil, nil, cli.Failed("%s \"toold diff --session %s\" shows what the session has changed, \"toold log --session %s\" what it did", status.Convert(err).Message(), session, session)
		}
		if err != nil || f.call != "" || f.turned || len(plan.GetFiles()) > 0 {
			return request, plan, err
		}
		if hopeless == nil && len(plan.GetNotRestored()) > 0 {
			hopeless = plan
		}
		below = newest.GetTurn()
		if newest, err = newestOf(ctx, l, session, wanted); err != nil {
			return nil, nil, err
		}
	}
}

func (s changes) showPlan(plan *tooldv1.RestoreResponse) error {
	if _, err := io.WriteString(s.Stdout, terminal.DiffsText(plan.GetFiles(), terminal.Open(s.Stdout))); err != nil {
		return err
	}
	s.tellMore(plan.GetMoreRestored())
	if n := plan.GetUndoneCalls(); n > 0 && filesOf(plan) > 0 {
		fmt.Fprintf(s.Stderr, "This takes back what %s changed in %s.\n", terminal.Count(int(n), "call"), terminal.Count(filesOf(plan), "file"))
	}
	fmt.Fprint(s.Stderr, terminal.ReasonLines("Not as the last call has left it:", plan.GetConflictReasons(), plan.GetMoreConflicts()))
	fmt.Fprint(s.Stderr, terminal.ReasonLines("Not put back:", plan.GetNotRestored(), plan.GetMoreNotRestored()))
	return nil
}

// confirm asks the person at the terminal.
func (s changes) confirm(files int) error {
	line, err := "", terminal.ErrNone
	if terminal.Open(s.Stderr).Terminal && !s.JSON {
		line, err = terminal.Ask(fmt.Sprintf("Put back %s? [y]es, [n]o: ", terminal.Count(files, "file")))
	}
	if errors.Is(err, terminal.ErrNone) {
		return cli.Misused("nobody can be asked here (%v): look with --dry-run, and say --yes to put the files back", err)
	}
	if err != nil {
		return cli.Failed("nothing was put back: there was no answer (%v)", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return cli.Failed("nothing was put back")
}

// tellDone returns what was done, and what of the plan that was shown was not.
func (s changes) tellDone(plan, done *tooldv1.RestoreResponse) error {
	if !s.JSON {
		fmt.Fprint(s.Stderr, terminal.ReasonLines("Not put back:", done.GetNotRestored()[min(len(plan.GetNotRestored()), len(done.GetNotRestored())):], done.GetMoreNotRestored()-plan.GetMoreNotRestored()))
	}
	return s.Show(done, fmt.Sprintf("Put back %s. To bring the changes back: toold undo %s --session %s\n", terminal.Count(filesOf(done), "file"), terminal.VisibleLine(done.GetToolUseId()), terminal.VisibleLine(done.GetSessionId())))
}
