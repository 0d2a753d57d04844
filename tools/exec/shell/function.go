// Functions that only read: their body is judged where it stands, with nothing known
// of variables, and once more at each call, as if it stood there. It does not follow
// a function that may not be the one that bash finds.

package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ownFunction finds names that belong neither to a builtin nor to a program of the tables.
// Bash calls the excepted one by itself.
func ownFunction(name string) bool {
	_, program := lookup(name)
	return functionName.MatchString(name) && name != "command_not_found_handle" && !program && !inTables(name) &&
		!listed(builtins, name) && !listed(otherReaders, name)
}

var functionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// declaration judges a function. It is harmless if its name is its own and its body
// only reads, whatever variables and arguments hold; what the body reads then is
// listed for each call.
func (a *analyzer) declaration(c *syntax.FuncDecl) {
	text := a.source(c)
	if a.forks(c) {
		a.add(Command{Name: c.Name.Value, Words: []Word{{Text: text}}, Text: text, ForkBomb: true})
	}
	outer, from, refusals := a.out, len(a.out.Commands), len(a.refusals)
	early := a.early
	a.apart(func() {
		a.variables, a.stdin = a.certainFunctions(), nil
		a.inFunction++
		a.stmt(c.Body)
		a.inFunction--
	})
	a.early = early
	name := ""
	if c.Name != nil {
		name = c.Name.Value
	}
	_, again := a.functions[name]
	if a.functions == nil {
		a.functions = map[string]function{}
	}
	if c.Name != nil {
		a.functions[name] = function{body: c.Body, src: a.src}
	}
	if len(a.refusals) > refusals || again || !ownFunction(name) {
		a.mute(refusals)
		a.out.Opaque = outer.Opaque
		a.hidden(text, "a function can stand in for any program")
		a.anywhere(from)
		return
	}
	a.out.Unlisted = outer.Unlisted
	for i := range a.out.Commands[from:] {
		a.out.Commands[from+i].Unlisted, a.out.Commands[from+i].Vague = false, false
	}
	a.variables = append(slices.Clip(a.variables), &variable{name: asFunction(name), function: &function{body: c.Body, src: a.src}})
}

// asFunction is the name under which a function stands among the variables: what is
// known of both ends in the same places.
func asFunction(name string) string { return name + "()" }

// certainFunctions are the functions that bash finds by their names here.
func (a *environment) certainFunctions() []*variable {
	return slices.DeleteFunc(slices.Clone(a.variables), func(v *variable) bool { return v.function == nil })
}

// certain returns the function that a command word calls; nil: none, or that is not
// certain. unsure: there may be one.
func (a *environment) certain(word Word) (f *function, unsure bool) {
	if !word.Literal {
		return nil, false
	}
	if v := a.setter(asFunction(word.Text)); v != nil && !a.haunted {
		return v.function, false
	}
	_, unsure = a.functions[word.Text]
	return nil, unsure && ownFunction(word.Text)
}

// follow judges the call of a function as its body, with the words as its arguments.
func (a *analyzer) follow(f *function, words []Word, text string) {
	a.list(Command{Name: words[0].Text, Words: words, Text: text, Literal: true, Function: true}, func() {
		a.inherited("", text)
		if a.scope.denyOnly && !a.scope.followed {
			a.refuse(text, "what runs it is not read-only")
		}
		if a.nested++; a.nested > maxScripts {
			a.fail(ErrTooDeep)
		} else {
			src, variables := a.src, a.variables
			a.src = f.src
			a.arguments(words[1:])
			a.inFunction++
			a.stmt(f.body)
			a.inFunction--
			a.src, a.variables = src, variables
		}
		a.nested--
	})
}

// arguments makes variables of the words behind a function's name, in the place of
// those of a function around it.
func (a *environment) arguments(words []Word) {
	a.variables = slices.DeleteFunc(slices.Clone(a.variables), func(v *variable) bool {
		return v.name == "@" || strings.Trim(v.name, "0123456789") == ""
	})
	all := &variable{name: "@"}
	all.list(words)
	for i, w := range all.items {
		if w.shape > one {
			break // how many it becomes is not known
		}
		v := loopOver(strconv.Itoa(i+1), []Word{w})
		v.loop = false
		a.variables = append(a.variables, v)
	}
	a.variables = append(a.variables, all)
}
