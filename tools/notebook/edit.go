// The computation of a new notebook from the old one and the change of one cell, in memory.

package notebook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/media/ipynb"
)

// An edit is a change of a notebook that a call computes in memory.
type edit struct {
	book          *ipynb.Notebook // after the steps so far
	id, kind      string          // of the cell that is changed
	before, after string          // its source
	cleared       int             // outputs that are removed with the old source
	what          string          // the change of the cell; empty: none
	crlf          bool            // line endings were made CRLF
	renamed       bool            // cells without an id have moved
}

// plan computes the change of a content for in. The error is the cause of ctx if that ends.
func plan(ctx context.Context, env *tools.Env, c *workspace.Content, in input) (*edit, error) {
	if !c.Path.Exists {
		return nil, env.Files.Missing(c)
	}
	if err := c.Current(); err != nil {
		return nil, err
	}
	book, err := parse(c)
	if err != nil {
		return nil, err
	}
	at := -1
	if in.CellID != "" {
		var found bool
		if at, found = book.Index(in.CellID); !found {
			return nil, missing(book, in.CellID)
		}
	}
	p := &edit{book: book}
	switch in.EditMode {
	case inserting:
		p.insert(at+1, in)
	case deleting:
		p.remove(at)
	default:
		return p, p.replace(ctx, at, in)
	}
	return p, nil
}

func parse(c *workspace.Content) (*ipynb.Notebook, error) {
	book, err := ipynb.Parse(c.Data)
	if version, ok := errors.AsType[*ipynb.VersionError](err); ok {
		return nil, fault.Invalidf("unsupported_media", "%s cannot be changed: %v. Convert it with jupyter nbconvert --to notebook --nbformat 4 first.", c.Path.Shown(), version)
	}
	if err != nil {
		return nil, fault.Invalidf("damaged_file", "%s is not a Jupyter notebook that can be changed: %v. Examine it with Bash (head, jq); Edit changes any text.", c.Path.Shown(), err)
	}
	return book, nil
}

// NotFound are the Details of cell_not_found.
type NotFound struct {
	CellID string   `json:"cellId"`
	Cells  []string `json:"cells"` // the first maxNamed ids of the notebook
}

// maxNamed is how many ids are listed if none matches.
const maxNamed = 50

func missing(book *ipynb.Notebook, id string) error {
	details := NotFound{CellID: id, Cells: []string{}}
	for _, c := range book.Cells[:min(len(book.Cells), maxNamed)] {
		details.Cells = append(details.Cells, c.ID)
	}
	list := "The notebook has no cells."
	switch more := len(book.Cells) - len(details.Cells); {
	case more > 0:
		list = fmt.Sprintf("There are %s and %d more.", strings.Join(details.Cells, ", "), more)
	case len(details.Cells) > 0:
		list = fmt.Sprintf("There are %s.", strings.Join(details.Cells, ", "))
	}
	return fault.Invalidf("cell_not_found", "No cell is called %q. %s", id, list).At("/cell_id").With(details)
}

// replace replaces the source of the cell at the index, and its type if one is requested. It checks
// ctx between its steps, each of which parses the notebook.
func (p *edit) replace(ctx context.Context, at int, in input) error {
	c := p.book.Cells[at]
	p.id, p.kind, p.before = c.ID, c.Type, c.Source
	p.after = p.endings(c.Source, in.NewSource)
	turned := in.CellType != "" && in.CellType != c.Type
	if p.after == c.Source && !turned {
		return nil
	}
	p.what = fmt.Sprintf("the source of %s cell %s was replaced", c.Type, c.ID)
	if turned {
		p.kind = in.CellType
		p.what = fmt.Sprintf("cell %s was replaced, and turned from %s into %s", c.ID, c.Type, p.kind)
	}
	if c.Type == code && (len(c.Outputs) > 0 || c.Count != "") {
		p.cleared = len(c.Outputs)
		p.what += fmt.Sprintf("; %s and the execution count were cleared", text.Count(p.cleared, "output"))
	}
	if _, has := ipynb.Find(c.Members, attachments); has && turned && p.kind == code {
		p.what += "; its attachments were removed, since code cells have none"
	}
	for _, step := range p.steps(at) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.take(step(p.book, p.book.Cells[at]))
	}
	return nil
}

