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

// Tool gives the Bash tool. Its result for programs is Structured.
func Tool() tools.Tool {
	spec := tools.Spec{
		Name: "Bash", Description: description, Destructive: true, TimeLimit: timeLimit, MaxTime: maxTime,
		OnInterrupt: tools.Finish, OnFailure: tools.AbortSiblings,
	}
	return tools.New(spec, tools.Funcs[input]{
		Validate: validate, Effects: effects, Check: check, TimeLimit: wantedTime, Run: run,
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

// effects are the analysis in the words of the contract.
func effects(in input) tools.Effects {
	a := in.analysis
	e := tools.Effects{
		Commands: a.Commands, Opaque: !a.ReadOnly, Session: !a.Concurrent || in.RunInBackground, Reason: a.Reason,
		Reads: paths(a.Reads), Writes: paths(a.Writes),
	}
	if a.ReadOnly && a.Unlisted {
		e.Reads = append(e.Reads, tools.Path{Name: "/", Tree: true}) // what it reads is not known: anything
	}
	if e.Reason == "" && in.RunInBackground {
		e.Reason = "it goes on in the background"
	}
	return e
}

func paths(names []string) (list []tools.Path) {
	for _, name := range names {
		list = append(list, tools.Path{Name: untilded(name), Tree: true})
	}
	return list
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
