//go:build !no_mcp

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/mcpserver"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) mcpCommand() *cobra.Command {
	var f turnFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the tools as an MCP server on standard input and output",
		Long: "Offers the daemon's tools to an MCP client, with its permissions, sandbox and journal: one session for each client,\n" +
			"which ends with it unless --session names one that stays. Questions become elicitations where the client has them;\n" +
			"where it has none, a call that would have to ask is denied, unless \"toold attach\" watches the session.\n\n" +
			"The roots are those that the client names, unless --root names others; the current directory when neither does.\n" +
			"Standard output carries the protocol alone; what the user should know goes to standard error.",
		Example: "  toold mcp --root ~/src/project\n  toold mcp --mode acceptEdits --session editor",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			attach, err := f.attach()
			if err != nil {
				return err
			}
			if f.session == "" { // what still runs for a client that was killed has no receiver left for its result
				attach.Options.OnDisconnect = tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL.Enum()
			}
			return mcpserver.Serve(ctx, mcpserver.Options{Console: s.Console, Daemon: s.daemon, Attach: attach, AskRoots: len(f.place.roots) == 0})
		}),
	}
	f.add(cmd)
	return cmd
}
