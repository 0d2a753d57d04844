// Conversion of a page's tree to Markdown: its own content, as text.

package webfetch

import (
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// leastMain is how many characters a page's main element must have to represent the page. The
	// number is our own: with fewer, it is a frame that a script would fill.
	leastMain = 200
	// maxCells is how many cells a table may have, with those that fill up short rows; a larger one becomes paragraphs.
	maxCells = 50_000
)

// markdown returns the main content of a page in UTF-8 as Markdown, its title, and whether the page
// was too large. Links become absolute by the page's address. It never panics, and its cost grows
// linearly with the page's length.
func markdown(page []byte, at *url.URL) (text, title string, cut bool) {
	root, title, cut := grow(page)
	root = mainOf(root)
	prune(root)
	flatten(root)
	return render(root, at), title, cut
}

// mainOf returns the element with the page's own content: main, or the only article, or all of it.
func mainOf(root *html.Node) *html.Node {
	var main *html.Node
	articles, article := 0, (*html.Node)(nil)
	for n := range root.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case main == nil && (n.DataAtom == atom.Main || attribute(n, "role") == "main"):
			main = n
		case n.DataAtom == atom.Article:
			articles, article = articles+1, n
		}
	}
	if main != nil && enough(main) {
		return main
	}
	if articles == 1 && enough(article) {
		return article
	}
	return root
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func enough(n *html.Node) bool {
	length := 0
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			length += len(strings.TrimSpace(d.Data))
		}
		if length >= leastMain {
			return true
		}
	}
	return false
}

// all returns the nodes below root for which is returns true.
func all(root *html.Node, is func(*html.Node) bool) (found []*html.Node) {
	for n := range root.Descendants() {
		if is(n) {
			found = append(found, n)
		}
	}
	return found
}

// prune removes navigation; and, if the page does not mark its own content, what stands beside it.
func prune(root *html.Node) {
	beside := root.DataAtom == atom.Body
	for _, n := range all(root, func(n *html.Node) bool {
		return n.DataAtom == atom.Nav || beside && (n.DataAtom == atom.Footer || n.DataAtom == atom.Aside)
	}) {
		n.Parent.RemoveChild(n)
	}
}

// flatten makes paragraphs of tables that are not real tables, or too large: Markdown fills the
// cells up to a rectangle.
func flatten(root *html.Node) {
	for _, n := range all(root, func(n *html.Node) bool { return n.DataAtom == atom.Table && !fits(n) }) {
		rename(n, atom.Div)
		for d := range n.Descendants() {
			switch d.DataAtom {
			case atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Caption:
				rename(d, atom.Div)
			case atom.Td, atom.Th:
				rename(d, atom.P)
			}
		}
	}
}

func rename(n *html.Node, name atom.Atom) { n.DataAtom, n.Data = name, name.String() }

// fits reports whether the table has rows and cells, a bearable size, and no other table in it.
func fits(table *html.Node) bool {
	rows, widest := 0, 0
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Table:
			return false
		case atom.Tr:
			cells := 0
			for range n.ChildNodes() {
				cells++
			}
			rows, widest = rows+1, max(widest, cells)
		}
		if rows*widest > maxCells {
			return false
		}
	}
	return true
}

// render keeps characters that mean something in Markdown unescaped: the reader is not a program,
// and the converter's escaping takes quadratic time.
func render(root *html.Node, at *url.URL) string {
	convert := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithNewlineBehavior(table.NewlineBehaviorPreserve)),
	))
	text, err := convert.ConvertNode(root, converter.WithDomain(at.String()))
	if err != nil {
		panic("BUG: the converter is not made as it wants to be: " + err.Error())
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "\uFFFD")
}
