// Jupyter notebooks: their cells with their outputs. tools/media/ipynb parses them.

package read

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/media/image"
	"github.com/toold/toold/tools/media/ipynb"
)

// Limits of the outputs that are shown. Our own: logs of training runs are longer, and their
// beginnings are of little use.
const (
	maxOutput   = 10_000  // characters
	maxOutputs  = 100     // of them, with or without text
	maxImages   = 20      // images of one result
	lookedAt    = 1 << 18 // bytes of an output's beginning, and of its end, in which escapes are removed
	longestName = 100     // characters of a language, and of a list of media types
)

// Notebook is the structured result for a Jupyter notebook.
type Notebook struct {
	Type       string     `json:"type"`     // "notebook"
	FilePath   string     `json:"filePath"` // absolute, as named
	Size       int64      `json:"size"`     // bytes
	Language   string     `json:"language,omitempty"`
	TotalCells int        `json:"totalCells"`
	Cells      []CellFact `json:"cells"`                // those given
	NextOffset int        `json:"nextOffset,omitempty"` // where to continue; 0: nothing follows
}

// CellFact describes a cell.
type CellFact struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Outputs int    `json:"outputs"`
}

// notebook returns the requested cells, as far as there is room. A file that is named like a
// notebook and is not one is shown as text: a merge may have broken it, and the model has to see it
// to fix it.
func (s *source) notebook(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	data, err := s.whole(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	n, err := ipynb.Parse(data)
	if err != nil {
		s.rewind(data)
		result, failed := s.lines(ctx, env, in)
		if failed == nil {
			result.Content[0].Text = ended(result.Content[0].Text) + fmt.Sprintf("(it is named like a Jupyter notebook and shown as text: %v)", err)
		}
		return result, failed
	}
	n.Language = beginning(n.Language, longestName)
	first := min(in.Offset-1, len(n.Cells))
	until := min(first+min(in.Limit, len(n.Cells)), len(n.Cells))
	g := gallery{room: room(env), bytes: image.MaxBytes}
	facts := []CellFact{}
	for i, c := range n.Cells[first:until] {
		if !g.add(ctx, n, first+i) {
			until = first + i
			break
		}
		facts = append(facts, CellFact{c.ID, c.Type, len(c.Outputs)})
	}
	if ctx.Err() != nil {
		return tools.Result{}, context.Cause(ctx)
	}
	out := Notebook{Type: "notebook", FilePath: s.file.Path.Name(), Size: int64(len(data)), Language: n.Language, TotalCells: len(n.Cells), Cells: facts}
	if until < len(n.Cells) && first < len(n.Cells) {
		out.NextOffset = until + 1
	}
	s.remember(env, workspace.State{Whole: len(facts) == len(n.Cells) && !g.cut})
	g.text.WriteString(out.closing(in, first, until))
	g.flush()
	return tools.Result{Content: g.blocks, Structured: out}, nil
}

// closing returns the text after the cells.
func (n Notebook) closing(in input, first, until int) string {
	switch {
	case n.TotalCells == 0:
		return "The notebook has no cells."
	case first == n.TotalCells:
		return fmt.Sprintf("The notebook has %s; cell %d is past its end.", text.Count(n.TotalCells, "cell"), in.Offset)
	case n.NextOffset > 0:
		return fmt.Sprintf("(cells %d to %d of %d are shown; continue with offset=%d)", first+1, until, n.TotalCells, n.NextOffset)
	}
	return ""
}

// A gallery is a result of texts and images that is being built.
type gallery struct {
	room   int // characters left
	bytes  int // of images, left
	images int
	given  int  // cells
	cut    bool // something of a cell was left out
	text   strings.Builder
	blocks []tools.Block
}

// flush makes a block of the text so far.
func (g *gallery) flush() {
	if t := strings.TrimSuffix(g.text.String(), "\n"); t != "" {
		g.blocks = append(g.blocks, tools.Block{Text: t})
	}
	g.text.Reset()
}

// add adds the cell at the index, unless there is no room for it after others.
func (g *gallery) add(ctx context.Context, n *ipynb.Notebook, at int) bool {
	c := n.Cells[at]
	head := fmt.Sprintf("<cell id=%q type=%q", c.ID, c.Type)
	if c.Type == "code" && n.Language != "" {
		head += fmt.Sprintf(" language=%q", n.Language)
	}
	if c.Count != "" {
		head += fmt.Sprintf(" execution_count=%q", c.Count)
	}
	source := plain(c.Source)
	outputs, images, bytes := g.outputs(c, at)
	size := utf8.RuneCountInString(head+source) + 100
	for _, o := range outputs {
		size += utf8.RuneCountInString(o.Text)
	}
	if g.given > 0 && (size > g.room || bytes > g.bytes || g.images+images > maxImages) || ctx.Err() != nil {
		return false
	}
	g.write(ctx, head+">\n", source, c, outputs, images)
	g.room -= size
	g.given++
	return true
}

// outputs returns the shown part of a cell's outputs, how many images are in it, and an upper limit
// of their bytes.
func (g *gallery) outputs(c ipynb.Cell, at int) (list []ipynb.Output, images, bytes int) {
	budget, left := maxOutput, 0
	for i, o := range c.Outputs {
		if len(list) == maxOutputs || budget <= 0 && o.Image == "" {
			left++
			continue
		}
		o.Text = g.output(o, i, at, &budget)
		list = append(list, o)
		if o.Image != "" {
			images++
			bytes += min(base64.StdEncoding.DecodedLen(len(o.Image)), image.MaxBytes)
		}
	}
	if left > 0 {
		g.cut = true
		list = append(list, ipynb.Output{Text: fmt.Sprintf("[%s of this cell left out; jq '.cells[%d].outputs' through Bash prints them]", text.Count(left, "more output"), at)})
	}
	return list, images, bytes
}

// write adds a cell to the result; only the first one may exceed the room.
func (g *gallery) write(ctx context.Context, head, source string, c ipynb.Cell, outputs []ipynb.Output, images int) {
	g.text.WriteString(head + ended(g.fit(source)) + "</cell>\n")
	if len(outputs) == 0 {
		return
	}
	fmt.Fprintf(&g.text, "<outputs of=%q>\n", c.ID)
	for _, o := range outputs {
		g.text.WriteString(ended(o.Text))
		if o.Image != "" {
			g.image(ctx, o, images)
			images--
		}
	}
	g.text.WriteString("</outputs>\n")
}

// fit cuts a source that is by itself longer than a result may be.
func (g *gallery) fit(source string) string {
	count := utf8.RuneCountInString(source)
	if g.given > 0 || count <= g.room/2 {
		return source
	}
	g.cut = true
	return fmt.Sprintf("%s... [%d characters of this cell left out; jq through Bash prints them]", beginning(source, g.room/2), count-g.room/2)
}

// output returns the text of an output, of which budget characters are left to its cell.
func (g *gallery) output(o ipynb.Output, i, cell int, budget *int) string {
	shown, between := o.Text, 0
	if len(shown) > 3*lookedAt {
		until, from := charAt(shown, lookedAt), charAt(shown, len(shown)-lookedAt)
		between = utf8.RuneCountInString(shown[until:from])
		shown = shown[:until] + shown[from:]
	}
	shown = plain(shown)
	if len(o.Other) > 0 {
		shown = fmt.Sprintf("[output of the kind %s is not shown]", beginning(strings.Join(o.Other[:min(len(o.Other), longestName)], ", "), longestName))
	}
	most := min(*budget, max(g.room/3, 100))
	count := utf8.RuneCountInString(shown)
	*budget -= min(count, most)
	if count <= most && between == 0 {
		return shown
	}
	g.cut, most = true, min(most, count)
	// The end of an output is more useful than its beginning: it has errors and results.
	return fmt.Sprintf("%s\n... [%d characters left out; jq '.cells[%d].outputs[%d]' through Bash prints them] ...\n%s", beginning(shown, most/2), count-most+between, cell, i, ending(shown, most-most/2))
}

// charAt returns where the character at that byte begins.
func charAt(s string, at int) int {
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// beginning returns the first characters of a text.
func beginning(s string, count int) string {
	for i := range s {
		if count == 0 {
			return s[:i]
		}
		count--
	}
	return s
}

// ending returns the last characters of a text.
func ending(s string, count int) string {
	at := len(s)
	for ; count > 0 && at > 0; count-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// image adds an image; left is how many of its cell are still to come, this one included.
func (g *gallery) image(ctx context.Context, o ipynb.Output, left int) {
	coded := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n", r) {
			return -1
		}
		return r
	}, o.Image)
	data, err := base64.StdEncoding.DecodeString(coded)
	var p image.Picture
	switch {
	case g.images >= maxImages:
		err = fmt.Errorf("a result holds at most %d images", maxImages)
	case err == nil:
		p, err = image.Fit(ctx, o.Media, data, g.bytes/left)
	}
	if err != nil {
		g.cut = true
		fmt.Fprintf(&g.text, "[image of the kind %s, not shown: %v]\n", o.Media, err)
		return
	}
	if said := remarks(p); said != "" {
		g.text.WriteString("[" + said + "]\n")
	}
	g.flush()
	g.images++
	g.bytes -= len(p.Data)
	g.blocks = append(g.blocks, tools.Block{Image: &tools.Blob{MediaType: p.MediaType, Data: p.Data}})
}

// escapes are terminal escapes (ECMA-48): colours, titles and links.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])`)

// plain returns text without terminal escapes.
func plain(s string) string {
	if !strings.Contains(s, "\x1b") {
		return s
	}
	return escapes.ReplaceAllString(s, "")
}

// ended returns text with a line break at its end, unless there is no text.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
