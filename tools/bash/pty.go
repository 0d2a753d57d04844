// Interactive programs: Bash with a terminal, and the tool BashInput that types into it.

package bash

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/terminal"
	"github.com/toold/toold/tools/fault"
)

//go:embed input.md
var inputDescription string

// The size of a terminal unless the call gives one, and the largest, in characters.
const (
	usualColumns, usualRows = 100, 30
	maxColumns, maxRows     = 500, 200
)

const (
	// settleTime is how long BashInput waits for the screen unless the call gives another time.
	settleTime = 10 * time.Second
	// maxChars is how much BashInput types, in bytes: what a terminal takes before a program reads.
	maxChars = 4000
)

// interactive are variables of a command with a terminal, instead of fixed.
var interactive = []string{"TERM=xterm", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat"}

// ptyUnknown is why no rule about commands allows an interactive program.
const ptyUnknown = "it is interactive, and what will be typed into it is not known"

type screenSize struct {
	Columns int64 `json:"columns,omitempty" jsonschema:"width of the terminal in characters, 100 if you give none" minimum:"0" maximum:"500"`
	Rows    int64 `json:"rows,omitempty" jsonschema:"height of the terminal in lines, 30 if you give none" minimum:"0" maximum:"200"`
}

// size returns the wanted size.
func (s screenSize) size() sandbox.Size {
	return sandbox.Size{
		Columns: uint16(min(cmp.Or(s.Columns, usualColumns), maxColumns)), Rows: uint16(min(cmp.Or(s.Rows, usualRows), maxRows)),
	}
}

type typedInput struct {
	BashID string `json:"bash_id,omitempty" jsonschema:"the id that Bash gave"`
	TaskID string `json:"task_id,omitempty" jsonschema:"the same as bash_id"`
	Chars  string `json:"chars,omitempty" jsonschema:"what to type, exactly; end a line with \\n; \\u0003 is Ctrl-C, \\u0004 Ctrl-D, \\u001b Escape, \\u001b[A the up arrow; empty: type nothing, and look again"`
	WaitMS int64  `json:"wait_ms,omitempty" jsonschema:"how long to wait at most until the program waits for input again, in milliseconds, at most 30000" minimum:"0" default:"10000"`
	screenSize

	analysis shell.Analysis
}

// InputTool returns the BashInput tool. Its result for programs is Structured.
func InputTool() tools.Tool {
	spec := tools.Spec{
		Name: "BashInput", Description: inputDescription, Destructive: true, OpenWorld: true, TimeLimit: 45 * time.Second,
		OnInterrupt: tools.Finish,
	}
	return tools.New(spec, tools.Funcs[typedInput]{Validate: validateTyped, Effects: typedEffects, Run: runTyped})
}

func validateTyped(in *typedInput) (err error) {
	if in.BashID, err = oneID(in.BashID, in.TaskID, "bash_id"); err != nil {
		return err
	}
	if len(in.Chars) > maxChars {
		return fault.Invalidf("invalid_input", "chars has %d bytes, and one call types at most %d. Send the rest in another call.", len(in.Chars), maxChars).At("/chars")
	}
	in.analysis = shell.Analyze(typedScript(in.Chars))
	return nil
}

// typedScript returns what a shell would read of the typed characters: lines without control characters.
func typedScript(chars string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\r' || c == '\n':
			return '\n'
		case c < ' ' && c != '\t':
			return -1
		}
		return c
	}, chars)
}

// typedEffects declares that typing may do anything. The commands that a shell would read are listed for the
// rules that deny and ask.
func typedEffects(in typedInput) tools.Effects {
	if in.Chars == "" {
		return tools.Effects{State: "cursors"}
	}
	e := tools.Effects{
		Opaque: true, StartsNone: true, Session: true, Reason: "a program gets what is typed",
		Unknown: shell.Unknown{Cause: "what the program does with the typed text is not known"},
	}
	if in.analysis.Err == nil {
		e.Commands = in.analysis.Commands
	}
	return e
}

func runTyped(ctx context.Context, env *tools.Env, in typedInput) (tools.Result, error) {
	task, err := find(env, in.BashID, "bash_id")
	if err != nil {
		return tools.Result{}, err
	}
	if task.Terminal == nil {
		return tools.Result{}, fault.Invalidf("no_terminal", "%s has no terminal, so nothing can be typed into it. Start the command with pty.", task.ID).At("/bash_id")
	}
	if _, ended := task.Exit(); !ended {
		if err := typeInto(ctx, task, in); err != nil {
			return tools.Result{}, err
		}
	}
	return screenOf(env, task), nil
}

