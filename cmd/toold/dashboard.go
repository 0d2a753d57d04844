// The dashboard in a browser. The address with its code goes through a file that only the user can read: lists of processes and shell
// histories would show it.

package main

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) dashboardCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Watch sessions in a browser",
		Long: "Opens the dashboard of the daemon in a browser on this machine, and starts the daemon if none runs. It shows sessions and\n" +
			"calls as they run, why each was allowed and what it changed; it answers questions, stops calls and undoes changes.\n\n" +
			"The page works for 12 hours, or until the daemon ends. --show prints the address instead: it is good once, for a minute,\n" +
			"and anyone who has it acts as you. From another machine, pass the port on with ssh -L.",
		Example: "  toold dashboard\n  toold dashboard --show",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			conn, err := s.daemon.Connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			at, err := conn.Daemon.OpenDashboard(ctx, &tooldv1.OpenDashboardRequest{})
			if err != nil {
				return err
			}
			address := at.GetUrl() + "#" + at.GetCode()
			if show || s.JSON {
				return s.Show(at, address+"\n")
			}
			file, err := redirect(address)
			if err != nil {
				return err
			}
			if err := browse(file); err != nil {
				return cli.Failed("no browser could be started (%v). Open %s in one within a minute, or use --show.", err, file)
			}
			_, err = fmt.Fprintf(s.Stdout, "opened the dashboard in your browser: %s\nIf the browser cannot read %s, as one from a snap, use --show.\n", at.GetUrl(), file)
			return err
		}),
	}
	cmd.Flags().BoolVar(&show, "show", false, "print the address, which is a secret, and open nothing")
	return cmd
}

var redirection = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><title>toold</title>
<script>location.replace({{.}})</script>
<p><a href="{{.}}">Open the dashboard</a></p></html>
`))

// redirect writes a page that leads to the address, which only the user can read. The next one takes its place.
func redirect(address string) (file string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "toold")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	page, err := os.CreateTemp(dir, "dashboard-*.html") // 0600
	if err != nil {
		return "", err
	}
	defer page.Close()
	if err := redirection.Execute(page, address); err != nil {
		return "", err
	}
	file = filepath.Join(dir, "dashboard.html")
	return file, os.Rename(page.Name(), file)
}

// browse has the user's browser open a file. A browser may be what it starts, and lives on in a session of its own: what has not failed
// after a few seconds has the file.
func browse(file string) error {
	program, err := exec.LookPath(opener())
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{Path: program, Args: []string{program, file}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(5 * time.Second):
		return nil
	}
}

// opener is what opens a file in a browser. BROWSER is a list, parted by colons, and xdg-open reads it itself.
func opener() string {
	first, _, _ := strings.Cut(os.Getenv("BROWSER"), ":")
	if runtime.GOOS == "darwin" {
		return cmp.Or(first, "open")
	}
	if _, err := exec.LookPath("xdg-open"); err == nil {
		return "xdg-open"
	}
	return cmp.Or(first, "xdg-open")
}
