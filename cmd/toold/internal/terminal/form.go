// What a tool itself wants to know, asked at the terminal field by field.

package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A field is one thing that a form asks for.
type field struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

// form asks whether the user answers, and then for each field; nil when ctx ended first.
func (p *Prompter) form(ctx context.Context, q *tooldv1.Question) *tooldv1.Answer {
	prompt := p.ink.Strong.Render("Answer it?") + " [y]es, [n]o (n REASON says why): "
	return p.decide(ctx, q, prompt, func(word, _ string) *tooldv1.Answer {
		if word == "y" || word == "yes" {
			return p.fill(ctx, q)
		}
		return nil
	})
}

// fill asks for each field of the form, those that have to be given first.
func (p *Prompter) fill(ctx context.Context, q *tooldv1.Question) *tooldv1.Answer {
	var schema struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	answer := reply(q, tooldv1.Decision_DECISION_ALLOW, "")
	if json.Unmarshal([]byte(q.GetFormSchemaJson()), &schema) != nil || len(schema.Properties) == 0 {
		return answer
	}
	required := func(name string) bool { return slices.Contains(schema.Required, name) }
	names := slices.Sorted(maps.Keys(schema.Properties))
	names = slices.Concat(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !required(name) }), slices.DeleteFunc(names, required))
	values := map[string]any{}
	for _, name := range names {
		value, given, err := p.value(ctx, name, schema.Properties[name], required(name))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return noAnswer(q)
		case given:
			values[name] = value
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return reply(q, tooldv1.Decision_DECISION_DENY, "The user's answer is no JSON.")
	}
	answer.UpdatedInputJson = string(text)
	return answer
}

// value asks for one field until what is typed fits; nothing leaves out what need not be given.
func (p *Prompter) value(ctx context.Context, name string, f field, required bool) (value any, given bool, err error) {
	hint := cmp.Or(f.Description, f.Title, f.Type)
	if len(f.Enum) > 0 {
		hint += fmt.Sprintf(", one of %v", f.Enum)
	}
	if !required {
		hint += ", or nothing"
	}
	for {
		p.tell(fmt.Sprintf("  %s (%s): ", VisibleLine(name), VisibleLine(hint)))
		line, err := p.line()
		if err != nil || ctx.Err() != nil {
			return nil, false, cmp.Or(err, ctx.Err())
		}
		text := strings.TrimRight(line, "\r\n")
		if text == "" && !required {
			return nil, false, nil
		}
		if value, ok := f.read(text); ok {
			return value, true, nil
		}
		p.tell("  That is no " + VisibleLine(cmp.Or(f.Type, "value")) + ".\n")
	}
}

// read makes a value of the field's type of what was typed.
func (f field) read(text string) (value any, ok bool) {
	var err error
	switch f.Type {
	case "boolean":
		word := strings.ToLower(strings.TrimSpace(text))
		value, ok = map[string]bool{"y": true, "yes": true, "true": true, "n": false, "no": false, "false": false}[word]
		if !ok {
			return nil, false
		}
	case "integer":
		value, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	case "number":
		value, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	default:
		value = text
	}
	known := len(f.Enum) == 0 || slices.ContainsFunc(f.Enum, func(e any) bool { return fmt.Sprint(e) == fmt.Sprint(value) })
	return value, err == nil && known
}
