// Package bash is the tools Bash, BashOutput and KillShell: they run commands, in the foreground and in the background.
// What a command may do is judged elsewhere; how its processes are started and ended is the sandbox's work, and how its
// output is kept is the spool's.
package bash

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/shell"
)

//go:embed description.md
var description string

const (
	timeLimit = 120 * time.Second
	maxTime   = 600 * time.Second
	// maxCommand is what Linux takes as one argument of a program, in bytes, with its ending.
	maxCommand = 128<<10 - 1
)

type input struct {
	Command         string `json:"command" jsonschema:"the command, as bash is to read it"`
	Timeout         int64  `json:"timeout,omitempty" jsonschema:"time limit in milliseconds: 120000 if left out, at most 600000"`
	Description     string `json:"description,omitempty" jsonschema:"what the command does, in 5 to 10 words, for the user"`
	RunInBackground bool   `json:"run_in_background,omitempty" jsonschema:"start it and go on: BashOutput gives its output, KillShell stops it"`
	Unconfined      bool   `json:"dangerouslyDisableSandbox,omitempty" jsonschema:"run it outside the sandbox, where there is one; somebody is asked first"`

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
	switch {
	case strings.TrimSpace(in.Command) == "":
		return fault.Invalidf("invalid_input", "The command is empty. Give the text that bash is to run.").At("/command")
	case strings.IndexByte(in.Command, 0) >= 0:
		return fault.Invalidf("invalid_input", "The command holds a NUL character, which no command can. Leave it out, or write it as \\0 for printf.").At("/command")
	case len(in.Command) > maxCommand:
		return fault.Invalidf("invalid_input", "The command has %d bytes and the system takes at most %d. Write it to a file with Write, and run that.", len(in.Command), maxCommand).At("/command")
	case in.Timeout < 0:
		return fault.Invalidf("invalid_input", "The timeout is %d. Give a positive number of milliseconds, or leave it out for %d.", in.Timeout, timeLimit.Milliseconds()).At("/timeout")
	}
	in.analysis = shell.Analyze(in.Command)
	return nil
}

// situate analyses the command once more, for the values that the session's variables have and for git's aliases.
func situate(env *tools.Env, in input) input {
	s := shell.Setting{Environ: variables(env, in), Looked: true}
	if in.analysis.Git {
		s.Aliases = env.Aliases()
	}
	in.analysis = shell.AnalyzeIn(in.Command, s)
	return in
}

// effects are the analysis in the words of the contract.
func effects(in input) tools.Effects {
	a := in.analysis
	e := tools.Effects{
		Commands: a.Commands, Opaque: !a.ReadOnly, Session: !a.Concurrent || in.RunInBackground, Reason: a.Reason.String(), Blame: a.Reason, Hidden: hidden(a),
		Unread: a.Err != nil, Unconfined: in.Unconfined,
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
		if c.Unlisted { // what it touches is not known: anything
			listed, path.Name, path.Names, path.Unnamed = true, "/", false, true
			e.Reads = append(e.Reads, path)
		}
	}
	if a.ReadOnly && a.Unlisted && !listed {
		e.Reads = append(e.Reads, tools.Path{Name: "/", Tree: true, Unnamed: true, Part: in.Command})
	}
	if e.Reason == "" && in.RunInBackground {
		e.Reason = "it goes on in the background"
	}
	return e
}

// hidden returns, as a clause, why what the analysis lists is not all that the command may run or open.
func hidden(a shell.Analysis) string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case !a.Opaque.Empty():
		return "of " + a.Opaque.String()
	}
	for _, r := range a.Redirects {
		known := r.Target.Literal || !r.Writes && r.Target.Spelled() != nil // which files a reading one may open is listed
		if !known || len(r.Paths) == 0 {
			return "`" + r.Text + "` opens a file that is not literal"
		}
	}
	return ""
}

func appendPaths(list []tools.Path, names []string, path tools.Path) []tools.Path {
	for _, name := range names {
		if isOwn(name) {
			continue
		}
		path.Name = named(name)
		list = append(list, path)
	}
	return list
}

// isOwn reports whether a name is that of the command's own input or outputs, or of a device that keeps nothing. To the daemon
// the first would be something else.
func isOwn(name string) bool {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	number, ok := strings.CutPrefix(name, "/dev/fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// named is a path of the analysis in the form of tools.Path.
func named(name string) string {
	if strings.HasPrefix(name, "base64:") { // elsewhere that begins a name given by its bytes; to bash it is the name
		return "./" + name
	}
	return untilded(name)
}

// untilded puts the home directory in place of a leading ~, as bash will. Without a home it is anything at all.
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

// wantedTime is the time limit that the input asks for. A task in the background has none.
func wantedTime(in input) time.Duration {
	return time.Duration(min(in.Timeout, maxTime.Milliseconds())) * time.Millisecond
}
