//go:build no_mcp

// In the place of mcp.go in a build that leaves MCP out.

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

func (s *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "mcp",
		Short:   "Offer the tools as an MCP server (not in this build)",
		Example: "  toold mcp",
		RunE: cli.Action(func(context.Context, []string) error {
			return cli.Misused("this toold was built with the tag no_mcp: it has no MCP server")
		}),
	}
}
