// Package memory is the Memory tool: notes of a model in files that outlive its sessions. Commands and the texts of results are
// those of the memory tool of Anthropic's SDK. The package does not know where the files are.
package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/memstore"
)

//go:embed description.md
var description string

// Input is the tool's input. Which fields a command needs is in commands.
type Input struct {
	Command    string  `json:"command" jsonschema:"what to do" enum:"view,create,str_replace,insert,delete,rename"`
	Path       string  `json:"path,omitempty" jsonschema:"the file or directory, /memories or below it; not for rename"`
	FileText   *string `json:"file_text,omitempty" jsonschema:"of create: the content of the new file"`
	OldStr     *string `json:"old_str,omitempty" jsonschema:"of str_replace: the text to replace, which must occur once"`
	NewStr     *string `json:"new_str,omitempty" jsonschema:"of str_replace: the text in its place; default: none"`
	InsertLine *int64  `json:"insert_line,omitempty" jsonschema:"of insert: the number of the line behind which the text goes; 0: the beginning"`
	InsertText *string `json:"insert_text,omitempty" jsonschema:"of insert: the text, one or more lines"`
	OldPath    string  `json:"old_path,omitempty" jsonschema:"of rename: the present path"`
	NewPath    string  `json:"new_path,omitempty" jsonschema:"of rename: the new path"`
	ViewRange  []int64 `json:"view_range,omitempty" jsonschema:"of view: first and last line of a file to show, from 1; -1: to the end"`

	below []string // paths below those that the command names, as the files now are
}

// Structured is the result for programs.
type Structured struct {
	Command string `json:"command"`
	Path    string `json:"path"`              // clean; of rename the old one
	NewPath string `json:"newPath,omitempty"` // of rename
}

// A command is what a call can ask for.
type command struct {
	fields []string // that it needs
	writes bool
	plan   func(*memstore.Files, Input) (*plan, error)
}

var commands = map[string]command{
	"view":        {[]string{"path"}, false, view},
	"create":      {[]string{"path", "file_text"}, true, create},
	"str_replace": {[]string{"path", "old_str"}, true, replace},
	"insert":      {[]string{"path", "insert_line", "insert_text"}, true, insert},
	"delete":      {[]string{"path"}, true, remove},
	"rename":      {[]string{"old_path", "new_path"}, true, rename},
}

// A plan is what a command comes to as the files now are. Nothing is changed yet.
type plan struct {
	text string        // of the result
	diff func() string // of the change; nil: there is none, or it is not one of a file
	do   func(*memstore.Files) error
}

// Tool returns the Memory tool.
func Tool() tools.Tool {
	spec := tools.Spec{Name: "Memory", Description: description, Destructive: true, OnDemand: true}
	return tools.New(spec, tools.Funcs[Input]{
		Validate: validate,
		Effects:  func(in Input) tools.Effects { return tools.Effects{Memory: in.touches()} },
		Situate:  situate,
		Check: func(_ context.Context, env *tools.Env, in Input) (preview tools.Preview, err error) {
			err = env.Memory.Read(func(f *memstore.Files) error {
				p, err := commands[in.Command].plan(f, in)
				if err == nil && p.diff != nil {
					preview.Diff = p.diff()
				}
				return err
			})
			return preview, in.explain(err)
		},
		Run: run,
	})
}

func validate(in *Input) error {
	c := commands[in.Command]
	given := map[string]bool{
		"path": in.Path != "", "file_text": in.FileText != nil, "old_str": in.OldStr != nil, "insert_line": in.InsertLine != nil,
		"insert_text": in.InsertText != nil, "old_path": in.OldPath != "", "new_path": in.NewPath != "",
	}
	for _, field := range c.fields {
		if !given[field] {
			return violation("/"+field, "the command %s needs it", in.Command)
		}
	}
	for _, p := range in.named() {
		if wrong := misplaced(p); wrong != "" {
			return fault.Invalidf("invalid_input", "%s", wrong)
		}
	}
	if len(in.ViewRange) != 0 && len(in.ViewRange) != 2 {
		return violation("/view_range", "it has %d numbers; send the first and the last line", len(in.ViewRange))
	}
	return nil
}

