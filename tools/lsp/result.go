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
	Operation   string                `json:"operation"`
	FilePath    string                `json:"file_path"` // real
	Locations   []language.Location   `json:"locations,omitempty"`
	Symbols     []language.Symbol     `json:"symbols,omitempty"`
	Hover       string                `json:"hover,omitempty"`
	Function    *language.Symbol      `json:"function,omitempty"` // call_hierarchy: the one at the position
	Incoming    []language.Call       `json:"incoming,omitempty"`
	Outgoing    []language.Call       `json:"outgoing,omitempty"`
	Diagnostics []language.Diagnostic `json:"diagnostics,omitempty"`
	Changes     []language.Change     `json:"changes,omitempty"`
	Diff        string                `json:"diff,omitempty"`
	Total       int                   `json:"total"`
	Shown       int                   `json:"shown"`
	Denied      int                   `json:"denied"`         // left out because a rule denies reading the file
	Elsewhere   int                   `json:"elsewhere"`      // shown without their line, since the call may not read the file
	Busy        string                `json:"busy,omitempty"` // what the server is still doing: there may be more
	Incomplete  bool                  `json:"incomplete"`     // the server did not report everything in time
}

// keeps reports whether an entry about the file may be shown at all, and counts those that may not.
func (c *call) keeps(unread error) bool {
	if f, ok := errors.AsType[*fault.Error](unread); ok && (f.Code == "rule_denied" || f.Code == "hidden_path") {
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

// shows is keeps for a location, whose line it shortens for a message.
func (c *call) shows(l *language.Location) bool {
	l.Line = text.Shown(strings.TrimSpace(l.Line))
	return c.keeps(l.Unread)
}

// title returns the name of a symbol.
func title(s language.Symbol) string {
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
			if c.shows(&l) {
				c.found.Locations = append(c.found.Locations, l)
				c.body = append(c.body, l.String())
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
	c.symbols(list, func(s language.Symbol) string { return strings.Repeat("  ", min(s.Depth, 20)) })
	return err
}

func search(ctx context.Context, c *call) error {
	list, err := c.env.Languages.Search(ctx, c.query, c.in.Query)
	c.symbols(list, func(s language.Symbol) string { return s.Path + ":" })
	return err
}

// symbols adds symbols; lead is what stands before the position of each.
func (c *call) symbols(list []language.Symbol, lead func(language.Symbol) string) {
	for _, s := range list {
		if c.shows(&s.Location) {
			c.found.Symbols = append(c.found.Symbols, s)
			c.body = append(c.body, lead(s)+s.Range.Start.String()+": "+title(s))
		}
	}
}

func hierarchy(ctx context.Context, c *call) error {
	calls, err := c.env.Languages.Calls(ctx, c.query)
	if err != nil || calls.Of.Name == "" {
		return err
	}
	if c.shows(&calls.Of.Location) {
		c.found.Function = &calls.Of
		c.body = append(c.body, title(calls.Of)+" at "+calls.Of.String())
	}
	c.found.Incoming = c.ends("Called by", calls.Incoming)
	c.found.Outgoing = c.ends("Calls", calls.Outgoing)
	return nil
}

// ends adds one direction of a hierarchy, and returns what is shown of it.
func (c *call) ends(heading string, list []language.Call) (ends []language.Call) {
	if len(list) == 0 {
		c.body = append(c.body, heading+": nothing.")
		return nil
	}
	c.body = append(c.body, heading+":")
	for _, end := range list {
		if !c.shows(&end.Location) {
			continue
		}
		ends = append(ends, end)
		var lines []string
		for _, in := range end.At[:min(len(end.At), 10)] {
			lines = append(lines, in.Start.String())
		}
		if more := len(end.At) - len(lines); more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
		c.body = append(c.body, fmt.Sprintf("  %s:%s: %s; the call is at %s", end.Path, end.Range.Start, title(end.Symbol), strings.Join(lines, ", ")))
	}
	return ends
}

func diagnose(ctx context.Context, c *call) error {
	found, err := c.env.Languages.Diagnose(ctx, c.query)
	for _, d := range found.List {
		if c.keeps(nil) {
			c.found.Diagnostics = append(c.found.Diagnostics, d)
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
		c.found.Changes = append(c.found.Changes, change)
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
