// Command toold is the daemon and its clients in one binary. This file holds the command tree, and turns an error into an
// exit code.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/changes"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/demo"
	"github.com/toold/toold/cmd/toold/internal/records"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/media/pdf"
)

// version is set by the linker in releases.
var version = "dev"

// An app is what every command gets: the global flags and the three standard files.
type app struct {
	*cli.Console
	daemon *connect.Finder
}

func main() {
	if sandbox.WatcherMain(os.Args) { // this process outlives a daemon to end what it leaves
		return
	}
	if code, is := pdf.Main(os.Args); is { // this process reads one document for a call, confined like it
		os.Exit(code)
	}
	console := &cli.Console{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	s := &app{Console: console, daemon: &connect.Finder{Console: console, Version: version}}
	os.Exit(s.execute(context.Background(), os.Args[1:]))
}

func (s *app) execute(ctx context.Context, args []string) int {
	root := s.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code, text := cli.Verdict(err)
	if e := new(cli.Error); errors.As(err, &e) && e.Cause != nil {
		s.Noted("%v", e.Cause)
	}
	if code == cli.ExitUsage {
		text += fmt.Sprintf("\nRun \"%s --help\" for how it is used.", cmd.CommandPath())
	}
	if text != "" {
		fmt.Fprintln(s.Stderr, "toold: "+terminal.VisibleText(text))
	}
	return code
}

func (s *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "toold",
		Short: "Runs tool calls for programs that talk to language models",
		Long: "toold runs tool calls for programs that talk to language models.\n\n" +
			"Commands that need the daemon start it when none answers.\n" +
			"Exit codes: 0 ok, 1 a call failed, 2 usage, 3 no daemon.",
		Example:       "  toold demo\n  toold call Bash '{\"command\":\"ls | head\"}'\n  toold run --output anthropic message.json",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := s.daemon.Remote.Resolve(cmd, cmd.Flags().Changed("socket")); err != nil {
				return err
			}
			s.daemon.Socket, err = filepath.Abs(s.daemon.Socket) // the daemon works elsewhere
			return err
		},
	}
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&s.daemon.Socket, "socket", access.DefaultSocket(), "the daemon's Unix socket")
	s.daemon.Remote.Add(root)
	flags.BoolVar(&s.JSON, "json", false, "print JSON for programs")
	flags.BoolVarP(&s.Verbose, "verbose", "v", false, "say more on standard error")
	diff := changes.DiffCommand(s.daemon)
	diff.ValidArgsFunction = s.completeRecorded()
	root.AddCommand(
		s.runCommand(), s.callCommand(), s.toolsCommand(), s.sessionsCommand(), s.attachCommand(), s.outputCommand(),
		records.Command(s.daemon), s.serveCommand(), s.startCommand(), s.stopCommand(), s.statusCommand(), s.versionCommand(),
		demo.Command(s.daemon), s.explainCommand(), s.settingsCommand(), s.trustCommand(), diff,
		changes.UndoCommand(s.daemon), s.mcpCommand(), s.stdioCommand(), s.answerCommand(), s.cancelCommand(), s.closeCommand(), manCommand(), s.upgradeCommand(), s.doctorCommand(), s.dashboardCommand(),
	)
	for _, cmd := range append(root.Commands(), root) {
		cmd.Version = versionLine()
		cmd.SetVersionTemplate("{{.Version}}\n")
		if cmd.Flags().Lookup("session") != nil {
			_ = cmd.RegisterFlagCompletionFunc("session", s.completeSessions())
		}
	}
	return root
}
