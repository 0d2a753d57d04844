// The result of a question, as text and as data.

package lsp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// Found is the structured result. The lists hold what is shown; Total counts all that may be shown.
type Found struct {
	Operation   string       `json:"operation"`
	FilePath    string       `json:"file_path"` // real
	Locations   []Location   `json:"locations,omitempty"`
	Symbols     []Symbol     `json:"symbols,omitempty"`
	Hover       string       `json:"hover,omitempty"`
	Function    *Symbol      `json:"function,omitempty"` // call_hierarchy: the one at the position
	Incoming    []Call       `json:"incoming,omitempty"`
	Outgoing    []Call       `json:"outgoing,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	Changes     []Change     `json:"changes,omitempty"`
	Diff        string       `json:"diff,omitempty"`
	Total       int          `json:"total"`
	Shown       int          `json:"shown"`
	Denied      int          `json:"denied"`         // left out because a rule denies reading the file
	Elsewhere   int          `json:"elsewhere"`      // shown without their line, since the call may not read the file
	Busy        string       `json:"busy,omitempty"` // what the server is still doing: there may be more
	Incomplete  bool         `json:"incomplete"`     // the server did not report everything in time
}

// Location is one position in a file.
type Location struct {
	Path  string         `json:"path"` // absolute
	Range language.Range `json:"range"`
	Text  string         `json:"text,omitempty"` // the line, less the blanks around it
}

// Symbol is a named element of a program.
type Symbol struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Detail    string `json:"detail,omitempty"`
	Container string `json:"container,omitempty"`
	Depth     int    `json:"depth"`
	Location
}

// Call is one end of a call, and its position in the caller.
type Call struct {
	Symbol
	At []language.Range `json:"at"`
}

// Diagnostic is one finding of the server about the file.
type Diagnostic struct {
	Range    language.Range `json:"range"`
	Severity string         `json:"severity"`
	Code     string         `json:"code,omitempty"`
	Source   string         `json:"source,omitempty"`
	Message  string         `json:"message"`
}

// Change is how often one file would change.
type Change struct {
	Path  string `json:"path"`
	Edits int    `json:"edits"`
}

// keeps reports whether an entry about the file may be shown at all, and counts those that may not.
func (c *call) keeps(unread error) bool {
	var f *fault.Error
	if errors.As(unread, &f) && (f.Code == "rule_denied" || f.Code == "hidden_path") {
		c.found.Denied++
		return false
	}
	c.found.Total++
	if c.found.Shown >= maxShown {
		return false
	}
	c.found.Shown++
	if unread != nil {
		c.found.Elsewhere++
	}
	return true
}

func location(l language.Location) Location {
	return Location{Path: l.Path, Range: l.Range, Text: text.Shown(strings.TrimSpace(l.Line))}
}

// String returns path:line:character, and the line if it is known.
func (l Location) String() string {
	where := fmt.Sprintf("%s:%d:%d", l.Path, l.Range.Start.Line, l.Range.Start.Character)
	if l.Text == "" {
		return where
	}
	return where + ": " + l.Text
}

func symbol(s language.Symbol) Symbol {
	return Symbol{Name: s.Name, Kind: s.Kind, Detail: s.Detail, Container: s.Container, Depth: s.Depth, Location: location(s.Location)}
}

// title returns the name of a symbol.
func (s Symbol) title() string {
	title := s.Kind + " " + s.Name
	if s.Detail != "" {
		title += " " + text.Shown(s.Detail)
	}
	if s.Container != "" {
		title += " (in " + s.Container + ")"
	}
	return title
}

func places(ask func(*language.Set, context.Context, language.Query) ([]language.Location, error)) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		list, err := ask(c.env.Languages, ctx, c.query)
		for _, l := range list {
			if c.keeps(l.Unread) {
				c.found.Locations = append(c.found.Locations, location(l))
				c.body = append(c.body, location(l).String())
			}
		}
		return err
	}
}

func hover(ctx context.Context, c *call) (err error) {
	c.found.Hover, err = c.env.Languages.Hover(ctx, c.query)
	if c.found.Hover != "" {
		c.found.Total, c.found.Shown = 1, 1
		c.body = []string{c.found.Hover}
	}
	return err
}

func outline(ctx context.Context, c *call) error {
	list, err := c.env.Languages.Outline(ctx, c.query)
	for _, l := range list {
		if c.keeps(l.Unread) {
			s := symbol(l)
			c.found.Symbols = append(c.found.Symbols, s)
			c.body = append(c.body, fmt.Sprintf("%s%d:%d: %s", strings.Repeat("  ", min(s.Depth, 20)), s.Range.Start.Line, s.Range.Start.Character, s.title()))
		}
	}
	return err
}

func search(ctx context.Context, c *call) error {
	list, err := c.env.Languages.Search(ctx, c.query, c.in.Query)
	for _, l := range list {
		if c.keeps(l.Unread) {
			s := symbol(l)
			c.found.Symbols = append(c.found.Symbols, s)
			c.body = append(c.body, fmt.Sprintf("%s:%d:%d: %s", s.Path, s.Range.Start.Line, s.Range.Start.Character, s.title()))
		}
	}
	return err
}

func hierarchy(ctx context.Context, c *call) error {
	calls, err := c.env.Languages.Calls(ctx, c.query)
	if err != nil || calls.Of.Name == "" {
		return err
	}
	if c.keeps(calls.Of.Unread) {
		of := symbol(calls.Of)
		c.found.Function = &of
		c.body = append(c.body, of.title()+" at "+of.Location.String())
	}
	c.found.Incoming = c.ends("Called by", calls.Incoming)
	c.found.Outgoing = c.ends("Calls", calls.Outgoing)
	return nil
}

// ends converts one direction of a hierarchy.
func (c *call) ends(heading string, list []language.Call) (ends []Call) {
	if len(list) == 0 {
		c.body = append(c.body, heading+": nothing.")
		return nil
	}
	c.body = append(c.body, heading+":")
	for _, l := range list {
		if !c.keeps(l.Unread) {
			continue
		}
		end := Call{Symbol: symbol(l.Symbol), At: l.At}
		ends = append(ends, end)
		var lines []string
		for _, at := range l.At[:min(len(l.At), 10)] {
			lines = append(lines, fmt.Sprintf("%d:%d", at.Start.Line, at.Start.Character))
		}
		if more := len(l.At) - len(lines); more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
		c.body = append(c.body, fmt.Sprintf("  %s:%d:%d: %s; the call is at %s", end.Path, end.Range.Start.Line, end.Range.Start.Character, end.title(), strings.Join(lines, ", ")))
	}
	return ends
}

func diagnose(ctx context.Context, c *call) error {
	found, err := c.env.Languages.Diagnose(ctx, c.query)
	for _, d := range found.List {
		if c.keeps(nil) {
			c.found.Diagnostics = append(c.found.Diagnostics, Diagnostic{d.Range, string(d.Severity), d.Code, d.Source, d.Message})
			c.body = append(c.body, d.String())
		}
	}
	c.found.Total += found.Dropped
	c.found.Incomplete = !found.Complete
	return err
}

func rename(ctx context.Context, c *call) error {
	found, err := c.env.Languages.Rename(ctx, c.query, c.in.Query)
	if err != nil {
		return err
	}
	var diff strings.Builder
	for _, change := range found.Changes {
		if !c.keeps(change.Unread) {
			continue
		}
		c.found.Changes = append(c.found.Changes, Change{change.Path, change.Edits})
		if change.Unread != nil {
			c.body = append(c.body, fmt.Sprintf("%s: %s, not shown", change.Path, text.Count(change.Edits, "edit")))
			continue
		}
		diff.WriteString(text.Patch(change.Path, string(change.Before), string(change.After)))
	}
	c.found.Diff = diff.String()
	if c.found.Diff != "" {
		c.body = append(c.body, strings.TrimSuffix(c.found.Diff, "\n"))
	}
	if found.Other > 0 {
		c.found.Incomplete = true
		c.body = append(c.body, fmt.Sprintf("It would also make, move or remove %s, which is not shown.", text.Count(found.Other, "file")))
	}
	return nil
}
