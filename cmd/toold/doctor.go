// "toold doctor" looks at what a daemon needs and explains what is wrong, with what to do about it. It asks what the daemon itself
// asks: the settings' warnings, the sandbox's capabilities, the journal's own check. It starts no daemon and changes nothing.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// The states of a finding. "warn": toold works, with less or not for long.
const (
	fine    = "ok"
	warning = "warn"
	fault   = "fail"
)

// A finding is what one check has found.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Do     string `json:"do,omitempty"` // what to do about it
}

// A doctor looks at one user's daemon, or at where it would be.
type doctor struct {
	*app
	files settingsFiles
	cert  string
	state string                   // the state directory
	info  *tooldv1.GetInfoResponse // of the daemon that runs; nil: none answers
	found []finding
}

func (d *doctor) note(check, state, reason, do string) {
	d.found = append(d.found, finding{check, state, reason, do})
}

// noteErr notes an error as a fault, or that all is well.
func (d *doctor) noteErr(check string, err error, do, well string) {
	if err != nil {
		d.note(check, fault, err.Error(), do)
	} else {
		d.note(check, fine, well, "")
	}
}

func (s *app) doctorCommand() *cobra.Command {
	d := &doctor{app: s}
	cmd := &cobra.Command{
		Use:   "doctor [DIR]",
		Short: "Find what keeps toold from working, and tell what to do",
		Long: "Looks at what the daemon needs, and at the settings of the workspace DIR (default: the working directory): one line for\n" +
			"each check, and below it what to do. It starts no daemon and changes nothing. The exit code is 1 if something fails.",
		Example:           "  toold doctor\n  toold doctor ~/src/project --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE:              cli.Action(d.run),
	}
	d.files.add(cmd)
	cmd.Flags().StringVar(&d.cert, "tls-cert", "", "a certificate (PEM) that the daemon is to show")
	return cmd
}

func (d *doctor) run(ctx context.Context, args []string) error {
	store, root, err := d.files.here(args)
	if err != nil {
		return err
	}
	d.checkDaemon(ctx)
	d.state = d.daemon.StateDir()
	d.checkState()
	d.checkJournal()
	now := store.Load(settings.Scope{Roots: []string{root}})
	d.checkSandbox(now)
	d.checkSettings(now, root)
	d.checkPrograms(ctx)
	d.checkMachine()
	d.checkSecrets()
	if err := d.print(); err != nil {
		return err
	}
	faults := 0
	for _, f := range d.found {
		if f.State == fault {
			faults++
		}
	}
	if faults > 0 {
		return cli.Failed("%s", terminal.Count(faults, "fault"))
	}
	return nil
}

func (d *doctor) print() error {
	var text strings.Builder
	for _, f := range d.found {
		fmt.Fprintf(&text, "%-4s  %s: %s\n", f.State, f.Check, terminal.VisibleText(f.Reason))
		if f.Do != "" {
			fmt.Fprintf(&text, "      %s\n", terminal.VisibleText(f.Do))
		}
	}
	return d.Show(d.found, text.String())
}

// checkDaemon asks the daemon that runs what it knows. None has to run.
func (d *doctor) checkDaemon(ctx context.Context) {
	socket := d.daemon.Socket
	l, info, err := d.daemon.Info(ctx, d.daemon.Running)
	if err == nil {
		l.Close()
		d.info = info
		d.note("daemon", fine, fmt.Sprintf("version %s, process %d, listens on %s", info.GetVersion(), info.GetPid(), d.daemon.Socket), "")
		if info.GetVersion() != version {
			d.note("version", warning, fmt.Sprintf("the daemon is toold %s, and this program is %s", info.GetVersion(), version), restart(info))
		}
		for _, w := range info.GetWarnings() {
			d.note("daemon", warning, w, "")
		}
		return
	}
	if err := d.daemon.Trusted(); err != nil {
		d.note("socket", fault, err.Error(), "make the directory your own, with mode 0700, or name another socket with --socket")
		return
	}
	at, missing := os.Lstat(socket)
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		d.note("daemon", fine, "none runs; the next command starts one", "")
	case missing != nil:
		d.note("socket", fault, missing.Error(), "name another socket with --socket")
	case at.Mode().Type() != fs.ModeSocket:
		d.note("socket", fault, socket+" is not a socket, so no daemon can listen there", "move the file away, or name another socket with --socket")
	case d.daemon.UnitWaits():
		d.note("daemon", fine, err.Error(), "")
	case d.daemon.Abandoned():
		d.note("socket", warning, "a daemon that has ended without cleaning up has left "+socket, `nothing: the next start replaces it ("toold start")`)
	default:
		d.note("daemon", fault, err.Error(), `run "toold stop", then "toold start"`)
	}
}

// restart is how the program that is installed takes the place of the daemon.
func restart(info *tooldv1.GetInfoResponse) string {
	switch {
	case info.GetLimits().GetIdleExit() != nil: // a client has started it
		return `run "toold start --replace"`
	case slices.Contains(info.GetFeatures(), "upgrade"):
		return `run "toold upgrade"`
	}
	return `run "systemctl --user restart toold.service", or end "toold serve" and start it again`
}

// checkState looks at the state directory, or at the one in which it would be made.
func (d *doctor) checkState() {
	const check = "state directory"
	before, dir, well := len(d.found), d.state, d.state
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		well = d.state + " will be made in " + dir
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		d.note(check, fault, err.Error(), "make it a directory that you can write, or name another one with toold serve --state-dir")
		return
	case !info.IsDir():
		d.note(check, fault, dir+" is not a directory", "move the file away")
		return
	case dir == d.state && info.Mode().Perm()&0o077 != 0:
		d.note(check, warning, fmt.Sprintf("%s is open to other users (mode %04o)", dir, info.Mode().Perm()), "chmod 700 "+dir)
	}
	d.checkFileSystem(check, dir)
	if len(d.found) == before {
		d.note(check, fine, well, "")
	}
}
