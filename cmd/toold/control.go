// The daemon's own life, from the command line: start, stop, status, version.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) startCommand() *cobra.Command {
	replace := false
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start the daemon in the background, if none runs",
		Long: "Starts the daemon in the background if none runs. One that an older program has started is replaced as soon as a client\n" +
			"of a newer one meets it idle; --replace does so at once: running calls may finish for the drain time, clients that\n" +
			"are attached go on with the new one.",
		Example: "  toold start\n  toold start --replace\n  toold start --socket /tmp/mine/toold.sock",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			if replace {
				if err := s.daemon.ReplaceRunning(ctx); err != nil {
					return err
				}
			}
			l, info, err := s.daemon.Info(ctx, s.daemon.Connect)
			if err != nil {
				return err
			}
			defer l.Close()
			return s.Show(info, fmt.Sprintf("toold %s (process %d) listens on %s\n", info.GetVersion(), info.GetPid(), s.daemon.Socket))
		}),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "put this program in the place of a daemon that runs, whatever its version")
	return cmd
}

func (s *app) stopCommand() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "End the daemon",
		Long:    "Ends the daemon and returns when its process is gone. Running calls may finish for the drain time; --now ends them.",
		Example: "  toold stop\n  toold stop --now",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			pid, gone, err := s.daemon.Stop(ctx, now)
			switch {
			case err != nil:
			case pid == 0:
				_, err = fmt.Fprintln(s.Stdout, "no daemon was running")
			case gone:
				_, err = fmt.Fprintf(s.Stdout, "process %d has ended\n", pid)
			default:
				_, err = fmt.Fprintf(s.Stdout, "process %d is ending\n", pid)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&now, "now", false, "end running calls at once")
	return cmd
}

func (s *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell whether a daemon runs, and what it does",
		Long: "Reports whether a daemon runs, and what it does. It starts none: exit code 3 means that there is none.\n" +
			"With --address it asks a daemon elsewhere, or a gateway of a cluster, which lists the user's sessions in all workspaces.",
		Example: "  toold status\n  toold status --json",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			l, info, err := s.daemon.Info(ctx, s.daemon.Running)
			if err != nil {
				return err
			}
			defer l.Close()
			list, err := l.ListSessions(ctx, false)
			if _, partly := errors.AsType[*toold.UnlistedError](err); err != nil && !partly {
				return err
			}
			text := s.infoText(info, len(list))
			if len(list) > 0 {
				text += "\n" + sessionTable(list) + portTable(list)
			}
			return cmp.Or(s.Show(info, text), err)
		}),
	}
}

// infoText returns what a daemon is. listed is how many sessions of the user it has, which a gateway does not report itself.
func (s *app) infoText(info *tooldv1.GetInfoResponse, listed int) string {
	var rows [][]string
	row := func(name, value string) { rows = append(rows, []string{name, value}) }
	row("version", info.GetVersion())
	if s.daemon.Remote.Address != "" {
		row("address", s.daemon.Where())
		row("you are", info.GetPrincipal())
	} else {
		row("socket", s.daemon.Socket)
	}
	gateway := slices.Contains(info.GetFeatures(), "cluster") // it has no root, sandbox or calls of its own
	if !gateway {
		row("process", fmt.Sprint(info.GetPid()))
	}
	row("up", time.Since(info.GetStarted().AsTime()).Truncate(time.Second).String())
	if gateway {
		row("serves", "a cluster, as one of its gateways")
		row("sessions", fmt.Sprint(listed))
	} else {
		row("root", info.GetDefaultRoot())
		row("sandbox", terminal.Word(info.GetSandbox()))
		row("sessions", fmt.Sprint(info.GetSessions()))
		row("running", terminal.Count(int(info.GetRunningCalls()), "call"))
	}
	if servers := serversText(info); servers != "" {
		row("servers", servers)
	}
	for _, warning := range info.GetWarnings() {
		row("warning", warning)
	}
	if s.Verbose {
		row("features", strings.Join(info.GetFeatures(), " "))
		for _, gap := range info.GetNotCovered() {
			row("not covered", gap)
		}
		for _, l := range info.GetListeners() {
			row("listens on", l.GetAddress())
		}
		if s.daemon.Remote.Address == "" {
			row("state", s.daemon.StateDir())
		}
	}
	return terminal.Table(rows...)
}

// serversText counts the MCP servers and language servers of the user's sessions by state; empty: there are none.
func serversText(info *tooldv1.GetInfoResponse) string {
	words := map[string]string{"ready": "running", "not_started": "not started", "idle_stopped": "idle-stopped"}
	var parts []string
	for _, of := range info.GetServers() {
		kind := of.GetKind()
		if kind == "mcp" {
			kind = "MCP"
		}
		parts = append(parts, terminal.Count(int(of.GetCount()), kind+" server")+" "+cmp.Or(words[of.GetState()], of.GetState()))
	}
	return strings.Join(parts, ", ")
}

func (s *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Tell this program's version",
		Example: "  toold version\n  toold version --json",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(context.Context, []string) error {
			in, _ := groups()
			return s.Show(struct {
				Version string   `json:"version"`
				Go      string   `json:"go"`
				OS      string   `json:"os"`
				Arch    string   `json:"arch"`
				Groups  []string `json:"groups"` // of tools, of those that a build can leave out
			}{version, runtime.Version(), runtime.GOOS, runtime.GOARCH, append([]string{}, in...)}, versionLine()+"\n")
		}),
	}
}

// versionLine returns what this program is.
func versionLine() string {
	in, out := groups()
	line := fmt.Sprintf("toold %s (%s, %s/%s) with %s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, cmp.Or(strings.Join(in, ", "), "no optional tools"))
	if len(out) > 0 {
		line += "; left out: " + strings.Join(out, ", ")
	}
	return line
}
