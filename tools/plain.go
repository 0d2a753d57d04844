// Inputs that are seen at a glance to fit a schema, as nearly all do.

package tools

import "encoding/json"

// A plainSchema is what an object needs to fit a schema of members with nothing but a type. It is safe
// for concurrent use.
type plainSchema struct {
	types    map[string]string // by the member's key; a key whose schema has more is not there
	required []string
}

// plainOf returns the plain part of a schema; nil: it has more at its top.
func plainOf(schema json.RawMessage) *plainSchema {
	var top map[string]json.RawMessage
	if json.Unmarshal(schema, &top) != nil {
		return nil
	}
	var is string
	var properties map[string]map[string]any
	p := &plainSchema{types: map[string]string{}}
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
		kind, _ := property["type"].(string)
		delete(property, "type")
		delete(property, "description")
		if len(property) == 0 || kind == "array" && len(property) == 1 && property["items"] != nil { // an empty one fits
			p.types[key] = kind
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
		if p.types[key] == "" {
			return false
		}
	}
	return PlainMembers(input, func(key, value []byte) bool {
		for _, name := range p.required {
			if name == string(key) {
				required++
			}
		}
		return typeOf(value) != "" && p.types[string(key)] == typeOf(value)
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
