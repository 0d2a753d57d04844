// Command toold is the daemon and its clients in one binary. This file knows the command tree and how an error becomes
// an exit code; it does not know what any command does, nor how a daemon is found.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/tools/pdf"
	"github.com/toold/toold/tools/sandbox"
)

// Exit codes. Scripts rely on them.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNoDaemon = 3
	exitSignal   = 130 // as shells report a program that SIGINT ended
)

// version is set by the linker in releases.
var version = "dev"

// An app is what every command gets: the global flags and the three standard files.
type app struct {
	socket  string
	state   string // the state directory, once the socket was found through its lock; see stateDir
	remote  remote
	json    bool
	verbose bool
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File

	replaced  bool       // an older daemon has been looked for
	successor *successor // of the daemon that was replaced; nil: none was
}

func main() {
	if sandbox.WatcherMain(os.Args) { // this process outlives a daemon to end what it leaves
		return
	}
	if code, is := pdf.Main(os.Args); is { // this process reads one document for a call, confined like it
		os.Exit(code)
	}
	s := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(s.execute(context.Background(), os.Args[1:]))
}

func (s *app) execute(ctx context.Context, args []string) int {
	root := s.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code, text := verdict(err)
	if e := new(ending); errors.As(err, &e) && e.cause != nil {
		s.noted("%v", e.cause)
	}
	if code == exitUsage {
		text += fmt.Sprintf("\nRun \"%s --help\" for how it is used.", cmd.CommandPath())
	}
	if text != "" {
		fmt.Fprintln(s.stderr, "toold: "+terminal.VisibleText(text))
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
			if err := s.remote.settle(cmd, cmd.Flags().Changed("socket")); err != nil {
				return err
			}
			s.socket, err = filepath.Abs(s.socket) // the daemon works elsewhere
			return err
		},
	}
	root.SetIn(s.stdin)
	root.SetOut(s.stdout)
	root.SetErr(s.stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&s.socket, "socket", access.DefaultSocket(), "the daemon's Unix socket")
	s.remote.add(root)
	flags.BoolVar(&s.json, "json", false, "print JSON for programs")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "say more on standard error")
	root.AddCommand(
		s.runCommand(), s.callCommand(), s.toolsCommand(), s.sessionsCommand(), s.attachCommand(), s.outputCommand(),
		s.logCommand(), s.serveCommand(), s.startCommand(), s.stopCommand(), s.statusCommand(), s.versionCommand(),
		s.demoCommand(), s.explainCommand(), s.settingsCommand(), s.trustCommand(), s.diffCommand(),
		s.undoCommand(), s.mcpCommand(), s.answerCommand(), s.cancelCommand(), s.closeCommand(),
	)
	for _, cmd := range append(root.Commands(), root) {
		cmd.Version = versionLine()
		cmd.SetVersionTemplate("{{.Version}}\n")
		if cmd.Flags().Lookup("session") != nil {
			_ = cmd.RegisterFlagCompletionFunc("session", s.completeSessions)
		}
	}
	return root
}

// noted prints to standard error when -v was given.
func (s *app) noted(format string, args ...any) {
	if s.verbose {
		fmt.Fprintln(s.stderr, terminal.VisibleText(fmt.Sprintf(format, args...)))
	}
}

// An ending is an error that knows its exit code. With an empty text nothing more is to be said.
type ending struct {
	code  int
	text  string
	cause error // in the words of a library, for -v; nil: the text says all
}

func (e *ending) Error() string { return e.text }

func failed(format string, args ...any) error {
	return &ending{code: exitFailed, text: fmt.Sprintf(format, args...)}
}

func misused(format string, args ...any) error {
	return &ending{code: exitUsage, text: fmt.Sprintf(format, args...)}
}

func noDaemon(format string, args ...any) error {
	return &ending{code: exitNoDaemon, text: fmt.Sprintf(format, args...)}
}

// verdict turns what a command returned into an exit code and a last line. An error without a code comes from cobra,
// which only ever complains of the command line.
func verdict(err error) (code int, text string) {
	var e *ending
	switch {
	case err == nil:
		return exitOK, ""
	case errors.As(err, &e):
		return e.code, e.text
	default:
		return exitUsage, err.Error()
	}
}

// doing adapts a command's body: whatever plain error it returns was a failure of the command, not of its usage.
func doing(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := body(cmd.Context(), args)
		var e *ending
		if err == nil || errors.As(err, &e) {
			return err
		}
		wrong := &ending{code: exitFailed, text: whatWentWrong(err), cause: err}
		if status.Code(err) == codes.Unavailable {
			wrong.code = exitNoDaemon
		}
		return wrong
	}
}
