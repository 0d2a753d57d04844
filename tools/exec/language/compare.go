//go:build !no_lsp

// Diagnostics that are new. An old diagnostic and a new one are equal if they have the same message
// on the same line, wherever the edit has moved that line.

package language

import (
	"cmp"
	"slices"
	"strings"
)

// movement returns a function that maps line numbers of a text to those in another one that differs
// from it in one region. Lines before the region stay, lines after it move, and lines in it are
// mapped to -1. Lines count from 0.
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

// added returns the diagnostics of now without a match in was: first by line and message, then the
// rest by message.
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

// order sorts diagnostics: those of the file first comes first, the others by path; within a file
// by severity, then by position.
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
