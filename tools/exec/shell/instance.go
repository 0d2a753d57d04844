// What a command becomes for values that are known of the variables in it: a
// loop's items, positional parameters, arrays. Each such command is listed for
// deny and ask rules, beside the one as written.

package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxValues    = 16  // of one variable, and of all of a command together
	maxInstances = 100 // commands and calls of functions, in one script
)

// valuesOf are the items of a loop as far as they are literal, patterns of file
// names as written.
func valuesOf(items []Word) (values []string) {
	for _, w := range items {
		if w.Literal || w.shape == files || w.shape == known {
			values = append(values, w.Text)
		}
	}
	return values[:min(len(values), maxValues)]
}

// positional makes variables of the words after set -- or a function's name.
func (a *environment) positional(args []Word) {
	all := &variable{name: "@"}
	a.variables = append(slices.Clip(a.variables), all)
	for i, w := range args[:min(len(args), maxValues)] {
		all.elements = append(all.elements, w.Text)
		if w.Literal {
			a.variables = append(a.variables, &variable{name: strconv.Itoa(i + 1), values: []string{w.Text}})
		}
	}
}

// elementsOf are the literal elements of an array.
func (a *analyzer) elementsOf(as *syntax.Assign) (elements []string) {
	if as.Array == nil {
		return nil
	}
	for _, e := range as.Array.Elems {
		if e.Value == nil || len(elements) == maxValues {
			break
		}
		text, _ := a.wordText(e.Value)
		elements = append(elements, text)
	}
	return elements
}

// instances are what a command becomes.
func (a *analyzer) instances(c *syntax.CallExpr) (all [][]Word) {
	names := map[string][]string{}
	known := false
	for _, w := range c.Args {
		for _, p := range params(w) {
			v, elements := a.held(p)
			known = known || v != nil && (len(elements) > 0 || len(v.values) > 0)
			if v != nil && len(v.values) > 0 {
				names[v.name] = v.values
			}
		}
	}
	if !known {
		return nil
	}
	for _, choice := range choices(names) {
		if a.instanced++; a.instanced > maxInstances {
			return all
		}
		var words []Word
		for _, w := range c.Args {
			words = append(words, a.chosen(w, choice)...)
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// params are the expansions of variables in a word.
func params(w *syntax.Word) (found []*syntax.ParamExp) {
	for part := range allParts(w) {
		if p, ok := part.(*syntax.ParamExp); ok {
			found = append(found, p)
		}
	}
	return found
}

// held is the variable that an expansion becomes the value of, or of which it
// becomes all elements. Something else may have set it since: it is listed what
// may be.
func (a *environment) held(p *syntax.ParamExp) (v *variable, elements []string) {
	plain := *p
	plain.Index = nil
	if name := simpleName(&plain); name != "" {
		if name == "*" {
			name = "@"
		}
		v = a.setter(name)
	}
	switch {
	case v == nil:
		return nil, nil
	case v.name == "@" || p.Index != nil:
		return v, v.elements
	case len(v.elements) > 0:
		return v, v.elements[:1]
	}
	return v, nil
}

// choices are the ways to choose a value for each name.
func choices(names map[string][]string) (all []map[string]string) {
	all = []map[string]string{{}}
	for _, name := range slices.Sorted(maps.Keys(names)) { // the same order every time
		var next []map[string]string
		for _, c := range all {
			for _, value := range names[name] {
				if len(next) < maxValues {
					with := maps.Clone(c)
					with[name] = value
					next = append(next, with)
				}
			}
		}
		all = next
	}
	return all
}

// chosen is what a word becomes with these values; as it is when other things
// take part in it.
func (a *analyzer) chosen(w *syntax.Word, choice map[string]string) []Word {
	var b strings.Builder
	split := false
	for part, quoted := range allParts(w) {
		text, several, ok := a.partText(part, choice)
		if !ok {
			return []Word{{Text: a.source(w), shape: many}}
		}
		split = split || several || !quoted && strings.Contains(text, " ")
		b.WriteString(text)
	}
	if !split {
		return []Word{patternWord(b.String())}
	}
	return literalWords(b.String())
}

// patternWord is a word as rules see it, though it may be a pattern of file names.
func patternWord(s string) Word {
	w := literalWord(s)
	if i := strings.IndexAny(s, "*?["); i >= 0 {
		t := text{prefix: s[:i], rest: s[i:], glob: true}
		w.path, w.below = t.path(), true
	}
	return w
}

// partText is what one part becomes; several: it can be more than one word.
func (a *environment) partText(part syntax.WordPart, choice map[string]string) (text string, several, ok bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return p.Value, false, !strings.Contains(p.Value, `\`)
	case *syntax.SglQuoted:
		return p.Value, false, !p.Dollar
	case *syntax.ParamExp:
		v, elements := a.held(p)
		switch {
		case v == nil:
		case len(elements) > 0:
			return strings.Join(elements, " "), true, true
		case choice[v.name] != "":
			return choice[v.name], false, true
		}
	}
	return "", false, false
}

// A function is where its body stands.
type function struct {
	body *syntax.Stmt
	src  string
}

// callFunction lists what a function does with these arguments.
func (a *analyzer) callFunction(words []Word) {
	f, ok := a.functions[words[0].Text]
	if !ok || !words[0].Literal || a.instanced >= maxInstances {
		return
	}
	a.instanced++
	delete(a.functions, words[0].Text) // what calls itself is not followed
	a.apart(func() {
		a.enter(words[0].Text)
		a.scope.asDenied()
		a.src = f.src
		a.positional(words[1:])
		a.stmt(f.body)
	})
	a.functions[words[0].Text] = f
}
