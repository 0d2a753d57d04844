// Inputs that are seen at a glance to fit a schema, as nearly all do.

package tools

import (
	"encoding/json"
	"slices"
	"strconv"
)

// A plainSchema is what an object needs to fit a schema of members with a type, listed texts or bounds. It
// is safe for concurrent use.
type plainSchema struct {
	members  map[string]plainMember // by key; a key whose schema has more is not there
	required []string
}

type plainMember struct {
	Type    string   `json:"type"`
	Enum    []string `json:"enum"`    // nil: any text
	Minimum *int64   `json:"minimum"` // nil: none
	Maximum *int64   `json:"maximum"`
}

// accepts reports whether a value in canonical form fits. It may report false for one that does.
func (m plainMember) accepts(value []byte) bool {
	if is := typeOf(value); is == "" || is != m.Type {
		return false
	}
	if m.Enum != nil {
		return slices.Contains(m.Enum, string(value[1:len(value)-1]))
	}
	if m.Minimum == nil && m.Maximum == nil {
		return true
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && (m.Minimum == nil || n >= *m.Minimum) && (m.Maximum == nil || n <= *m.Maximum)
}

// plainKeywords are the keywords that a plainMember checks, and those that allow everything.
var plainKeywords = []string{"type", "enum", "minimum", "maximum", "description", "default"}

// plainOf returns the plain part of a schema; nil: it has more at its top.
func plainOf(schema json.RawMessage) *plainSchema {
	var top map[string]json.RawMessage
	if json.Unmarshal(schema, &top) != nil {
		return nil
	}
	var is string
	var properties map[string]json.RawMessage
	p := &plainSchema{members: map[string]plainMember{}}
	for keyword, text := range top {
		err := error(nil)
		switch keyword {
		case "$schema", "title", "description", "additionalProperties": // members that are not listed are not accepted
		case "type":
			err = json.Unmarshal(text, &is)
		case "properties":
			err = json.Unmarshal(text, &properties)
		case "required":
			err = json.Unmarshal(text, &p.required)
		default:
			return nil
		}
		if err != nil {
			return nil
		}
	}
	for key, property := range properties {
		var m plainMember
		var keywords map[string]any
		if json.Unmarshal(property, &m) != nil || json.Unmarshal(property, &keywords) != nil {
			continue
		}
		for _, keyword := range plainKeywords {
			delete(keywords, keyword)
		}
		isText := m.Enum == nil || m.Type == "string"
		isNumber := m.Minimum == nil && m.Maximum == nil || m.Type == "integer"
		isPlain := len(keywords) == 0 || m.Type == "array" && len(keywords) == 1 && keywords["items"] != nil // an empty one fits
		if isText && isNumber && isPlain {
			p.members[key] = m
		}
	}
	if is != "object" {
		return nil
	}
	return p
}

// accepts reports whether the input fits and is in canonical form. It may report false for one that
// does.
func (p *plainSchema) accepts(input []byte) bool {
	if p == nil {
		return false
	}
	required := 0
	for _, key := range p.required {
		if p.members[key].Type == "" {
			return false
		}
	}
	return PlainMembers(input, func(key, value []byte) bool {
		for _, name := range p.required {
			if name == string(key) {
				required++
			}
		}
		return p.members[string(key)].accepts(value)
	}) && required == len(p.required)
}

// typeOf returns the type of a plain value as schemas name it; empty: it may be of several.
func typeOf(value []byte) string {
	switch value[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case '[':
		return "array"
	case 'n', '{':
		return ""
	}
	return "integer"
}
