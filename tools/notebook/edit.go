// The computation of a new notebook from the old one and the change of one cell, in memory.

package notebook

import (
	"cmp"
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
	in            input
	book          *ipynb.Notebook // at last after the change
	id, kind      string          // of the cell that is changed
	before, after string          // its source
	cleared       int             // outputs that are removed with the old source
	what          string          // the change of the cell; empty: none
	crlf          bool            // line endings were made CRLF
	renamed       bool            // cells without an id have moved
}

// plan computes the change of a content for in. The error is the cause of ctx if that has ended.
func plan(ctx context.Context, env *tools.Env, c *workspace.Content, in input) (tools.Change, error) {
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
	at, found := book.Index(in.CellID)
	if in.CellID != "" && !found {
		return nil, missing(book, in.CellID)
	}
	p := &edit{in: in, book: book}
	switch in.EditMode {
	case inserting:
		p.insert(at + 1)
	case deleting:
		p.remove(at)
	default:
		p.replace(at)
	}
	return p, context.Cause(ctx)
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

// replace replaces the source of the cell at the index, and its type if one is requested.
func (p *edit) replace(at int) {
	c := p.book.Cells[at]
	p.id, p.kind, p.before = c.ID, cmp.Or(p.in.CellType, c.Type), c.Source
	p.after, p.crlf = text.LikeEndings(c.Source, p.in.NewSource)
	turned := p.kind != c.Type
	if p.after == c.Source && !turned {
		return
	}
	p.what = fmt.Sprintf("the source of %s cell %s was replaced", c.Type, c.ID)
	if turned {
		p.what = fmt.Sprintf("cell %s was replaced, and turned from %s into %s", c.ID, c.Type, p.kind)
	}
	if c.Type == code && (len(c.Outputs) > 0 || c.Count != "") {
		p.cleared = len(c.Outputs)
		p.what += fmt.Sprintf("; %s and the execution count were cleared", text.Count(p.cleared, "output"))
	}
	if turned && p.kind == code && ipynb.Find(c.Members, attachments) >= 0 {
		p.what += "; its attachments were removed, since code cells have none"
	}
	p.take(p.rewritten(c))
}

// attachments is the member that holds the images in a text.
const attachments = "attachments"

// rewritten returns the notebook with the new source of the cell, and with the members that its
// type must have and without those that it must not.
func (p *edit) rewritten(c ipynb.Cell) []byte {
	l, last := layoutOf(p.book), c.Members[len(c.Members)-1]
	s, turned := l.members(c), p.kind != c.Type
	set := func(key, value string, added bool) {
		if i := ipynb.Find(c.Members, key); i >= 0 {
			s.items[i].text = slices.Concat(p.book.Raw[c.Members[i].At:c.Members[i].Value.From], []byte(value))
		} else if added {
			s.insert(len(s.items), l.quoted(key)+l.colon+value, l.gap(last.At))
		}
	}
	form, indent := l.sourceForm(c)
	set("source", l.source(p.after, indent, form), true)
	var foreign []string
	if turned {
		set("cell_type", `"`+p.kind+`"`, true)
		foreign = []string{"outputs", "execution_count"}
	}
	if p.kind == code {
		set("outputs", "[]", turned)
		set("execution_count", "null", turned)
		foreign = []string{attachments}
	}
	for i, m := range slices.Backward(c.Members) {
		if turned && slices.Contains(foreign, m.Key) {
			s.drop(i)
		}
	}
	return s.replacing(c.Span)
}

// take continues with the bytes of the changed notebook.
func (p *edit) take(raw []byte) {
	book, err := ipynb.Parse(raw)
	if err != nil {
		panic("BUG: a notebook that was changed is none any more: " + err.Error())
	}
	p.book = book
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
func (p *edit) insert(at int) {
	p.kind, p.after = p.in.CellType, p.in.NewSource
	p.renamed = nameless(p.book.Cells[at:])
	id := ""
	if p.book.Minor >= 5 { // nbformat 4.5 requires ids, and earlier ones forbid them
		id = newID(p.book, p.after)
	}
	p.take(addCell(p.book, at, p.kind, id, p.after))
	p.id = p.book.Cells[at].ID
	place := "at the start"
	if p.in.CellID != "" {
		place = "behind " + p.in.CellID
	}
	p.what = fmt.Sprintf("%s cell %s was inserted %s", p.kind, p.id, place)
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
