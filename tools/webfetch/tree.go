// Parsing of HTML to a tree with bounded size, depth and shape, in linear time. It is not a
// browser's parser: the standard's error correction can turn a few bytes into a tree of gigabytes.
// The result may look different, but has the same content.

package webfetch

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The limits of a tree. They are our own: pages for people stay far below.
const (
	maxDepth   = 64      // nested elements; a deeper one is replaced by its content
	maxOpen    = 500     // open elements, including those without a place in the tree
	maxNesting = 8       // lists and quotations in each other: each adds to every line of what it holds
	maxNodes   = 250_000 // elements
	maxText    = 4 << 20 // bytes
)

// hollow elements have no end tag; those that are not kept have nothing to show.
var hollow = map[atom.Atom]bool{
	atom.Br: true, atom.Hr: true, atom.Img: true, atom.Area: false, atom.Base: false, atom.Col: false, atom.Embed: false,
	atom.Input: false, atom.Link: false, atom.Meta: false, atom.Param: false, atom.Source: false, atom.Track: false, atom.Wbr: false,
}

// unshown elements are left out with all that they hold.
var unshown = set(
	atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Math, atom.Object, atom.Iframe, atom.Audio, atom.Video,
	atom.Canvas, atom.Select, atom.Textarea, atom.Button, atom.Noembed, atom.Noframes, atom.Dialog, atom.Frameset,
)

// plainly are elements that Markdown has nothing for: they are replaced by their content.
var plainly = set(
	atom.Span, atom.Font, atom.Small, atom.Big, atom.U, atom.Tt, atom.Abbr, atom.Cite, atom.Dfn, atom.Label, atom.Time, atom.Mark, atom.Data,
	atom.Bdi, atom.Bdo, atom.Ins, atom.Nobr, atom.Center, atom.Form, atom.Fieldset, atom.Acronym, atom.Var, atom.Output, atom.Picture,
	atom.Title, atom.Ruby, atom.Slot, atom.Map, atom.Noframes,
)

// blocks end a paragraph before them.
var blocks = set(
	atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Details, atom.Dd, atom.Div, atom.Dl, atom.Dt, atom.Fieldset,
	atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hr,
	atom.Li, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Ul,
)

var nesting = set(atom.Ul, atom.Ol, atom.Blockquote, atom.Dl)

// closes maps an element to the open ones that its beginning ends, and to those at which the search
// for them stops.
var closes = map[atom.Atom]struct{ ends, stops map[atom.Atom]bool }{
	atom.Li:    {set(atom.Li), set(atom.Ul, atom.Ol, atom.Table)},
	atom.Dt:    {set(atom.Dt, atom.Dd), set(atom.Dl, atom.Table)},
	atom.Dd:    {set(atom.Dt, atom.Dd), set(atom.Dl, atom.Table)},
	atom.Td:    {set(atom.Td, atom.Th), set(atom.Tr, atom.Table)},
	atom.Th:    {set(atom.Td, atom.Th), set(atom.Tr, atom.Table)},
	atom.Tr:    {set(atom.Tr), set(atom.Table)},
	atom.Tbody: {set(atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption), set(atom.Table)},
	atom.Thead: {set(atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption), set(atom.Table)},
	atom.Tfoot: {set(atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption), set(atom.Table)},
	atom.A:     {set(atom.A), set(atom.Td, atom.Th)},
}

// walls are elements that the end tag of an inner element does not reach beyond, except for one
// that belongs to a table.
var (
	walls   = set(atom.Td, atom.Th, atom.Caption, atom.Table)
	tabular = set(atom.Table, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption)
)

func set(atoms ...atom.Atom) map[atom.Atom]bool {
	all := map[atom.Atom]bool{}
	for _, a := range atoms {
		all[a] = true
	}
	return all
}

// A grower builds a tree from tokens.
type grower struct {
	tokens  *html.Tokenizer
	titled  bool // the title is being read
	root    *html.Node
	open    []branch
	nested  int // how many of the open ones are of nesting
	nodes   int
	text    int // bytes
	title   strings.Builder
	pending strings.Builder // text that is not in a node yet
	holder  *html.Node      // of pending
}

// A branch is an element that is open.
type branch struct {
	name atom.Atom
	node *html.Node // that receives children; nil: it is not shown
}

// grow parses a page in UTF-8 to a body, and returns its title and whether the page has more than is
// in the tree. Any bytes yield a tree.
func grow(page []byte) (root *html.Node, title string, cut bool) {
	g := &grower{tokens: html.NewTokenizer(bytes.NewReader(page)), root: element(atom.Body, nil)}
	g.open = []branch{{atom.Body, g.root}}
	ended := false
	for !ended && g.nodes < maxNodes && g.text < maxText {
		switch kind := g.tokens.Next(); kind {
		case html.ErrorToken: // the end
			ended = true
		case html.TextToken:
			g.write()
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := g.tokens.TagName()
			at := atom.Lookup(name)
			g.titled = at == atom.Title && g.title.Len() == 0 && g.shown()
			g.begin(at, kind)
		case html.EndTagToken:
			g.titled = false
			name, _ := g.tokens.TagName()
			g.end(atom.Lookup(name))
		}
	}
	g.flush()
	title = strings.ToValidUTF8(g.title.String(), "\uFFFD")
	return g.root, strings.Join(strings.Fields(title), " "), !ended
}

