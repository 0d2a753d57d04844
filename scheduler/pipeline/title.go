package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/text/redact"
)

// What a call is called for users: its tool, and what it is about.

// Title returns a name of the call for users, in one line. Only the session's methods may call it,
// while they are called with c.
func (c *Call) Title() string { return c.parsed.title }

// about returns what the call is about, as far as its input or its effects show it.
func (p *parsed) about() string {
	if text := cmp.Or(about(p.input), p.writes()); text != "" {
		return text
	}
	return members(p.input)
}

// subjects are the fields that tools use for what a call is about, the most telling first.
var subjects = [...]string{"command", "file_path", "notebook_path", "pattern", "path", "url", "query", "bash_id", "shell_id"}

// about returns the part of an input that shows what the call is about: the first of the subjects
// that it has. Their names count as they are spelled, since the title is what a question shows.
func about(input string) string {
	if !slices.ContainsFunc(subjects[:], func(name string) bool { return strings.Contains(input, name) }) && !strings.Contains(input, `\`) {
		return "" // without a backslash, which may spell a name in another way, none can be there
	}
	var texts [len(subjects)]string
	if tools.PlainMembers([]byte(input), func(key, value []byte) bool {
		if i := slices.Index(subjects[:], string(key)); i >= 0 && value[0] == '"' {
			texts[i] = string(value[1 : len(value)-1])
		}
		return true
	}) {
		return leading(texts[:])
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return ""
	}
	texts = [len(subjects)]string{}
	for i, name := range subjects {
		if value, is := fields[name]; !is || json.Unmarshal(value, &texts[i]) != nil {
			texts[i] = ""
		}
	}
	return leading(texts[:])
}

// leading returns the first text of the subjects, with the path behind a command that is of a file.
func leading(texts []string) string {
	first, path := cmp.Or(texts...), texts[slices.Index(subjects[:], "path")]
	if first != path && first == texts[slices.Index(subjects[:], "command")] {
		return strings.TrimSuffix(first+" "+path, " ")
	}
	return first
}

var secrets *redact.Redactor // finds those of known forms, and those that a name says

// members returns the texts, numbers and truth values of an input with their names, in order: what a call
// of a tool is about whose fields are not known, such as one of a client or an MCP server.
func members(input string) string {
	decoder := json.NewDecoder(strings.NewReader(input))
	var texts []string
	for _, err := decoder.Token(); err == nil && decoder.More(); {
		var value json.RawMessage
		var name json.Token
		if name, err = decoder.Token(); err != nil {
			break
		}
		if err = decoder.Decode(&value); err != nil || strings.ContainsRune("{[n", rune(value[0])) {
			continue
		}
		text := string(value)
		if value[0] == '"' {
			err = json.Unmarshal(value, &text)
		}
		texts = append(texts, fmt.Sprintf("%s: %s", name, secrets.Named(fmt.Sprint(name), text)))
	}
	return strings.Join(texts, ", ")
}

// writes returns the names of the files that the action declares it writes.
func (p *parsed) writes() string {
	var names []string
	for _, path := range p.effects.Writes {
		names = append(names, path.Name)
	}
	return strings.Join(names, " ")
}
