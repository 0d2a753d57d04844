//go:build !no_mcp

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/mcpserver"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) mcpCommand() *cobra.Command {
	var f turnFlags
	var web mcpAddress
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the tools as an MCP server on standard input and output, or over HTTP",
		Long: "Offers the daemon's tools to an MCP client, with its permissions, sandbox and journal: one session for each client,\n" +
			"which ends with it unless --session names one that stays. Questions become elicitations where the client has them;\n" +
			"where it has none, a call that would have to ask is denied, unless \"toold attach\" watches the session.\n\n" +
			"The roots are those that the client names, unless --root names others; the current directory when neither does.\n" +
			"Standard output carries the protocol alone; what the user should know goes to standard error.\n\n" +
			"With --http it serves every client of this machine that shows a token of the token file, at http://HOST:PORT/mcp,\n" +
			"until it is ended.",
		Example: "  toold mcp --root ~/src/project\n  toold mcp --mode acceptEdits --session editor\n  toold mcp --http 127.0.0.1:7780 --root ~/src/project",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			attach, err := f.attach()
			if err != nil {
				return err
			}
			if f.session == "" { // what still runs for a client that was killed has no receiver left for its result
				attach.Options.OnDisconnect = tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL.Enum()
			}
			options := mcpserver.Options{Console: s.Console, Daemon: s.daemon, Attach: attach, AskRoots: len(f.place.roots) == 0}
			if web.address == "" {
				return mcpserver.Serve(ctx, options)
			}
			return web.serve(ctx, options)
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&web.address, "http", "", "serve over HTTP at HOST:PORT of this machine, for clients with a token")
	cmd.Flags().StringVar(&web.tokens, "http-tokens", "", "who may connect over HTTP, one NAME TOKEN a line; made if there is none (default: mcp-tokens in the state directory)")
	return cmd
}

// mcpAddress is where the server is reached over HTTP, and by whom.
type mcpAddress struct{ address, tokens string }

func (a mcpAddress) serve(ctx context.Context, options mcpserver.Options) error {
	address, err := net.ResolveTCPAddr("tcp", a.address)
	switch {
	case err != nil:
		return cli.Misused("%q is not an address to listen on: name HOST:PORT, as 127.0.0.1:7780", a.address)
	case !address.IP.IsLoopback():
		return cli.Misused("%s can be reached from other machines, which could read tokens on the way: listen on 127.0.0.1 and come in through `ssh -L`", a.address)
	}
	tokens := cmp.Or(a.tokens, filepath.Join(options.Daemon.StateDir(), "mcp-tokens"))
	admit, err := access.OpenTokens(tokens, "Who may connect to toold mcp")
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		return fmt.Errorf("the address %s cannot be listened on: %w", a.address, err)
	}
	options.Console.Say("MCP is served at http://%s/mcp (tokens: %s)", listener.Addr(), tokens)
	return mcpserver.ServeHTTP(ctx, options, listener, admit)
}