func violation(field, format string, args ...any) error {
	return tools.Violated("Memory", []tools.Violation{{Field: field, Expected: fmt.Sprintf(format, args...)}})
}

// named returns the paths that the command names, as it does.
func (in *Input) named() []string {
	if in.Command == "rename" {
		return []string{in.OldPath, in.NewPath}
	}
	return []string{in.Path}
}

// misplaced returns why there can be no such path, as a sentence; empty: there can.
func misplaced(name string) string {
	switch {
	case name != memstore.Root && !strings.HasPrefix(name, memstore.Root+"/"):
		return "Path must start with /memories, got: " + name
	case path.Clean(name) != memstore.Root && !strings.HasPrefix(path.Clean(name), memstore.Root+"/"):
		return fmt.Sprintf("Path %s would escape /memories directory", name)
	case strings.ContainsRune(name, 0):
		return "A path cannot have a zero byte in it."
	}
	return ""
}

// touches returns what the command reads or changes, with what is below that as far as it is known.
func (in Input) touches() (list []memstore.Touch) {
	for _, name := range append(in.named(), in.below...) {
		list = append(list, memstore.Touch{Path: path.Clean(name), Write: commands[in.Command].writes})
	}
	return list
}

// situate adds what is below the paths that the command changes: a rule may be about it.
func situate(env *tools.Env, in Input) Input {
	if !commands[in.Command].writes {
		return in // a list has names only
	}
	_ = env.Memory.Read(func(f *memstore.Files) error { // the check reports why they cannot be read
		in.below = below(f, in)
		return nil
	})
	return in
}

func below(f *memstore.Files, in Input) (paths []string) {
	for _, name := range in.named() {
		paths = append(paths, f.Below(path.Clean(name))...)
	}
	return paths
}

func run(_ context.Context, env *tools.Env, in Input) (tools.Result, error) {
	c := commands[in.Command]
	within := env.Memory.Read
	if c.writes {
		within = env.Memory.Change
	}
	var done *plan
	err := within(func(f *memstore.Files) (err error) {
		if c.writes && slices.ContainsFunc(below(f, in), func(p string) bool { return !slices.Contains(in.below, p) }) {
			return fault.Failedf("memory_changed", "Something was added below %s meanwhile. Look at it, and send the call again.", in.named()[0])
		}
		if done, err = c.plan(f, in); err == nil && done.do != nil {
			err = done.do(f)
		}
		return err
	})
	if err != nil {
		return tools.Result{}, in.explain(err)
	}
	s := Structured{Command: in.Command, Path: path.Clean(in.named()[0])}
	if in.Command == "rename" {
		s.NewPath = path.Clean(in.NewPath)
	}
	return tools.TextWith(done.text, s), nil
}

// explain returns the error of a command for a model.
func (in Input) explain(err error) error {
	_, told := errors.AsType[*fault.Error](err)
	switch {
	case err == nil, told:
		return err
	case errors.Is(err, memstore.ErrFull):
		return fault.Failedf("memory_full", "Memory has no room for this: %v. Delete or shorten files first.", err)
	case errors.Is(err, memstore.ErrLink):
		return fault.Failedf("memory_path", "There is a symbolic link on the path %s, which is not followed. Only the user can remove it.", in.named()[0])
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, fs.ErrInvalid), errors.Is(err, syscall.EINVAL):
		return fault.Failedf("memory_path", "There can be no such path as %s: %v.", strings.Join(in.named(), " or "), cause(err))
	}
	return fault.Failedf("io_error", "The memory cannot be used: %v.", cause(err))
}

// cause returns an error without the paths on the disk, which no model can do anything with.
func cause(err error) error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return errno
	}
	return err
}
