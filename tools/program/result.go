// The result of a program, for a model and for programs.

package program

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fault"
)

// Structured is the structured result. OutputPath is the file with standard output alone.
type Structured struct {
	tools.Exit
	tools.Printed
}

// set returns the variables that every program gets.
func (r *running) set() []string {
	project := r.env.Dir
	if roots := r.env.Files.Roots(); len(roots) > 0 {
		project = roots[0]
	}
	return []string{
		"PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "PWD=" + r.env.Dir, "CLAUDE_PROJECT_DIR=" + project, "TOOLD_PROJECT_DIR=" + project,
	}
}

// result returns the result of the program.
func (r *running) result(ctx context.Context, exit sandbox.Exit) (tools.Result, error) {
	s := Structured{tools.ExitOf(exit), tools.Printed{StdoutBytes: r.out.Total(), StderrBytes: r.said.total}}
	if s.StdoutBytes > 0 {
		s.OutputPath = r.out.Path()
	}
	if exit.Code != 0 || exit.Output != nil {
		result, err := r.printed(&s, s.Headline(), r.said.last(), leftovers(exit))
		if err == nil {
			err = s.Fault("program", "standard error")
		}
		return result, err
	}
	content, is, err := r.list.blocks(ctx)
	if !is || err != nil {
		result, unread := r.printed(&s, "", leftovers(exit))
		if err != nil && unread == nil {
			unread = fault.Failedf("bad_result", "The program has printed a list of content blocks that cannot be used: %v. The text is its output.", err)
		}
		return result, unread
	}
	if note := leftovers(exit); note != "" || len(content) == 0 {
		content = append(content, tools.Block{Text: orNothing(note)})
	}
	return tools.Result{Content: content, Structured: s}, nil
}

// printed returns standard output as text, with a line before it and others after it.
func (r *running) printed(s *Structured, head string, notes ...string) (tools.Result, error) {
	note := strings.Join(notes, "")
	x, err := r.out.Excerpt(max(tools.OutputRoom(r.env.MaxChars)-len(note), r.env.MaxChars/2))
	if err != nil {
		return tools.Result{Structured: *s}, fault.Failedf("io_error", "The program has ended, but its output cannot be read back: %v.", err)
	}
	text, spill := s.Text(x, s.OutputPath)
	if note != "" {
		text = spool.EndLine(text) + note
	}
	result := tools.Text(head + orNothing(text))
	result.Structured, result.Spill = *s, spill
	return result, nil
}

func orNothing(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(no output)"
	}
	return text
}

// leftovers returns a note about the processes that outlived the program.
func leftovers(exit sandbox.Exit) string {
	var text strings.Builder
	if n := len(exit.LeftBehind); n > 0 {
		fmt.Fprintf(&text, "\n[Still running when the program had ended, and stopped: %d processes, such as %d (%s).]", n, exit.LeftBehind[0].PID, readable(exit.LeftBehind[0].Name))
	}
	if n := len(exit.Stuck); n > 0 {
		fmt.Fprintf(&text, "\n[Killed, but the kernel still holds: %d processes, such as %d (%s).]", n, exit.Stuck[0].PID, readable(exit.Stuck[0].Name))
	}
	return text.String()
}
