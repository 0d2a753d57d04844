// Package demo plays one turn of prepared calls on a daemon of its own in a temporary workspace, and checks how each ends.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// demoIdle ends the demo's daemon when the demo itself was killed and could not.
const demoIdle = 30 * time.Second

// demoPatience is how long the demo waits for its daemon to end in order.
const demoPatience = 15 * time.Second

// Command returns "toold demo".
func Command(daemon *connect.Finder) *cobra.Command {
	s := demo{daemon}
	return &cobra.Command{
		Use:   "demo",
		Short: "Show a turn: batches, progress, an edit, permissions, an abort",
		Long: "Runs a scripted turn with real tools in a temporary folder, on a daemon of its own, and shows what happens.\n" +
			"On a terminal you are asked about one of its calls.\n" +
			"Your own daemon, files and settings are not touched, and nothing is left behind.",
		Example: "  toold demo\n  NO_COLOR=1 toold demo | cat",
		Args:    cobra.NoArgs,
		RunE:    cli.Action(func(ctx context.Context, _ []string) error { return s.run(ctx) }),
	}
}

// A stage is where the demo plays: a folder with the workspace, and a daemon.
type stage struct {
	dir    string
	socket string
	daemon *exec.Cmd // nil: not started
}

func (s demo) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	st, err := s.build(ctx)
	if err == nil {
		err = s.play(ctx, st)
	}
	if st != nil {
		err = errors.Join(err, st.tearDown())
	}
	if ctx.Err() != nil {
		return &cli.Error{Code: cli.ExitSignal, Text: "stopped; the demo's daemon and folder are gone"}
	}
	if err == nil { // the daemon's process has been waited for, and the folder was removed
		_, err = fmt.Fprintf(s.Stdout, "The daemon has ended and %s is gone: nothing is left behind.\n", st.dir)
	}
	return err
}

// build makes the folder and starts the daemon. A stage that is returned beside an error is to be torn down too.
func (s demo) build(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "toold-demo-")
	if err != nil {
		return nil, fmt.Errorf("the demo's folder cannot be made: %w", err)
	}
	st := &stage{dir: dir, socket: filepath.Join(dir, "toold.sock")}
	for name, text := range demoFiles {
		if err := writeDemoFile(filepath.Join(st.workspace(), name), text); err != nil {
			return st, err
		}
	}
	// The commands are the demo's own, so they may run on a machine that cannot confine processes.
	if err := writeDemoFile(st.settings(), `{"sandbox": {"required": false}}`+"\n"); err != nil {
		return st, err
	}
	log, err := os.Create(filepath.Join(dir, "daemon.log"))
	if err != nil {
		return st, fmt.Errorf("the demo's log cannot be made: %w", err)
	}
	defer log.Close()
	st.daemon, err = connect.Spawn(ctx, log, "serve", "--socket", st.socket, "--state-dir", filepath.Join(dir, "state"),
		"--root", st.workspace(), "--settings", st.settings(), "--managed-settings", filepath.Join(dir, "managed"), "--idle-exit", demoIdle.String())
	if err != nil {
		if text, read := os.ReadFile(log.Name()); read == nil {
			s.Noted("%s", text)
		}
		return st, err
	}
	return st, nil
}

func writeDemoFile(name, text string) error {
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o600)
	}
	if err != nil {
		return fmt.Errorf("the demo's workspace cannot be made: %w", err)
	}
	return nil
}

func (st *stage) settings() string { return filepath.Join(st.dir, "settings.json") }

func (st *stage) workspace() string { return filepath.Join(st.dir, "workspace") }

// tearDown ends the daemon, which ends what it started, and removes the folder. It is not for interrupting.
func (st *stage) tearDown() error {
	if st.daemon != nil {
		patience := time.AfterFunc(demoPatience, func() { _ = st.daemon.Process.Kill() })
		defer patience.Stop()
		if err := st.shutdown(); err != nil {
			_ = st.daemon.Process.Signal(syscall.SIGTERM)
		}
		_ = st.daemon.Wait()
	}
	return os.RemoveAll(st.dir)
}

func (st *stage) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), demoPatience)
	defer cancel()
	l, err := connect.Dial(st.socket)
	if err != nil {
		return err
	}
	defer l.Close()
	_, err = l.Daemon.Shutdown(ctx, &tooldv1.ShutdownRequest{Now: true})
	return err
}

// play runs the script's turn and shows what came of it, and then another one in both orders.
func (s demo) play(ctx context.Context, st *stage) error {
	p := terminal.Open(s.Stdout)
	fmt.Fprintf(s.Stdout, "%s\n\n", p.Ink.Strong.Render(fmt.Sprintf("A model asks for %d tool calls in one message. toold runs them:", len(demoParts))))
	// The demo has written the workspace's settings itself.
	state, err := s.turn(ctx, st, p, demoParts, &tooldv1.Options{Trusted: proto.Bool(true)}, s.narrate)
	if err == nil {
		err = s.review(state, p)
	}
	if err == nil {
		err = s.orders(ctx, st, p)
	}
	return err
}

// turn runs one turn in a session of its own. seen is called with each event where there is no terminal to draw on.
func (s demo) turn(
	ctx context.Context, st *stage, p terminal.Terminal, parts []part, options *tooldv1.Options, seen func(*tooldv1.ExecuteResponse) error,
) (*terminal.TurnState, error) {
	uses, err := demoUses(st.workspace(), parts)
	if err != nil {
		return nil, err
	}
	c := &turn.Turn{
		Console: s.Console,
		Dial:    func(context.Context) (*toold.Conn, error) { return connect.Dial(st.socket) },
		First:   turn.Arrival{Uses: uses, End: &turn.MessageEnd{}}, State: terminal.NewTurnState("", st.workspace()),
		Attach: &tooldv1.Attach{
			Roots: []string{st.workspace()}, Client: &tooldv1.ClientInfo{Name: "toold demo", Version: s.Version},
			Options: options,
		},
	}
	c.Prompter = terminal.NewPrompter(p, c.Input)
	defer c.Prompter.Close()
	c.Attach.Capabilities = &tooldv1.Capabilities{Answers: c.Prompter.Asks()}
	if c.Renderer.Page = p; !p.Live() {
		c.Seen = seen
	}
	defer c.Close()
	return c.State, c.Run(ctx)
}

// narrate is the live view where there is no terminal to draw on.
func (s demo) narrate(event *tooldv1.ExecuteResponse) error {
	if words := terminal.EventWords(event, terminal.Ink{}); words != "" && event.GetTime() != nil {
		if event.GetToolResult().GetOutcome() != tooldv1.Outcome_OUTCOME_DENIED { // why it was denied is told in whole
			words = terminal.Fit(words, terminal.PlainWidth)
		}
		_, err := fmt.Fprintf(s.Stdout, "%s  %s\n", event.GetTime().AsTime().Local().Format("15:04:05.000"), words)
		return err
	}
	return nil
}

// demo plays a turn.
type demo struct{ *connect.Finder }
