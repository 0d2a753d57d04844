// Upgrading the daemon that runs to the program that is installed.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) upgradeCommand() *cobra.Command {
	wait, stopTasks := 10*time.Minute, false
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Have the daemon go on as the installed program",
		Long: "Has the daemon go on as the program that is installed now at the path from which it was started: in the same process,\n" +
			"with the same sockets, sessions and records. Running calls and background tasks end first; new calls wait meanwhile, and\n" +
			"begin in the new program. What still runs after --wait is named, and nothing has changed then.",
		Example: "  toold upgrade\n  toold upgrade --wait 1m --stop-tasks",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			l, before, err := s.daemon.Info(ctx, s.daemon.Running)
			if err != nil {
				return err
			}
			defer l.Close()
			begun, err := l.Daemon.Upgrade(ctx, &tooldv1.UpgradeRequest{Wait: durationpb.New(wait), StopTasks: stopTasks})
			if err != nil {
				return err
			}
			now, err := upgradedFrom(ctx, l, before)
			if err != nil {
				return err
			}
			for _, warning := range now.GetWarningDetails() {
				if warning.GetCode() == string(settings.NotUpgraded) {
					return cli.Failed("%s", warning.GetText())
				}
			}
			return s.Show(begun, fmt.Sprintf("toold %s has become %s (process %d)\n", before.GetVersion(), now.GetVersion(), now.GetPid()))
		}),
	}
	cmd.Flags().DurationVar(&wait, "wait", wait, "how long running calls and background tasks may take to end")
	cmd.Flags().BoolVar(&stopTasks, "stop-tasks", false, "end background tasks instead of waiting for them")
	return cmd
}

const (
	// beginLimit is how long the new program may take to answer.
	beginLimit = time.Minute
	// beginTick is how often it is asked meanwhile.
	beginTick = 20 * time.Millisecond
)

// upgradedFrom returns what the daemon is once the next program answers.
func upgradedFrom(ctx context.Context, l *toold.Conn, before *tooldv1.GetInfoResponse) (*tooldv1.GetInfoResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, beginLimit, cli.NoDaemon("the new program does not answer: see the daemon's log"))
	defer cancel()
	for {
		now, err := l.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
		switch {
		case err == nil && !now.GetStarted().AsTime().Equal(before.GetStarted().AsTime()):
			return now, nil
		case err != nil && status.Code(err) != codes.Unavailable && ctx.Err() == nil:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(beginTick):
		}
	}
}

// answerTakeOver prints that this program could go on for a daemon with these arguments. An error: it could not.
func (f serving) answerTakeOver(out io.Writer) error {
	if f.canTakeOver != daemon.HandoverFormat {
		return fmt.Errorf("toold %s goes on from state of format %d, and not of %d", version, daemon.HandoverFormat, f.canTakeOver)
	}
	if _, err := servedRoot(f.root); err != nil {
		return err
	}
	if err := errors.Join(f.settings.store().Load(settings.Scope{}).Broken...); err != nil {
		return fmt.Errorf("the settings cannot be used: %w", err)
	}
	return json.NewEncoder(out).Encode(takeOverAnswer{f.canTakeOver, version})
}
