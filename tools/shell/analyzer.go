// The state of one analysis: what has been found so far, and where in the
// script it stands. It holds no rule about any construct or program.

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type analyzer struct {
	out    Analysis
	src    string // the text that positions of the current script refer to
	depth  int    // statements inside statements
	nested int    // scripts inside scripts
	scope  scope
	muted  bool // a second reading of the same text: judged, not listed

	refusals int
	moved    bool     // the shell's own working directory may have changed
	cwds     []string // where a relative path may start; nil when unknown
	pipefail bool     // the exit code may come from any stage of a pipeline
}

// scope is what the commands of a nested script inherit.
type scope struct {
	via      string
	denyOnly bool
}

var startCwd = []string{"."}

const (
	maxCwds  = 8
	maxPaths = 500 // listed; the rest makes the analysis Unlisted
)

// result closes the analysis; last is the program that decides the exit code.
func (a *analyzer) result(last string) Analysis {
	if len(a.out.Commands) > maxCommands {
		a.fail(ErrTooMany)
	}
	out := a.out
	if out.Err == nil && !a.pipefail {
		out.Last = last
	}
	out.ReadOnly = a.refusals == 0
	out.Concurrent = out.ReadOnly && !a.moved
	if out.ReadOnly && a.moved {
		out.Reason = "`cd`: the working directory changes"
	}
	out.Unlisted = out.Unlisted || out.Err != nil
	return out
}

// refuse says that the script is not read-only. The first reason is kept.
func (a *analyzer) refuse(text, why string) {
	a.refusals++
	if a.out.Reason == "" {
		a.out.Reason = "`" + shorten(text) + "`: " + why
	}
}

// hidden refuses, and says that the listed commands are not all that may run.
func (a *analyzer) hidden(text, why string) {
	a.refuse(text, why)
	a.out.Opaque = true
}

func (a *analyzer) fail(err error) {
	a.refuse("script", err.Error())
	if a.out.Err == nil {
		a.out.Err = err
	}
}

// shorten keeps a reason readable.
func shorten(s string) string {
	const limit = 100
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// source is the text of a node as written.
func (a *analyzer) source(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(a.src)) {
		return ""
	}
	return a.src[from:to]
}

// script parses and walks text in the place where the shell would run it.
func (a *analyzer) script(text string, lang syntax.LangVariant) (last string) {
	last = a.reading(text, lang)
	if other := endComments(text); other != text {
		a.hidden("#", "a backslash ends its line, so where a comment ends is not certain")
		a.reading(other, lang)
	}
	return last
}

func (a *analyzer) reading(text string, lang syntax.LangVariant) (last string) {
	stmts, err := parse(text, lang)
	outer := a.src
	a.src = text
	last = a.stmts(stmts)
	a.src = outer
	if err != nil {
		a.fail(err)
		a.out.Opaque = true
		return ""
	}
	return last
}

// isolated walks statements that a shell of their own runs: what they do to
// the working directory ends with them.
func (a *analyzer) isolated(stmts []*syntax.Stmt) (last string) {
	cwds, moved := a.cwds, a.moved
	last = a.stmts(stmts)
	a.cwds, a.moved = cwds, moved
	return last
}

// cd records that the shell may now be in dir, or still where it was.
func (a *analyzer) cd(dir Word) {
	a.moved = true
	if dir.path == "" || dir.shape != known && dir.shape != one {
		a.cwds = nil
		a.out.Unlisted = true
		return
	}
	a.read(dir.path)
	var next []string
	for _, cwd := range a.cwds {
		next = append(next, cwd)
		if to := join(cwd, dir.path); !slices.Contains(a.cwds, to) && !slices.Contains(next, to) {
			next = append(next, to)
		}
	}
	if len(next) > maxCwds {
		next = nil
	}
	a.cwds = next
}

// elsewhere: the shell may not be where the script started.
func (a *analyzer) elsewhere() bool { return len(a.cwds) != 1 || a.cwds[0] != "." }

func (a *analyzer) read(p string)  { a.list(&a.out.Reads, p) }
func (a *analyzer) write(p string) { a.list(&a.out.Writes, p) }

// list adds a path as seen from every directory that the shell may be in.
func (a *analyzer) list(to *[]string, p string) {
	if a.muted || p == "" {
		return
	}
	if a.cwds == nil && relative(p) || len(*to) >= maxPaths {
		a.out.Unlisted = true
		return
	}
	for _, cwd := range a.cwds {
		if full := join(cwd, p); !slices.Contains(*to, full) {
			*to = append(*to, full)
		}
		if !relative(p) {
			return
		}
	}
	if a.cwds == nil {
		*to = append(*to, p)
	}
}

func relative(p string) bool { return !strings.HasPrefix(p, "/") && !tildeHome(p) }

// join keeps p as written where it can. It never resolves "..", since what a
// link points to is not known here.
func join(cwd, p string) string {
	switch {
	case !relative(p) || cwd == ".":
		return p
	case p == ".":
		return cwd
	}
	return strings.TrimSuffix(cwd, "/") + "/" + strings.TrimPrefix(p, "./")
}

// base is the name that a program goes by.
func base(name string) string {
	if strings.Contains(name, "/") {
		return path.Base(name)
	}
	return name
}
