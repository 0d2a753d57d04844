// Looking at what the daemon has: its sessions, its tools, a call's output. Nothing here changes anything.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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
			unlisted, partly := errors.AsType[*toold.UnlistedError](err)
			if err != nil && !partly {
				return err
			}
			shown := &tooldv1.ListSessionsResponse{Sessions: list}
			if partly {
				shown.Unlisted = unlisted.Workspaces
			}
			return cmp.Or(s.Show(shown, sessionTable(list)+portTable(list)), err)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "closed sessions too, as long as they are kept")
	return cmd
}

func sessionTable(sessions []*tooldv1.Session) string {
	if len(sessions) == 0 {
		return "no sessions\n"
	}
	rows := [][]string{{"SESSION", "STATE", "CLIENT", "AGE", "CALLS", "QUESTIONS", "TASKS", "DIRECTORY"}}
	for _, x := range sessions {
		client := strings.TrimSpace(x.GetClient().GetName() + " " + x.GetClient().GetVersion()) // that attached last
		rows = append(rows, []string{
			x.GetSessionId(), sessionState(x), cmp.Or(terminal.Fit(terminal.VisibleLine(client), 20), "-"), ageWord(time.Since(x.GetCreated().AsTime())),
			fmt.Sprint(x.GetOpenCalls()), fmt.Sprint(x.GetOpenQuestions()), fmt.Sprint(len(x.GetBackgroundTasks())), x.GetWorkingDirectory(),
		})
	}
	return terminal.Table(rows...)
}

// portTable lists the ports on which background tasks listen; it is empty if there are none.
func portTable(sessions []*tooldv1.Session) string {
	rows := [][]string{{"PORT", "STATE", "ADDRESS", "SESSION", "TASK", "PROGRAM"}}
	for _, x := range sessions {
		for _, task := range x.GetBackgroundTasks() {
			for _, p := range task.GetPorts() {
				rows = append(rows, []string{
					fmt.Sprint(p.GetPort()), terminal.Word(p.GetState()), p.GetUrl(), x.GetSessionId(), task.GetTaskId(), terminal.Fit(terminal.VisibleLine(p.GetProgram()), 40),
				})
			}
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return "\n" + terminal.Table(rows...)
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

// toolFormats are the values of --format.
var toolFormats = map[string]tooldv1.ToolFormat{
	"native": tooldv1.ToolFormat_TOOL_FORMAT_NATIVE, "anthropic": tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC, "openai": tooldv1.ToolFormat_TOOL_FORMAT_OPENAI,
	"responses": tooldv1.ToolFormat_TOOL_FORMAT_OPENAI_RESPONSES, "mcp": tooldv1.ToolFormat_TOOL_FORMAT_MCP,
	"anthropic-native": tooldv1.ToolFormat_TOOL_FORMAT_ANTHROPIC_NATIVE, "agent-toolset": tooldv1.ToolFormat_TOOL_FORMAT_AGENT_TOOLSET,
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
			request.Format = toolFormats[format]
			return s.listTools(ctx, l, request)
		}),
	}
	flags := cmd.Flags()
	cli.AddChoice(cmd, &format, "format", "", "native, anthropic, anthropic-native, agent-toolset, openai, responses or mcp", "native", "anthropic", "anthropic-native", "agent-toolset", "openai", "responses", "mcp")
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
	var rows [][]string
	for _, tool := range list.GetTools() {
		about, level := cmp.Or(tool.GetUnavailable(), firstLine(tool.GetDescription())), ""
		if tool.GetLevel() != tooldv1.Level_LEVEL_UNSPECIFIED { // how far a call can reach at most
			level = terminal.Word(tool.GetLevel())
		}
		rows = append(rows, []string{tool.GetName(), level, toolTraits(tool), terminal.Fit(terminal.VisibleLine(about), 90)})
	}
	return s.Show(list, terminal.Table(rows...))
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
