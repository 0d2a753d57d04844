package webfetch

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/toold/toold/tools/tooltest"
)

var somewhere = &url.URL{Scheme: "https", Host: "x.example", Path: "/a/b"}

// hostilePages are made so that a parser, or a converter, takes the square of their length, or gives many times of it. What
// is checked is that they come to an end at all within the test's time, and how much comes of them.
func TestHostilePages(t *testing.T) {
	r := func(s string, n int) string { return strings.Repeat(s, n/tooltest.Times(5, 1)) }
	for name, page := range map[string]string{
		"elements in each other":      r("<div>", 125_000),
		"quotations in each other":    r("<blockquote>", 400) + r("x<br>", 25_000),
		"lines in quotations":         r("<blockquote>", 400) + "<pre>" + r("x\n", 100_000),
		"lists in each other":         r("<ul><li>x", 125_000),
		"formatting to be repeated":   r("<font size=1>", 400) + r("<p>x", 125_000),
		"formatting in each other":    r("<b>x", 125_000),
		"cells":                       "<table><tr>" + r("<td>x", 60_000),
		"rows of different lengths":   "<table><tr>" + r("<td>x", 10_000) + r("<tr><td>x", 25_000),
		"a wide cell":                 "<table>" + r("<tr><td>x", 20_000) + "<tr><td>" + r("wide", 125_000),
		"tables in each other":        r("<table><tr><td>", 60_000),
		"text outside of cells":       "<table>" + r("x<tr>", 60_000),
		"brackets":                    r("[", 500_000),
		"stars":                       r("*", 500_000),
		"text that is no element":     r("<", 500_000),
		"ends of nothing":             r("a</x>", 60_000),
		"scripts":                     r("a<script></script>", 40_000),
		"attributes":                  "<a " + r("b ", 200_000),
		"many words":                  r("<p>some words of a page, as many pages have them", 100_000),
		"a list that begins far away": "<ol start=999999999999999999>" + r("<li>x", 30_000),
	} {
		text, _, cut := markdown([]byte(page), somewhere)
		if len(text) > 32<<20 {
			t.Errorf("%s: %d bytes become %d", name, len(page), len(text))
		}
		if !cut && len(text) == 0 && strings.Contains(page, "words") {
			t.Errorf("%s: nothing is left, and nobody is told", name)
		}
	}
}

func TestTree(t *testing.T) {
	for page, want := range map[string]string{
		"<p>a<p>b": "a\n\nb",
		"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e":   "- a\n- b\n  \n  - c\n- d\n\ne",
		"<b>a<i>b</b>c</i>d":                        "**a*b***cd",
		"<table><tr><td><b>a<td>b</table></b>c":     "",
		"<a href=/x>y<a href=z>w</a>":               "[y](https://x.example/x)[w](https://x.example/a/z)",
		"a<x-y>b</x-y>c":                            "abc",
		"<svg><title>no</title><path/></svg>after":  "after",
		"<p style='DISPLAY : none'>no</p>yes":       "yes",
		"<img alt=a src='data:image/png;base64,A'>": "",
		"<title>no":                        "",
		"a &lt;b&gt; &amp; c\x00d":         "a &lt;b&gt; & cd",
		"<h2>a</h2>b<hr>c":                 "## a\n\nb\n\n* * *\n\nc",
		"<dl><dt>a<dd>b</dl>":              "a\n\nb",
		"<nav>menu</nav><aside>x</aside>y": "y",
	} {
		text, _, cut := markdown([]byte(page), somewhere)
		if want != "" && text != want || cut || strings.Contains(text, "no") {
			t.Errorf("%s becomes %q, want %q", page, text, want)
		}
	}
}

// Whatever a page is: a tree within its bounds, and valid text.
func FuzzMarkdown(f *testing.F) {
	for _, c := range contentCases {
		f.Add([]byte(c.body))
	}
	f.Add([]byte("<table><tr><td>a<td colspan=99999>b<tr rowspan=9><th>c</table><pre><code class=language->`````</code></pre>"))
	f.Add([]byte("<ol start=-5><li><blockquote><ul><li></ol><a href='http://[::1'>x</a><img src='%zz'><h7><br></b></table></td>"))
	f.Fuzz(func(t *testing.T, page []byte) {
		root, _, _ := grow(page)
		if d := depth(root); d > maxDepth {
			t.Errorf("the tree is %d deep", d)
		}
		text, title, _ := markdown(page, somewhere)
		if !utf8.ValidString(text) || !utf8.ValidString(title) || len(title) > 4*longestTitle {
			t.Errorf("%q, %q", title, text)
		}
		decoded, _ := decode(page, "text/html")
		if !utf8.Valid(decoded) {
			t.Errorf("%q is not UTF-8", decoded)
		}
	})
}

func depth(n *html.Node) (deepest int) {
	for c := range n.ChildNodes() {
		deepest = max(deepest, depth(c))
	}
	return deepest + 1
}
