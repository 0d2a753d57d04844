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
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			l, err := s.daemon.Connect(ctx)
			if err != nil {
				return err
			}
			defer l.Close()
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

var toolFormats = map[string]tooldv1.ToolFormat{
	"native":    tooldv1.ToolFormat_TOOL_FORMAT_NATIVE,
	"anthropic": tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC,
	"openai":    tooldv1.ToolFormat_TOOL_FORMAT_OPENAI,
	"mcp":       tooldv1.ToolFormat_TOOL_FORMAT_MCP,
}

func (s *app) toolsCommand() *cobra.Command {
	var format string
	request := &tooldv1.ListToolsRequest{}
	names := []string{"native", "anthropic", "openai", "mcp"}
	cmd := &cobra.Command{
		Use:     "tools",
		Short:   "List the tools, or give their definitions as a model API takes them",
		Example: "  toold tools\n  toold tools --format anthropic",
		Args:    cobra.NoArgs,
		RunE: cli.Action(func(ctx context.Context, _ []string) error {
			known := false
			if request.Format, known = toolFormats[format]; !known {
				return cli.Misused("the format %q is not known: choose one of %s", format, strings.Join(names, ", "))
			}
			return s.listTools(ctx, request)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "native", "native, anthropic, openai or mcp")
	flags.StringVar(&request.SessionId, "session", "", "the tools that this session sees (default: those of a new one)")
	flags.BoolVar(&request.IncludeUnavailable, "all", false, "tools that are not offered too, with the reason")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (s *app) listTools(ctx context.Context, request *tooldv1.ListToolsRequest) error {
	l, err := s.daemon.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
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
		about := firstLine(tool.GetDescription())
		if tool.GetUnavailable() != "" {
			about = terminal.VisibleLine(tool.GetUnavailable())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", terminal.VisibleLine(tool.GetName()), toolLevel(tool), toolTraits(tool), terminal.Fit(about, 90))
	}
	return t.Flush()
}

// toolLevel is how far a call of the tool can reach at most.
func toolLevel(t *tooldv1.Tool) string {
	if t.GetLevel() == tooldv1.Level_LEVEL_UNSPECIFIED {
		return ""
	}
	return terminal.LevelWord(t.GetLevel())
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

var channels = map[string]tooldv1.Channel{
	"":       tooldv1.Channel_CHANNEL_UNSPECIFIED,
	"both":   tooldv1.Channel_CHANNEL_UNSPECIFIED,
	"stdout": tooldv1.Channel_CHANNEL_STDOUT,
	"stderr": tooldv1.Channel_CHANNEL_STDERR,
}

func (s *app) outputCommand() *cobra.Command {
	request := &tooldv1.ReadOutputRequest{}
	var channel string
	cmd := &cobra.Command{
		Use:   "output ID",
		Short: "Print the raw output of a call",
		Long: "Prints what a call's processes wrote, byte by byte, while the call runs and after. On a terminal control\n" +
			"characters are made visible.",
		Example: "  toold output toolu_01 --session work\n  toold output toolu_01 --session work --channel stderr --follow",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.completeFirst(s.completeRecorded),
		RunE: cli.Action(func(ctx context.Context, args []string) error {
			known := false
			if request.Channel, known = channels[channel]; !known {
				return cli.Misused("the channel %q is not known: choose stdout, stderr or both", channel)
			}
			request.ToolUseId = args[0]
			return s.output(ctx, request)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&request.SessionId, "session", "", "the call's session")
	flags.StringVar(&channel, "channel", "both", "stdout, stderr or both (in the order in which they came)")
	flags.Uint64Var(&request.Offset, "offset", 0, "first byte")
	flags.Uint64Var(&request.Limit, "limit", 0, "at most so many bytes; 0: all")
	flags.BoolVarP(&request.Follow, "follow", "f", false, "go on until the call ends")
	_ = cmd.MarkFlagRequired("session")
	_ = cmd.RegisterFlagCompletionFunc("channel", cobra.FixedCompletions([]string{"both", "stdout", "stderr"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (s *app) output(ctx context.Context, request *tooldv1.ReadOutputRequest) error {
	l, err := s.daemon.Connect(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
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
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(chunk.GetData()); err != nil {
			return err
		}
	}
}
