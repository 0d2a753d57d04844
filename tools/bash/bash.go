// Package bash is the tools Bash, BashOutput, BashInput and KillShell: they run commands, in the
// foreground, in the background and in terminals. It does not know what a command may do, how its processes are confined, or
// how its output is kept.
package bash

import (
	"cmp"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fault"
)

//go:embed description.md
var description string

const (
	timeLimit = 120 * time.Second
	maxTime   = 600 * time.Second
	// maxCommand is the longest argument of a program on Linux, in bytes, with its ending NUL.
	maxCommand = 128<<10 - 1
)

type input struct {
	Command         string `json:"command" jsonschema:"the command, as bash is to read it"`
	Timeout         int64  `json:"timeout,omitempty" jsonschema:"time limit in milliseconds, at most 600000" minimum:"0" default:"120000"`
	Description     string `json:"description,omitempty" jsonschema:"what the command does, in 5 to 10 words, for the user"`
	RunInBackground bool   `json:"run_in_background,omitempty" jsonschema:"start it and go on: BashOutput gives its output, KillShell stops it"`
	MergedOutput    bool   `json:"merged_output,omitempty" jsonschema:"send stdout and stderr through one pipe, so that their order is exact; then nothing tells them apart"`
	PTY             bool   `json:"pty,omitempty" jsonschema:"run it in a terminal, for programs that talk to a person; when it waits for input the call returns its screen, and BashInput types"`
	Unconfined      bool   `json:"dangerouslyDisableSandbox,omitempty" jsonschema:"run it outside the sandbox, where there is one; the user is asked first"`
	Restart         bool   `json:"restart,omitempty" jsonschema:"without a command (an empty one): put the working directory and the variables back to what they were when the session began; background tasks go on"`
	screenSize

	analysis shell.Analysis
}

// Tool returns the Bash tool. Its result for programs is Structured.
func Tool() tools.Tool {
	spec := tools.Spec{
		Name: "Bash", Description: description, Destructive: true, OpenWorld: true, TimeLimit: timeLimit, MaxTime: maxTime,
		OnInterrupt: tools.Finish, OnFailure: tools.AbortSiblings,
	}
	return tools.New(spec, tools.Funcs[input]{
		Validate: validate, Effects: effects, Situate: situate, Check: check, TimeLimit: wantedTime, Run: run,
	})
}

// validate also analyses the command, once.
func validate(in *input) error {
	switch empty := strings.TrimSpace(in.Command) == ""; {
	case in.Restart && !empty:
		return fault.Invalidf("invalid_input", "restart goes with an empty command. Send the command in a call of its own, behind this one.").At("/restart")
	case in.Restart:
		return nil
	case empty:
		return fault.Invalidf("invalid_input", "The command is empty. Give the text that bash is to run.").At("/command")
	case strings.IndexByte(in.Command, 0) >= 0:
		return fault.Invalidf("invalid_input", "The command holds a NUL character, which no command can. Leave it out, or write it as \\0 for printf.").At("/command")
	case len(in.Command) > maxCommand:
		return fault.Invalidf("invalid_input", "The command has %d bytes and the system takes at most %d. Write it to a file with Write, and run that.", len(in.Command), maxCommand).At("/command")
	}
	in.analysis = shell.Analyze(in.Command)
	return nil
}

// situate analyses the command again, with the values of the session's variables and with git's
// aliases.
func situate(env *tools.Env, in input) input {
	if in.Restart {
		return in
	}
	s := shell.Setting{Environ: variables(env, in), Looked: true}
	if in.analysis.Git {
		s.Aliases = env.Aliases()
	}
	in.analysis = shell.AnalyzeIn(in.Command, s)
	return in
}

// effects converts the analysis to the contract's Effects.
func effects(in input) tools.Effects {
	if in.Restart {
		return tools.Effects{Session: true}
	}
	a := in.analysis
	if in.PTY {
		a.ReadOnly, a.Concurrent = false, false
	}
	e := tools.Effects{
		Commands: a.Commands, Hosts: a.Hosts, Opaque: !a.ReadOnly, Session: !a.Concurrent || in.RunInBackground, Reason: a.Reason.String(),
		Unknown: a.Unknown(), Unconfined: in.Unconfined, Spills: a.Spills(in.Command),
	}
	if in.PTY {
		e.Unknown.Cause = cmp.Or(e.Unknown.Cause, ptyUnknown)
	}
	for _, r := range a.Redirects {
		list := &e.Reads
		if r.Writes {
			list = &e.Writes
		}
		*list = appendPaths(*list, r.Paths, tools.Path{Part: r.Text, Tree: true})
	}
	listed := false
	for i, c := range a.Commands {
		path := tools.Path{By: i + 1, Part: c.Text, Tree: true, Names: c.Names}
		e.Reads = appendPaths(e.Reads, c.Reads, path)
		for _, name := range c.Writes {
			path.Manner = c.MannerOf(name)
			e.Writes = appendPaths(e.Writes, []string{name}, path)
		}
		path.Manner = shell.Fills
		if c.Unlisted { // what it touches is unknown: anything
			listed, path.Name, path.Names, path.Unnamed = true, "/", false, true
			e.Reads = append(e.Reads, path)
		}
	}
	if a.ReadOnly && a.Unlisted && !listed {
		e.Reads = append(e.Reads, tools.Path{Name: "/", Tree: true, Unnamed: true, Part: in.Command})
	}
	if e.Reason == "" && in.PTY {
		e.Reason = ptyUnknown
	}
	if e.Reason == "" && in.RunInBackground {
		e.Reason = "it goes on in the background"
	}
	return e
}

func appendPaths(list []tools.Path, names []string, path tools.Path) []tools.Path {
	for _, name := range names {
		if isOwn(name) {
			continue
		}
		if path.Name = untilded(name); strings.HasPrefix(name, "base64:") { // elsewhere that is the prefix of a name in base64; to bash it is the name
			path.Name = "./" + name
		}
		list = append(list, path)
	}
	return list
}

// isOwn reports whether a name is that of the command's own input or outputs, or of a device that
// stores nothing. For the daemon the first would be another file.
func isOwn(name string) bool {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	number, ok := strings.CutPrefix(name, "/dev/fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// untilded replaces a leading ~ by the home directory, as bash will. Without a home the path is
// unknown.
func untilded(name string) string {
	rest, ok := strings.CutPrefix(name, "~")
	if !ok || rest != "" && rest[0] != '/' {
		return name
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "/"
	}
	return filepath.Join(home, rest)
}

// wantedTime returns the time limit that the input asks for. A background task has none.
func wantedTime(in input) time.Duration {
	return time.Duration(min(in.Timeout, maxTime.Milliseconds())) * time.Millisecond
}
