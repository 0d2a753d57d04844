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
	var limits quota.Amounts
	var reset bool
	cmd := &cobra.Command{
		Use: "quota PRINCIPAL", Short: "Show and set what a principal may use at once", Args: cobra.ExactArgs(1),
		Long: "Prints what a principal uses in the whole cluster, and its limits if it has any of its own. The flags set both of these, in the place of those of " +
			"the nodes' --quota-sessions and --quota-calls. They count for what begins from then on, on nodes with one of these flags.",
		Example: "  toold-cluster quota token:alice --sessions 100 --calls 64",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.withLog(func(js jetstream.JetStream, _ log.Log) error {
			set := cmd.Flags().Changed("sessions") || cmd.Flags().Changed("calls")
			own := &limits
			if reset {
				own = nil
			}
			if set || reset {
				if err := quota.SetLimits(cmd.Context(), js, a.replicas, args[0], own); err != nil {
					return err
				}
			}
			held, own, err := quota.Use(cmd.Context(), js, a.replicas, args[0])
			if err != nil {
				return err
			}
			of := func(n func(quota.Amounts) int) string {
				switch {
				case own == nil:
					return "the nodes' limit"
				case n(*own) == 0:
					return "no limit"
				}
				return fmt.Sprint(n(*own))
			}
			sessions, calls := func(m quota.Amounts) int { return m.Sessions }, func(m quota.Amounts) int { return m.Calls }
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "sessions  %d of %s\ncalls     %d of %s\n", held.Sessions, of(sessions), held.Calls, of(calls))
			return err
		})
	}
	flags := cmd.Flags()
	flags.IntVar(&limits.Sessions, "sessions", 0, "how many sessions may be attached; 0: no limit")
	flags.IntVar(&limits.Calls, "calls", 0, "how many calls may run; 0: no limit")
	flags.BoolVar(&reset, "reset", false, "let the nodes' limits count again")
	cmd.MarkFlagsMutuallyExclusive("reset", "sessions")
	cmd.MarkFlagsMutuallyExclusive("reset", "calls")
	return a.flags(cmd)
}
