// Package changes is the commands that show and undo the changes of calls. It finds the session that the user means and
// prints what the daemon reports. The daemon works out what is restored, and restores it.
package changes

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/fs/workspace"
)

// changeFlags choose changes.
type changeFlags struct {
	session string
	turn    uint64
	turned  bool // turn was given
	paths   []string
	call    string
}

func (f *changeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "this session (default: the newest of this directory that has changed files, closed ones too)")
	flags.Uint64Var(&f.turn, "turn", 0, "this turn, by its number")
	flags.StringArrayVar(&f.paths, "path", nil, "this file alone, or what is below this directory (repeatable)")
}

// read takes the arguments. A call excludes a turn.
func (f *changeFlags) read(cmd *cobra.Command, args []string) error {
	f.turned = cmd.Flags().Changed("turn")
	f.call = strings.Join(args, "") // one at most
	switch {
	case f.call != "" && f.turned:
		return cli.Misused("a call and --turn exclude each other")
	case f.turned && f.turn == 0:
		return cli.Misused("turns are numbered from 1; \"toold log\" shows them")
	}
	for i, path := range f.paths {
		whole, err := filepath.Abs(path)
		if err != nil {
			return cli.Misused("the path %q cannot be used: %v", path, err)
		}
		f.paths[i] = workspace.NameOf(whole)
	}
	return nil
}

// searched is how many sessions of a directory are looked through, the newest first.
const searched = 50

// find returns the session that is meant and its newest checkpoint that is wanted; nil: a session was named, and has none.
func (f *changeFlags) find(ctx context.Context, l *toold.Conn, wanted func(*tooldv1.Checkpoint) bool) (session string, newest *tooldv1.Checkpoint, err error) {
	if f.session != "" {
		newest, err = newestOf(ctx, l, f.session, wanted)
		return f.session, newest, err
	}
	here, list, err := cli.SessionsHere(ctx, l, true)
	if err != nil {
		return "", nil, err
	}
	var at time.Time
	for _, x := range list[:min(len(list), searched)] {
		found, err := newestOf(ctx, l, x.GetSessionId(), wanted)
		if err != nil {
			return "", nil, err
		}
		if found != nil && found.GetStarted().AsTime().After(at) {
			session, newest, at = x.GetSessionId(), found, found.GetStarted().AsTime()
		}
	}
	switch {
	case newest != nil:
	case f.call != "":
		err = cli.Failed("no session that works in %s has a call %q that has changed a file, as far as that is kept. \"toold log\" shows the calls; name another directory's session with --session", here, f.call)
	default:
		err = cli.Failed("no session that works in %s has changed a file that is not put back by now, as far as that is kept. Name another session with --session; \"toold sessions --all\" lists them", here)
	}
	return session, newest, err
}

// newestOf returns a session's newest checkpoint that is wanted; nil: it has none.
func newestOf(ctx context.Context, l *toold.Conn, session string, wanted func(*tooldv1.Checkpoint) bool) (*tooldv1.Checkpoint, error) {
	for list, err := range l.Checkpoints(ctx, &tooldv1.ListCheckpointsRequest{SessionId: session, NoDiffs: true}) {
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(list.GetCheckpoints(), wanted); i >= 0 {
			return list.GetCheckpoints()[i], nil
		}
	}
	return nil, nil
}

// own reports that the changes are a call's own, and not what was put back.
func own(c *tooldv1.Checkpoint) bool { return !c.GetRestore() && !c.GetRunning() }

// changes runs diff and undo.
type changes struct{ *connect.Finder }

// tellMore reports how many files are not shown.
func (s changes) tellMore(n uint32) {
	if n > 0 {
		fmt.Fprintf(s.Stderr, "%s of which nothing is shown: there are too many. --path shows some alone.\n", terminal.Count(int(n), "more file"))
	}
}
