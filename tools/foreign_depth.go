// Finds out how deep an input may be before checking it against a foreign schema becomes costly. The validator looks at each
// value once for each way in which the schema leads there: two ways at each level are 2^n ways n levels down. It knows schemas
// and numbers alone.

package tools

import (
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// farthest is how deep is looked: a schema that is cheap there is cheap.
	farthest = 64
	// maxSteps is how much looking there is at one schema.
	maxSteps = 200_000
)

// A pather counts the ways to a value, along the worst path.
type pather struct {
	known map[step]int
	steps int
}

// A step is a schema with so many levels below it.
type step struct {
	schema *jsonschema.Schema
	levels int
}

// depth is how deep an input may be; 0: as deep as it likes.
func (p *pather) depth(root *jsonschema.Schema) int {
	for levels := 1; levels <= farthest; levels++ {
		if p.ways(root, levels) > maxPath || p.steps > maxSteps {
			return max(1, levels-1)
		}
	}
	return 0
}

// ways is how often parts of a schema look at a value and at what it encloses, along the worst path; at most a little over
// maxPath.
func (p *pather) ways(s *jsonschema.Schema, levels int) int {
	at := step{s, levels}
	if known, ok := p.known[at]; ok {
		return known
	}
	p.known[at] = 0
	all := closure(s, nil, map[*jsonschema.Schema]bool{})
	if p.steps += len(all); p.steps > maxSteps || levels == 0 {
		p.known[at] = len(all)
		return len(all)
	}
	total, worst, slots := len(all), 0, map[string]int{}
	for _, part := range all {
		one, every := innerValues(part)
		for _, inner := range every {
			total = min(total+p.ways(inner, levels-1), maxPath+1)
		}
		for _, inner := range one {
			slots[inner.name] = min(slots[inner.name]+p.ways(inner.schema, levels-1), maxPath+1)
			worst = max(worst, slots[inner.name])
		}
	}
	p.known[at] = min(total+worst, maxPath+1)
	return p.known[at]
}

// closure gives the schema and all that the same value is held against, each as often as it is.
func closure(s *jsonschema.Schema, all []*jsonschema.Schema, above map[*jsonschema.Schema]bool) []*jsonschema.Schema {
	if s == nil || above[s] || len(all) > maxBranches {
		return all
	}
	above[s] = true
	all = append(all, s)
	for _, part := range sameValue(s) {
		all = closure(part, all, above)
	}
	above[s] = false
	return all
}

// A named schema is for the values of one name, or at one place of a list.
type named struct {
	name   string
	schema *jsonschema.Schema
}

// innerValues are the parts that values inside are held against: those of one place, and those that count at any.
func innerValues(s *jsonschema.Schema) (at []named, every []*jsonschema.Schema) {
	for name, part := range s.Properties {
		at = append(at, named{name, part})
	}
	for i, part := range s.PrefixItems {
		at = append(at, named{strconv.Itoa(i), part})
	}
	for _, part := range s.PatternProperties {
		every = append(every, part)
	}
	for _, part := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems} {
		if part != nil {
			every = append(every, part)
		}
	}
	for _, part := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch part := part.(type) {
		case *jsonschema.Schema:
			every = append(every, part)
		case []*jsonschema.Schema:
			every = append(every, part...)
		}
	}
	return at, every
}

// nesting is how many values enclose the innermost one.
func nesting(value any) (depth int) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			depth = max(depth, nesting(inner))
		}
		return depth + 1
	case []any:
		for _, inner := range value {
			depth = max(depth, nesting(inner))
		}
		return depth + 1
	}
	return 0
}
