//go:build !no_lsp

// Which diagnostics are new. What was there before counts as the same when it says the same about the same line, wherever
// the edit has moved that line. It does not know servers.

package language

import (
	"cmp"
	"slices"
	"strings"
)

func (c content) empty() bool { return len(c) == 0 || len(c) == 1 && c[0] == "" }

// movement returns where the lines of a text have gone in another one that differs from it in one region: what stands before
// that stays, what stands behind moves along, and what stood in it is nowhere, -1. Lines count from 0.
func movement(before, after content) func(line int) int {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	return func(line int) int {
		switch {
		case line < head:
			return line
		case line >= len(before)-tail:
			return line + len(after) - len(before)
		}
		return -1
	}
}

// added returns what of now has nothing to match it in was: first by line and words, then what is left by words alone.
func added(was, now []wireDiagnostic, moved func(line int) int) []wireDiagnostic {
	type saying struct {
		line, severity int
		message        string
	}
	exactly := func(d wireDiagnostic, line int) saying { return saying{line, d.Severity, d.Message} }
	count := map[saying]int{}
	for _, d := range was {
		count[exactly(d, moved(d.Range.Start.Line))]++
	}
	var left []wireDiagnostic
	for _, d := range now {
		if s := exactly(d, d.Range.Start.Line); count[s] > 0 {
			count[s]--
		} else {
			left = append(left, d)
		}
	}
	elsewhere := map[saying]int{}
	for s, n := range count {
		s.line = 0
		elsewhere[s] += n
	}
	return slices.DeleteFunc(left, func(d wireDiagnostic) bool {
		s := exactly(d, 0)
		elsewhere[s]--
		return elsewhere[s] >= 0
	})
}

// order puts those of one file first, and the rest by path; in each the worst first, then by place.
func order(list []Diagnostic, first string) {
	far := func(d Diagnostic) int {
		if d.Path == first {
			return 0
		}
		return 1
	}
	worst := func(d Diagnostic) int { return slices.Index(severities, d.Severity) }
	slices.SortStableFunc(list, func(x, y Diagnostic) int {
		return cmp.Or(cmp.Compare(far(x), far(y)), strings.Compare(x.Path, y.Path), cmp.Compare(worst(x), worst(y)),
			cmp.Compare(x.Range.Start.Line, y.Range.Start.Line), cmp.Compare(x.Range.Start.Character, y.Range.Start.Character))
	})
}