func (g *grower) top() branch { return g.open[len(g.open)-1] }

func (g *grower) shown() bool { return g.top().node != nil }

// longestTitle is in bytes.
const longestTitle = 1000

// write adds text to the title or to the open element.
func (g *grower) write() {
	if !g.titled && (g.top().name == atom.Title || !g.shown()) {
		return
	}
	text := html.UnescapeString(string(g.tokens.Text()))
	if g.titled {
		g.title.WriteString(start(text, longestTitle))
		return
	}
	text = start(text, maxText-g.text)
	if g.text += len(text); g.text > maxText-utf8.UTFMax {
		g.text = maxText
	}
	g.put(text)
}

// put adds text to the open element. Neighbouring pieces are joined once, in flush.
func (g *grower) put(text string) {
	if in := g.top().node; in != g.holder {
		g.flush()
		g.holder = in
	}
	g.pending.WriteString(text)
}

// start returns the first bytes of a text, whole characters.
func start(text string, most int) string {
	for most < len(text) && most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:min(len(text), most)]
}

// flush makes a node of the text so far.
func (g *grower) flush() {
	if g.pending.Len() == 0 {
		return
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(g.pending.String(), "\uFFFD"), "\x00", "")
	g.pending.Reset()
	g.holder.AppendChild(&html.Node{Type: html.TextNode, Data: text})
}

// begin handles a start tag. An element that HTML does not define is replaced by its content.
func (g *grower) begin(name atom.Atom, kind html.TokenType) {
	if name == 0 || name == atom.Html || name == atom.Head || name == atom.Body || len(g.open) >= maxOpen {
		return
	}
	g.imply(name)
	attributes, hidden := g.attributes()
	closed := kind == html.SelfClosingTagToken
	kept, empty := hollow[name]
	g.nodes++ // also if it is left out: it has cost a look at the open elements
	switch {
	case empty && (!kept || !g.shown()), closed && (unshown[name] || !g.shown()):
		return
	case empty:
		g.flush()
		g.top().node.AppendChild(element(name, attributes))
		return
	}
	in := g.top().node
	switch {
	case in == nil || unshown[name] || hidden:
		in = nil
	case !plainly[name] && len(g.open) < maxDepth && (!nesting[name] || g.nested < maxNesting):
		g.flush()
		in = element(name, attributes)
		g.top().node.AppendChild(in)
	case blocks[name]:
		g.put("\n")
	}
	if nesting[name] {
		g.nested++
	}
	g.open = append(g.open, branch{name, in})
}

// keptAttributes are those that Markdown has something for.
var keptAttributes = []string{"href", "src", "alt", "title", "start", "class", "role"}

// longestAttribute is in bytes; longer ones are data, not words or URLs.
const longestAttribute = 4 << 10

// attributes returns the attributes that matter, and whether the element is hidden.
func (g *grower) attributes() (kept []html.Attribute, hidden bool) {
	for more := true; more; {
		var key, value []byte
		key, value, more = g.tokens.TagAttr()
		switch name := string(key); {
		case name == "hidden", name == "aria-hidden" && string(value) == "true":
			hidden = true
		case name == "style":
			style := strings.ReplaceAll(strings.ToLower(string(value[:min(len(value), longestAttribute)])), " ", "")
			hidden = hidden || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
		case len(value) <= longestAttribute && slices.Contains(keptAttributes, name) && !bytes.HasPrefix(value, []byte("data:")) &&
			!slices.ContainsFunc(kept, func(k html.Attribute) bool { return k.Key == name }):
			kept = append(kept, html.Attribute{Key: name, Val: strings.ToValidUTF8(string(value), "\uFFFD")})
		}
	}
	return kept, hidden
}

// imply ends what the beginning of an element ends.
func (g *grower) imply(name atom.Atom) {
	if blocks[name] {
		g.endNearest(paragraph, blocksButP)
	}
	if rule, ok := closes[name]; ok {
		g.endNearest(rule.ends, rule.stops)
	}
}

// blocksButP are where the search for a paragraph stops that a block ends.
var blocksButP = func() map[atom.Atom]bool {
	stops := set(atom.Td, atom.Th)
	for name := range blocks {
		if name != atom.P {
			stops[name] = true
		}
	}
	return stops
}()

var paragraph = set(atom.P)

// endNearest ends the innermost open element among ends, unless one of stops is between.
func (g *grower) endNearest(ends, stops map[atom.Atom]bool) {
	for i, b := range slices.Backward(g.open) {
		switch {
		case ends[b.name]:
			g.endFrom(i)
			return
		case stops[b.name]:
			return
		}
	}
}

// end ends the innermost open element of that name, if there is one.
func (g *grower) end(name atom.Atom) {
	if name == 0 || name == atom.Body {
		return
	}
	for i, b := range slices.Backward(g.open) {
		switch {
		case b.name == name && i > 0:
			g.endFrom(i)
			return
		case walls[b.name] && !tabular[name]:
			return
		}
	}
	g.nodes++ // the search was in vain, which counts as well
}

// endFrom ends the element at that place and all in it.
func (g *grower) endFrom(i int) {
	for _, b := range g.open[i:] {
		if nesting[b.name] {
			g.nested--
		}
	}
	g.open = g.open[:i]
}

func element(name atom.Atom, attributes []html.Attribute) *html.Node {
	return &html.Node{Type: html.ElementNode, DataAtom: name, Data: name.String(), Attr: attributes}
}
