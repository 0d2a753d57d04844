// The daemon's own life, from the command line: start, stop, status, version. What a daemon does is not known here.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

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
		RunE: doing(func(ctx context.Context, _ []string) error {
			if replace {
				if err := s.replaceRunning(ctx); err != nil {
					return err
				}
			}
			l, info, err := s.greet(ctx, s.connect)
			if err != nil {
				return err
			}
			defer l.close()
			if s.json {
				return terminal.PrintJSON(s.stdout, info)
			}
			_, err = fmt.Fprintf(s.stdout, "toold %s (process %d) listens on %s\n", info.GetVersion(), info.GetPid(), s.socket)
			return err
		}),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "put this program in the place of a daemon that runs, whatever its version")
	return cmd
}

// greet returns a link to a daemon that has told what it is.
func (s *app) greet(ctx context.Context, connect func(context.Context) (*link, error)) (*link, *tooldv1.GetInfoResponse, error) {
	l, err := connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	info, err := l.daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		l.close()
		return nil, nil, err
	}
	return l, info, nil
}

func (s *app) stopCommand() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "End the daemon",
		Long:    "Ends the daemon and returns when its process is gone. Running calls may finish for the drain time; --now ends them.",
		Example: "  toold stop\n  toold stop --now",
		Args:    cobra.NoArgs,
		RunE:    doing(func(ctx context.Context, _ []string) error { return s.stop(ctx, now) }),
	}
	cmd.Flags().BoolVar(&now, "now", false, "end running calls at once")
	return cmd
}

func (s *app) stop(ctx context.Context, now bool) error {
	var conn net.Conn
	var pid int
	err := s.find(ctx)
	if silent := new(silentDaemon); errors.As(err, &silent) {
		return s.stopSilent(ctx, silent, now)
	}
	if err == nil {
		conn, pid, err = open(ctx, s.socket)
	}
	if errors.Is(err, errNobody) {
		_, err := fmt.Fprintln(s.stdout, "no daemon was running")
		return err
	}
	if err != nil {
		return unreachable(err)
	}
	// Held from before the connection ends, the process cannot have become another one.
	held, err := holdProcess(pid)
	_ = conn.Close()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	unwatched := errors.Is(err, errors.ErrUnsupported)
	if err != nil && !unwatched {
		return err
	}
	l, err := dial(s.socket)
	if err != nil {
		return err
	}
	defer l.close()
	if _, err := l.daemon.Shutdown(ctx, &tooldv1.ShutdownRequest{Now: now}); err != nil {
		return err
	}
	if unwatched {
		_, err := fmt.Fprintf(s.stdout, "process %d is ending\n", pid)
		return err
	}
	if err := held.gone(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "process %d has ended\n", pid)
	return err
}

func (s *app) stopSilent(ctx context.Context, d *silentDaemon, now bool) error {
	s.noted("process %d cannot be reached (%v) and is ended by a signal", d.pid, d.cause)
	if err := d.end(ctx, now); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "process %d has ended\n", d.pid)
	return err
}

func (s *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Tell whether a daemon runs, and what it does",
		Long:    "Tells whether a daemon runs, and what it does. It starts none: exit code 3 says that there is none.",
		Example: "  toold status\n  toold status --json",
		Args:    cobra.NoArgs,
		RunE: doing(func(ctx context.Context, _ []string) error {
			l, info, err := s.greet(ctx, s.connectRunning)
			if err != nil {
				return err
			}
			defer l.close()
			if s.json {
				return terminal.PrintJSON(s.stdout, info)
			}
			list, err := l.listSessions(ctx, false)
			if err != nil {
				return err
			}
			if err := s.printInfo(info); err != nil || len(list) == 0 {
				return err
			}
			_, _ = fmt.Fprintln(s.stdout)
			return sessionTable(s.stdout, list)
		}),
	}
}

func (s *app) printInfo(info *tooldv1.GetInfoResponse) error {
	t := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", name, terminal.VisibleLine(value)) }
	row("version", info.GetVersion())
	if s.remote.address != "" {
		row("address", s.where())
		row("you are", info.GetPrincipal())
	} else {
		row("socket", s.socket)
	}
	row("process", fmt.Sprint(info.GetPid()))
	row("up", time.Since(info.GetStarted().AsTime()).Truncate(time.Second).String())
	row("root", info.GetDefaultRoot())
	row("sandbox", terminal.TierName(info.GetSandbox()))
	row("sessions", fmt.Sprint(info.GetSessions()))
	row("running", terminal.Count(int(info.GetRunningCalls()), "call"))
	for _, warning := range info.GetWarnings() {
		row("warning", warning)
	}
	if s.verbose {
		row("features", strings.Join(info.GetFeatures(), " "))
		for _, gap := range info.GetNotCovered() {
			row("not covered", gap)
		}
		for _, l := range info.GetListeners() {
			row("listens on", l.GetAddress())
		}
		if s.remote.address == "" {
			row("state", s.stateDir())
		}
	}
	return t.Flush()
}

func (s *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Tell this program's version",
		Example: "  toold version\n  toold version --json",
		Args:    cobra.NoArgs,
		RunE: doing(func(context.Context, []string) error {
			in, _ := groups()
			if !s.json {
				_, err := fmt.Fprintln(s.stdout, versionLine())
				return err
			}
			return json.NewEncoder(s.stdout).Encode(struct {
				Version string   `json:"version"`
				Go      string   `json:"go"`
				OS      string   `json:"os"`
				Arch    string   `json:"arch"`
				Groups  []string `json:"groups"` // of tools, of those that a build can leave out
			}{version, runtime.Version(), runtime.GOOS, runtime.GOARCH, append([]string{}, in...)})
		}),
	}
}

// versionLine returns what this program is.
func versionLine() string {
	in, out := groups()
	return fmt.Sprintf("toold %s (%s, %s/%s) with %s%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, joinedWords(in), leftOut(out))
}

// joinedWords lists groups of tools.
func joinedWords(words []string) string {
	if len(words) == 0 {
		return "no optional tools"
	}
	return strings.Join(words, ", ")
}

func leftOut(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; left out: " + strings.Join(words, ", ")
}
