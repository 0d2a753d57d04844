// Looking at what the daemon has: its sessions, its tools, a call's output. Nothing here changes anything.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func (s *app) sessionsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "sessions",
		Short:   "List the sessions",
		Example: "  toold sessions\n  toold sessions --all --json",
		Args:    cobra.NoArgs,
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, _ []string) error {
			list, err := l.ListSessions(ctx, all)
			if err != nil {
				return err
			}
			if s.JSON {
				return terminal.PrintJSON(s.Stdout, &tooldv1.ListSessionsResponse{Sessions: list})
			}
			return sessionTable(s.Stdout, list)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "closed sessions too, as long as they are kept")
	return cmd
}

func sessionTable(w io.Writer, sessions []*tooldv1.Session) error {
	if len(sessions) == 0 {
		_, err := fmt.Fprintln(w, "no sessions")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SESSION\tSTATE\tCLIENT\tAGE\tCALLS\tQUESTIONS\tTASKS\tDIRECTORY")
	for _, x := range sessions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", terminal.VisibleLine(x.GetSessionId()), sessionState(x),
			terminal.Fit(clientWord(x.GetClient()), 20), ageWord(time.Since(x.GetCreated().AsTime())), x.GetOpenCalls(), x.GetOpenQuestions(),
			len(x.GetBackgroundTasks()), terminal.VisibleLine(x.GetWorkingDirectory()))
	}
	return t.Flush()
}

// clientWord names the client that attached last.
func clientWord(c *tooldv1.ClientInfo) string {
	return cmp.Or(terminal.VisibleLine(strings.TrimSpace(c.GetName()+" "+c.GetVersion())), "-")
}

// ageWord is a time that has passed, by its largest unit.
func ageWord(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

func sessionState(x *tooldv1.Session) string {
	switch {
	case x.GetClosed():
		return "closed"
	case x.GetAttached():
		return "attached"
	default:
		return "detached"
	}
}

func (s *app) toolsCommand() *cobra.Command {
	format := "native"
	request := &tooldv1.ListToolsRequest{}
	cmd := &cobra.Command{
		Use:     "tools",
		Short:   "List the tools, or give their definitions as a model API takes them",
		Example: "  toold tools\n  toold tools --format anthropic",
		Args:    cobra.NoArgs,
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, _ []string) error {
			request.Format = tooldv1.ToolFormat(tooldv1.ToolFormat_value["TOOL_FORMAT_"+strings.ToUpper(format)])
			return s.listTools(ctx, l, request)
		}),
	}
	flags := cmd.Flags()
	cli.AddChoice(cmd, &format, "format", "", "native, anthropic, openai or mcp", "native", "anthropic", "openai", "mcp")
	flags.StringVar(&request.SessionId, "session", "", "the tools that this session sees (default: those of a new one)")
	flags.BoolVar(&request.IncludeUnavailable, "all", false, "tools that are not offered too, with the reason")
	return cmd
}

func (s *app) listTools(ctx context.Context, l *toold.Conn, request *tooldv1.ListToolsRequest) error {
	list, err := l.Tools.ListTools(ctx, request)
	if err != nil {
		return err
	}
	if request.GetFormat() != tooldv1.ToolFormat_TOOL_FORMAT_NATIVE {
		_, err := io.WriteString(s.Stdout, list.GetDefinitionsJson()+"\n")
		return err
	}
	if s.JSON {
		return terminal.PrintJSON(s.Stdout, list)
	}
	t := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	for _, tool := range list.GetTools() {
		about, level := firstLine(tool.GetDescription()), ""
		if tool.GetUnavailable() != "" {
			about = terminal.VisibleLine(tool.GetUnavailable())
		}
		if tool.GetLevel() != tooldv1.Level_LEVEL_UNSPECIFIED { // how far a call can reach at most
			level = terminal.Word(tool.GetLevel())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", terminal.VisibleLine(tool.GetName()), level, toolTraits(tool), terminal.Fit(about, 90))
	}
	return t.Flush()
}

func toolTraits(t *tooldv1.Tool) string {
	switch {
	case t.GetUnavailable() != "":
		return "unavailable"
	case t.GetDeferred():
		return "deferred"
	case t.GetDestructive():
		return "destructive"
	default:
		return ""
	}
}

func firstLine(markdown string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(markdown, "# \n"), "\n")
	return terminal.VisibleLine(line)
}

func (s *app) outputCommand() *cobra.Command {
	request := &tooldv1.ReadOutputRequest{}
	channel := "both"
	cmd := &cobra.Command{
		Use:   "output ID",
		Short: "Print the raw output of a call",
		Long: "Prints what a call's processes wrote, byte by byte, while the call runs and after. On a terminal control\n" +
			"characters are made visible.",
		Example: "  toold output toolu_01 --session work\n  toold output toolu_01 --session work --channel stderr --follow",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.completeRecorded(),
		RunE: s.daemon.Action(func(ctx context.Context, l *toold.Conn, args []string) error {
			request.ToolUseId, request.Channel = args[0], tooldv1.Channel(tooldv1.Channel_value["CHANNEL_"+strings.ToUpper(channel)])
			return s.output(ctx, l, request)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&request.SessionId, "session", "", "the call's session")
	cli.AddChoice(cmd, &channel, "channel", "", "stdout, stderr or both (in the order in which they came)", "stdout", "stderr", "both")
	flags.Uint64Var(&request.Offset, "offset", 0, "first byte")
	flags.Uint64Var(&request.Limit, "limit", 0, "at most so many bytes; 0: all")
	flags.BoolVarP(&request.Follow, "follow", "f", false, "go on until the call ends")
	_ = cmd.MarkFlagRequired("session")
	return cmd
}

func (s *app) output(ctx context.Context, l *toold.Conn, request *tooldv1.ReadOutputRequest) error {
	stream, err := l.Tools.ReadOutput(ctx, request)
	if err != nil {
		return err
	}
	var w io.Writer = s.Stdout
	if terminal.Open(s.Stdout).Terminal {
		safe := &terminal.SafeWriter{W: s.Stdout}
		defer safe.Flush()
		w = safe
	}
	for {
		chunk, err := stream.Recv()
		if err == nil {
			_, err = w.Write(chunk.GetData())
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
