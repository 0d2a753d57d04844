package settings

import (
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
}

func (r *reader) entry(name string) entry { return entry{reader: r, name: shortened(name)} }

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

// known returns the members of the entry that mean something, and reports the others.
func (e *entry) known(n *node, keys []string) []member {
	if n.kind != object {
		e.void = true
	}
	var out []member
	for _, m := range e.reader.members(n, e.name+".") {
		if slices.Contains(keys, m.key) {
			out = append(out, m)
		} else {
			e.reader.unknown(m, e.name+".", keys)
		}
	}
	return out
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
	d, ok := durationOf(&m.value)
	if !ok || d <= 0 || m.value.kind != text {
		e.reader.wrong(&m.value, e.name+"."+m.key, `a text like "15m"`)
		return 0
	}
	return d
}