// attachments is the member that holds the images in a text.
const attachments = "attachments"

// A step returns the bytes of the notebook after one change to the cell.
type step func(*ipynb.Notebook, ipynb.Cell) []byte

// steps returns the steps of a replacement, in order: each moves what follows it.
func (p *edit) steps(at int) []step {
	c := p.book.Cells[at]
	turned := p.kind != c.Type
	has := func(key string) bool { _, ok := ipynb.Find(c.Members, key); return ok }
	list := []step{func(n *ipynb.Notebook, c ipynb.Cell) []byte { return setSource(n, c, p.after) }}
	set := func(key, value string) {
		list = append(list, func(n *ipynb.Notebook, c ipynb.Cell) []byte { return setMember(n, c, key, value) })
	}
	drop := func(keys ...string) {
		for _, key := range keys {
			list = append(list, func(n *ipynb.Notebook, c ipynb.Cell) []byte { return dropMember(n, c, key) })
		}
	}
	if turned {
		set("cell_type", `"`+p.kind+`"`)
	}
	switch {
	case p.kind == code:
		if turned || has("outputs") {
			set("outputs", "[]")
		}
		if turned || has("execution_count") {
			set("execution_count", "null")
		}
		if turned {
			drop(attachments)
		}
	case turned:
		drop("outputs", "execution_count")
	}
	return list
}

// take continues with the bytes of a step.
func (p *edit) take(raw []byte) {
	book, err := ipynb.Parse(raw)
	if err != nil {
		panic("BUG: a notebook that was changed is none any more: " + err.Error())
	}
	p.book = book
}

// endings converts the line endings of a new source to those of the old one, if that has only CRLF
// and the new one has none.
func (p *edit) endings(old, next string) string {
	if text.Endings(old) == text.CRLF && strings.Contains(next, "\n") && !strings.Contains(next, "\r\n") {
		p.crlf = true
		return strings.ReplaceAll(next, "\n", "\r\n")
	}
	return next
}

func (p *edit) remove(at int) {
	c := p.book.Cells[at]
	p.id, p.kind, p.before = c.ID, c.Type, c.Source
	p.what = fmt.Sprintf("%s cell %s was deleted", c.Type, c.ID)
	if p.cleared = len(c.Outputs); p.cleared > 0 {
		p.what += " with " + text.Count(p.cleared, "output")
	}
	p.renamed = nameless(p.book.Cells[at+1:])
	p.take(dropCell(p.book, at))
}

// insert adds a cell that then has the index at.
func (p *edit) insert(at int, in input) {
	p.kind, p.after = in.CellType, in.NewSource
	p.renamed = nameless(p.book.Cells[at:])
	id := ""
	if p.book.Minor >= 5 { // nbformat 4.5 requires ids, and earlier ones forbid them
		id = newID(p.book, in.NewSource)
	}
	p.take(addCell(p.book, at, p.kind, id, p.after))
	p.id = p.book.Cells[at].ID
	p.what = fmt.Sprintf("%s cell %s was inserted at the start", p.kind, p.id)
	if in.CellID != "" {
		p.what = fmt.Sprintf("%s cell %s was inserted behind %s", p.kind, p.id, in.CellID)
	}
}

// newID returns an unused id in Jupyter's own form. It depends only on the notebook, so that the
// question about the call and its result show the same one.
func newID(book *ipynb.Notebook, source string) string {
	for salt := source; ; salt += "+" {
		id := fmt.Sprintf("%016s", workspace.Hash(append(slices.Clone(book.Raw), salt...)))[:8]
		if _, taken := book.Index(id); !taken {
			return id
		}
	}
}

func nameless(list []ipynb.Cell) bool {
	return slices.ContainsFunc(list, func(c ipynb.Cell) bool { return !c.Own })
}
