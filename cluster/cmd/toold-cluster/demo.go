//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/trial"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func demoCommand() *cobra.Command {
	var program string
	cmd := &cobra.Command{
		Use: "demo", Short: "Start a cluster on loopback, kill a node in the middle of a call, and show how the session goes on", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), cmd.OutOrStdout(), program) },
	}
	cmd.Flags().StringVar(&program, "toold", "toold", "the toold program")
	return cmd
}

// A show is a demonstration under way.
type show struct {
	out     io.Writer
	begun   time.Time
	cluster *trial.Cluster
	agent   *toold.Agent
}

func (s *show) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

func demo(ctx context.Context, out io.Writer, program string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if program, err = exec.LookPath(program); err != nil {
		return err
	}
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "toold-demo")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &show{out: out, begun: time.Now()}
	s.say("starting 3 NATS servers, 3 nodes and 2 gateways on loopback")
	s.cluster, err = trial.Start(ctx, trial.Config{Dir: dir, Program: self, Toold: program, Servers: 3, Nodes: 3, Gateways: 2, Users: []string{"alice"}})
	defer s.cluster.Stop()
	if err != nil {
		return err
	}
	s.say("the cluster serves")
	options := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	s.agent, err = toold.Join(ctx, s.cluster.Dial("alice"), &tooldv1.Attach{SessionId: "demo", Roots: []string{"workspace:project"}, Options: options}, toold.Handlers{})
	if err != nil {
		return err
	}
	defer s.agent.Close()
	return s.play(ctx)
}

// play runs the calls, and kills the node in between.
func (s *show) play(ctx context.Context) error {
	if err := s.run(ctx, "1", "git init -q . && echo 'kept in a snapshot' >notes && pwd && cat notes"); err != nil {
		return err
	}
	owner, files := s.owner()
	if owner == nil {
		return fmt.Errorf("no node has the workspace")
	}
	s.say("%s has the workspace; its files are in %s", owner.Name, files)
	<-time.After(5 * time.Second) // at rest, the files are stored after two seconds
	s.say("a call that runs for a minute begins")
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, "2", "echo begun >>count; sleep 60; echo ended >>count") }()
	for {
		if text, err := os.ReadFile(filepath.Join(files, "count")); err == nil && len(text) > 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	owner.Kill()
	killed := time.Now()
	s.say("%s was killed with kill -9, in the middle of the call", owner.Name)
	if err := <-ended; err != nil {
		return err
	}
	s.say("the client has had the call's result %.1f s after the kill, from another node", time.Since(killed).Seconds())
	if err := s.run(ctx, "3", "cat notes; ls"); err != nil {
		return err
	}
	if owner, _ = s.owner(); owner != nil {
		s.say("%s has the workspace now, with the files of the last snapshot", owner.Name)
	}
	s.say("%s is asked to give its workspaces up", owner.Name)
	drained := time.Now()
	owner.Terminate()
	owner.Wait()
	if err := s.run(ctx, "4", "git status --short --branch; cat notes"); err != nil {
		return err
	}
	s.say("the session went on after %.1f s", time.Since(drained).Seconds())
	return nil
}

// run runs one command, and shows how it ended.
func (s *show) run(ctx context.Context, id, command string) error {
	turn, err := s.agent.Start(&tooldv1.ToolUse{Id: id, Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(`{"command":%q}`, command)}})
	if err != nil {
		return err
	}
	result, err := turn.Result(ctx)
	if err != nil {
		return err
	}
	var text []string
	for _, block := range result.GetContent() {
		text = append(text, block.GetText())
	}
	s.say("call %s  %s: %s", id, command, strings.TrimPrefix(result.GetOutcome().String(), "OUTCOME_"))
	for line := range strings.Lines(strings.TrimSpace(strings.Join(text, "\n"))) {
		fmt.Fprintf(s.out, "          | %s\n", strings.TrimRight(line, "\n"))
	}
	return nil
}

// owner returns the node that runs the workspace, and the directory of its files there.
func (s *show) owner() (owner *trial.Part, files string) {
	for i := range s.cluster.Nodes {
		node := s.cluster.Part("node", i)
		sockets, _ := filepath.Glob(filepath.Join(node.Dir, "*/own/run/toold.sock"))
		if node.Running() && len(sockets) > 0 {
			return node, filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(sockets[0]))), "files")
		}
	}
	return nil, ""
}
