//go:build linux

package main

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/quota"
)

func quotaCommand() *cobra.Command {
	var a admin
	var sessions, calls int
	var reset bool
	cmd := &cobra.Command{
		Use: "quota PRINCIPAL", Short: "Show and set what a principal may use at once", Args: cobra.ExactArgs(1),
		Long: "Prints what a principal uses in the whole cluster, and its limits. --sessions and --calls each set a limit of its own, in the place of that of " +
			"the nodes' --quota-sessions or --quota-calls; what is not named stays as it is. They count for what begins from then on, on nodes with one of these flags.",
		Example: "  toold-cluster quota token:alice --sessions 100 --calls 64",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := checkPrincipal(args[0]); err != nil {
			return err
		}
		return a.withLog(func(js jetstream.JetStream, _ log.Log) error {
			var set quota.Limits
			if cmd.Flags().Changed("sessions") {
				set.Sessions = &sessions
			}
			if cmd.Flags().Changed("calls") {
				set.Calls = &calls
			}
			var err error
			if reset {
				err = quota.ResetLimits(cmd.Context(), js, a.replicas, args[0])
			} else if set != (quota.Limits{}) {
				err = quota.SetLimits(cmd.Context(), js, a.replicas, args[0], set)
			}
			if err != nil {
				return err
			}
			held, own, err := quota.Use(cmd.Context(), js, a.replicas, args[0])
			if err != nil {
				return err
			}
			of := func(own *int) string {
				switch {
				case own == nil:
					return "the nodes' limit"
				case *own == 0:
					return "no limit"
				}
				return fmt.Sprint(*own)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "sessions  %d of %s\ncalls     %d of %s\non nodes with --quota-sessions or --quota-calls; others count nothing\n",
				held.Sessions, of(own.Sessions), held.Calls, of(own.Calls))
			return err
		})
	}
	flags := cmd.Flags()
	flags.IntVar(&sessions, "sessions", 0, "how many sessions may be attached; 0: no limit")
	flags.IntVar(&calls, "calls", 0, "how many calls may run; 0: no limit")
	flags.BoolVar(&reset, "reset", false, "let the nodes' limits count again")
	cmd.MarkFlagsMutuallyExclusive("reset", "sessions")
	cmd.MarkFlagsMutuallyExclusive("reset", "calls")
	return a.flags(cmd)
}
