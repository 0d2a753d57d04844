// Functions that start copies of themselves without end, one function at a time,
// whether or not anything calls it.

package shell

import "mvdan.cc/sh/v3/syntax"

// forks reports whether a function calls itself in the background, or on both
// sides of a pipe. In a text over its bound, where looking closer could take
// long, any call of itself counts.
func (a *origin) forks(f *syntax.FuncDecl) bool {
	if f.Name == nil || !calls(f.Body, f.Name.Value) {
		return false
	}
	found := len(a.src) > maxLength
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || (n.Background || n.Coprocess) && calls(n, f.Name.Value)
		case *syntax.BinaryCmd:
			piped := n.Op == syntax.Pipe || n.Op == syntax.PipeAll
			found = found || piped && calls(n.X, f.Name.Value) && calls(n.Y, f.Name.Value)
		}
		return !found
	})
	return found
}

// calls reports whether a command called name stands somewhere in a node.
func calls(in syntax.Node, name string) (found bool) {
	syntax.Walk(in, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
			found = true
		}
		return !found
	})
	return found
}
