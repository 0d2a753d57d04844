// Putting back what calls have changed: shown first, asked about, and then done by the daemon. What is to be done is the
// daemon's to work out.

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// undoFlags say what is put back, and how.
type undoFlags struct {
	changeFlags
	dryRun, force, yes bool
}

func (s *setup) undoCommand() *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use:   "undo [CALL]",
		Short: "Put back what calls have changed",
		Long: "Puts files back to how they were before a call (CALL, its id) or a turn (--turn), with all that was changed from\n" +
			"there on. Without either: before the newest turn that has changed something and is not undone, so that once more\n" +
			"undoes the one before.\n\n" +
			"The diff is shown and asked about; without a terminal say --yes. A file that another hand has changed since is named,\n" +
			"and nothing is put back, unless --path leaves it out or --force takes it too. What is there now is kept: the last line\n" +
			"says how to bring it back.\n\n" +
			"Exit codes: 0 put back, or nothing to do; 1 it was not, or --dry-run has found conflicts; 2 usage, 3 no daemon.",
		Example: "  toold undo\n  toold undo --turn 3 --session work --dry-run\n  toold undo toolu_01 --path src/main.go --yes",
		Args:    cobra.MaximumNArgs(1),
		PreRunE: func(cmd *cobra.Command, args []string) error { return f.read(cmd, args) },
		RunE:    doing(func(ctx context.Context, _ []string) error { return s.undo(ctx, f) }),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	flags.BoolVar(&f.force, "force", false, "also where another hand has changed a file since")
	flags.BoolVarP(&f.yes, "yes", "y", false, "ask nothing")
	return cmd
}

func (s *setup) undo(ctx context.Context, f undoFlags) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	request, plan, err := s.undoPlan(ctx, l, f)
	if err != nil {
		return err
	}
	if f.dryRun {
		return s.tellPlan(plan, f)
	}
	if !s.json {
		if err := s.showPlan(plan); err != nil {
			return err
		}
	}
	switch {
	case len(plan.GetConflicts()) > 0 && !f.force:
		return failed("another hand has changed %s since, so nothing was put back. Leave it out with --path, or put it back all the same with --force", count(len(plan.GetConflicts()), "file"))
	case len(plan.GetFiles()) == 0 && s.json:
		return printJSON(s.stdout, plan)
	case len(plan.GetFiles()) == 0:
		_, err := fmt.Fprintln(s.stdout, "nothing to put back: all is as it was")
		return err
	}
	if !f.yes {
		if err := s.confirm(len(plan.GetFiles())); err != nil {
			return err
		}
	}
	request.DryRun, request.PlanDigest = false, plan.GetPlanDigest()
	done, err := l.sessions.Restore(ctx, request)
	if err != nil {
		return err
	}
	return s.tellDone(done)
}

// undoPlan says to where files are put back, and what that comes to. A turn that somebody has put back in another way is
// passed over, unless it was asked for.
func (s *setup) undoPlan(ctx context.Context, l *link, f undoFlags) (*tooldv1.RestoreRequest, *tooldv1.RestoreResponse, error) {
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
	for {
		switch {
		case f.call != "":
			request.Point = &tooldv1.RestoreRequest_ToolUseId{ToolUseId: f.call}
		case f.turned:
			request.Point = &tooldv1.RestoreRequest_Turn{Turn: f.turn}
		case newest == nil:
			return nil, nil, failed("session %q has changed nothing that is not undone. \"toold diff --session %s\" shows what it has changed, \"toold undo --turn N\" goes further back", session, session)
		default:
			request.Point = &tooldv1.RestoreRequest_Turn{Turn: newest.GetTurn()}
		}
		plan, err := l.sessions.Restore(ctx, request)
		if err != nil || f.call != "" || f.turned || len(plan.GetFiles())+len(plan.GetNotRestored()) > 0 {
			return request, plan, err
		}
		below = newest.GetTurn()
		if newest, err = newestOf(ctx, l, session, wanted); err != nil {
			return nil, nil, err
		}
	}
}

// tellPlan shows what would be done. Conflicts make it a failure.
func (s *setup) tellPlan(plan *tooldv1.RestoreResponse, f undoFlags) error {
	if s.json {
		if err := printJSON(s.stdout, plan); err != nil {
			return err
		}
	} else if err := s.showPlan(plan); err != nil {
		return err
	}
	if len(plan.GetConflicts()) > 0 && !f.force {
		return &ending{code: exitFailed}
	}
	return nil
}

func (s *setup) showPlan(plan *tooldv1.RestoreResponse) error {
	p := pageOf(s.stdout)
	if err := printDiffs(s.stdout, p, plan.GetFiles()); err != nil {
		return err
	}
	if n := len(plan.GetUndoneToolUseIds()); n > 0 && len(plan.GetFiles()) > 0 {
		fmt.Fprintf(s.stderr, "This takes back what %s changed in %s.\n", count(n, "call"), count(len(plan.GetFiles()), "file"))
	}
	fmt.Fprint(s.stderr, reasonLines("Changed by another hand since:", plan.GetConflictReasons()))
	fmt.Fprint(s.stderr, reasonLines("Not put back:", plan.GetNotRestored()))
	return nil
}

// confirm asks the person at the terminal.
func (s *setup) confirm(files int) error {
	if !pageOf(s.stderr).terminal || s.json {
		return misused("nobody can be asked here: look with --dry-run, and say --yes to put the files back")
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return misused("nobody can be asked here (%v): look with --dry-run, and say --yes to put the files back", err)
	}
	defer terminal.Close()
	dropInput(terminal)
	fmt.Fprintf(terminal, "Put back %s? [y]es, [n]o: ", count(files, "file"))
	asked := &person{terminal: terminal}
	line, err := asked.line()
	if err != nil {
		return failed("nothing was put back: there was no answer (%v)", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return failed("nothing was put back")
}

func (s *setup) tellDone(done *tooldv1.RestoreResponse) error {
	if s.json {
		return printJSON(s.stdout, done)
	}
	fmt.Fprint(s.stderr, reasonLines("Not put back:", done.GetNotRestored()))
	_, err := fmt.Fprintf(s.stdout, "Put back %s. To bring the changes back: toold undo %s --session %s\n", count(len(done.GetRestored()), "file"), visibleLine(done.GetToolUseId()), visibleLine(done.GetSessionId()))
	return err
}
