package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/stdio"
)

func (s *app) stdioCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stdio",
		Short: "Serve every method as lines of JSON-RPC on standard input and output",
		Long: "Serves the whole contract to a program that has no gRPC: each line is a message of JSON-RPC 2.0, with the messages of\n" +
			"proto/toold/v1 in their JSON form. The daemon is started if none answers; an Execute stream that breaks is resumed.\n\n" +
			"Standard output carries the protocol alone. docs/stdio.md describes it.",
		Example: "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"DaemonService/GetInfo\"}' | toold stdio",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			return stdio.Serve(ctx, s.Console, s.daemon)
		}),
	}
}