// typeInto types, and waits until the program waits again.
func typeInto(ctx context.Context, task *background.Task, in typedInput) error {
	if in.Columns > 0 || in.Rows > 0 {
		_ = task.Terminal.Resize(in.size()) // it has ended
	}
	if in.Chars != "" {
		switch err := task.Terminal.Type(in.Chars); {
		case errors.Is(err, terminal.ErrAsking):
			return fault.Failedf("asking_user", "Nothing was typed: %v. Call BashInput without chars to see what has become of it; only \\u0003 (Ctrl-C) can be typed meanwhile.", err)
		case errors.Is(err, terminal.ErrDeclined):
			return fault.Failedf("secret_declined", "Nothing was typed: %v. Only \\u0003 (Ctrl-C) can be typed until the program shows again what is typed; KillShell ends it.", err)
		case err != nil:
			if _, ended := task.Exit(); !ended {
				return fault.Failedf("io_error", "Not everything was typed: %v.", err)
			}
		}
	}
	limit := settleTime
	if in.WaitMS > 0 {
		limit = min(time.Duration(in.WaitMS)*time.Millisecond, maxWait)
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	task.Terminal.AwaitAnswer(waiting)
	if !task.Terminal.Settle(waiting) && waiting.Err() == nil {
		<-task.Done()
	}
	return context.Cause(ctx)
}

// screenOf returns what a person would see of an interactive task.
func screenOf(env *tools.Env, task *background.Task) tools.Result {
	s := statusOf(task)
	env.Box.Report(task.TakeAside())
	text, spill := s.screen(task.Terminal, tools.OutputRoom(env.MaxChars), task.Output.Path())
	if s.Status == "running" {
		s.Ports = env.Ports(task)
	}
	result := tools.Text(s.statusLine(task) + text + s.serves() + s.leftovers(notKept))
	result.Structured, result.Spill = *s, spill
	result.Changes.Cursor = &tools.Cursor{Task: task.ID, Offset: task.Output.Total()}
	return result
}

// screen returns the lines that have gone by, and the screen, within so many characters.
func (s *Structured) screen(t *terminal.Terminal, room int, path string) (text string, spill *tools.Spill) {
	v := t.View()
	passed, shown := strings.Join(v.Passed, "\n"), strings.Join(v.Screen, "\n")
	s.Screen, s.CursorLine, s.CursorColumn = v.Screen, v.Line, v.Column
	left := v.Dropped
	if over := len(passed) + len(shown) - room; over > 0 {
		whole := len(passed)
		_, passed, _ = strings.Cut(passed[min(over, len(passed)):], "\n")
		left += int64(whole - len(passed))
	}
	if left > 0 {
		passed = fmt.Sprintf("[Lines before this were left out. %s has everything that was printed, with its escape sequences.]\n%s", path, passed)
		spill = &tools.Spill{Path: path, Bytes: left}
	}
	if passed != "" {
		text = passed + "\n"
	}
	if shown != "" {
		text += shown + "\n"
	}
	if s.Status == "running" {
		text += fmt.Sprintf("[The cursor is at line %d, column %d of the screen.]\n", v.Line, v.Column)
	}
	if v.Asking {
		text += "[The program waits for a line that is not shown, and the user is being asked for it. It will not be shown here.]\n"
	}
	return text, spill
}

// waits returns the result of an interactive command that waits for input: it goes on as a task.
func (r *shellRun) waits(ctx context.Context) (tools.Result, error) {
	task := r.adopt()
	if task == nil {
		return r.end(ctx, r.process.Wait())
	}
	s := statusOf(task)
	s.WorkingDirectory, s.Ports = r.dir, r.env.Ports(task)
	text, spill := s.screen(r.terminal, tools.OutputRoom(r.env.MaxChars), r.out.Path())
	result := tools.Text(fmt.Sprintf("%s waits for input. BashInput types into it, KillShell stops it.\n", task.ID) + text + s.serves() + r.noted())
	result.Structured, result.Spill = *s, spill
	result.Changes.Task = task.ID
	result.Changes.Cursor = &tools.Cursor{Task: task.ID, Offset: r.out.Total()}
	return result, nil
}
