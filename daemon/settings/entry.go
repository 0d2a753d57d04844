package settings

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An entry is an MCP server, a language server or a program tool while it is read. One of which a part that decides what runs
// makes no sense is left out as a whole: half of it would be another one.
type entry struct {
	reader *reader
	name   string // as a path into a settings file
	void   bool   // it has no effect

	references []string // names of the daemon's variables whose values it gets
}

func (r *reader) entry(name string) *entry { return &entry{reader: r, name: shortened(name)} }

// fail reports a part without which the entry has no effect.
func (e *entry) fail(n *node, key, expected string) {
	e.void = true
	e.reader.warn(n.line, "%s.%s is %s, but must be %s; the whole entry has no effect", e.name, key, n, expected)
}

// lacks reports what is wrong with the entry as a whole.
func (e *entry) lacks(line int, why string) {
	e.void = true
	e.reader.warn(line, "%s %s; it has no effect", e.name, why)
}

// fields reads the members of the entry, each with the function of its name, and reports the others.
func (e *entry) fields(n *node, read map[string]func(member)) {
	if n.kind != object {
		e.void = true
	}
	for _, m := range e.reader.members(n, e.name+".") {
		if field, known := read[m.key]; known {
			field(m)
		} else {
			e.reader.unknown(m, e.name+".", slices.Collect(maps.Keys(read)))
		}
	}
}

// word reads a text that is not empty.
func (e *entry) word(m member) string {
	if m.value.kind != text || m.value.word == "" || strings.Contains(m.value.word, "\x00") {
		e.fail(&m.value, m.key, "a text that is not empty")
		return ""
	}
	return m.value.word
}

// words reads a list of texts.
func (e *entry) words(m member) []string {
	if m.value.kind != list {
		e.fail(&m.value, m.key, "a list of texts")
		return nil
	}
	out := []string{}
	for i := range m.value.items {
		item := &m.value.items[i]
		if item.kind != text || strings.Contains(item.word, "\x00") {
			e.fail(item, m.key+"["+strconv.Itoa(i)+"]", "a text")
			return nil
		}
		out = append(out, item.word)
	}
	return out
}

// command reads a program with its arguments.
func (e *entry) command(m member) []string {
	words := e.words(m)
	if !e.void && (len(words) == 0 || words[0] == "") {
		e.fail(&m.value, m.key, "a list of a program and its arguments")
	}
	return words
}

// truth reads true or false. Another value has no effect, and the entry has.
func (e *entry) truth(m member) bool {
	on, ok := e.reader.flag(&m.value, e.name+"."+m.key)
	return on && ok
}

// ttl reads how long a result may be kept. A number would mean milliseconds to one reader and seconds to another.
func (e *entry) ttl(m member) time.Duration {
	return e.reader.duration(&m.value, e.name+"."+m.key, `a text like "15m"`, math.MaxInt64, text)
}

// duration reads a duration above 0 of one of the kinds. most is all that one gets.
func (r *reader) duration(n *node, name, expected string, most time.Duration, kinds ...kind) time.Duration {
	d, ok := durationOf(n)
	if !ok || d <= 0 || !slices.Contains(kinds, n.kind) {
		r.wrong(n, name, expected)
		return 0
	}
	if d > most {
		r.warn(n.line, "%s is %v, but at most %v; that is what it gets", name, d, most)
	}
	return min(d, most)
}
