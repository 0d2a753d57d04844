// What a word of a command may come to, by the script and the environment. It errs towards what
// would be worst. What a pattern of names stands for is not looked up.

package damage

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// A reading is one of the texts that a word may become.
type reading struct {
	text   string // quotes taken off, globs left in
	source string // as written
	// guessed: an unknown variable was taken for empty.
	guessed bool
	// leads: such a variable stands at the beginning, with a / behind it.
	leads bool
	// escaped: some of it is spelled in escapes.
	escaped bool
	// lost: the word may come to more than can be followed.
	lost bool
}

// maxReadings bounds how many variables with several values are combined, maxText how long what
// they make can get: Linux takes no longer path.
const (
	maxReadings = 64
	maxText     = 4096
)

// readings returns what the word may become; at least one.
func (t *scriptState) readings(w shell.Word) (found []reading) {
	spelled := w.Spelled()
	switch {
	case !t.step(1), !w.Literal && len(spelled) == 0 && len(w.Text) > maxText:
		return []reading{{source: w.Text, lost: true}}
	case w.Literal:
		return []reading{{text: literally(w.Text), source: w.Text}}
	case len(spelled) == 0:
		return t.read(w.Text, w.Parts())
	}
	for _, word := range spelled { // the shell analysis knows all that it becomes
		for _, r := range t.readings(shell.Word{Text: word}) {
			r.source = w.Text
			found = append(found, r)
		}
	}
	return found
}

// read returns what parts may become together.
func (t *scriptState) read(source string, parts []shell.Part) []reading {
	r := reader{scriptState: t, found: []reading{{source: source}}}
	for i := range parts {
		if !t.step(len(r.found)) {
			r.lose()
			break
		}
		r.rest = parts[i:]
		r.part(&parts[i])
	}
	return r.found
}

// literally takes their meaning from the characters that have one only without quotes.
func literally(text string) string {
	if strings.HasPrefix(text, "~") {
		return "./" + text
	}
	return globless.Replace(text)
}

// something stands for a part of a name that is not known, but is not empty.
const something = "…"

var globless = strings.NewReplacer("*", something, "?", something, "[", something)

// A reader goes over the parts of one word.
type reader struct {
	*scriptState
	rest  []shell.Part // the present one, and those behind it
	found []reading
}

func (r *reader) part(p *shell.Part) {
	switch p.Kind {
	case shell.Plain:
		r.literal(p.Text)
	case shell.Escapes:
		for i := range r.found {
			r.found[i].escaped = true
		}
	case shell.Home:
		if p.Text == "~+" {
			r.literal(".")
		} else { // another's home is as dear to them
			r.literal(path.Join("/", r.Home))
		}
	case shell.Parameter:
		r.variable(p)
	case shell.Substitution:
		r.command(p.Text)
	case shell.Number:
		r.vary(nil, true)
	}
}

// variable takes one by its name and what stands for it when it is empty.
func (r *reader) variable(p *shell.Part) {
	values, sure := r.valuesOf(p.Text)
	if r.scriptState.lost[p.Text] {
		r.lose()
	}
	for _, other := range r.read("", p.Or) {
		if other.lost {
			r.lose()
		}
		if other.text != "" && !other.guessed {
			values, sure = append(slices.Clip(values), other.text), true
		}
	}
	r.vary(values, sure || p.Required)
}

// command takes what a substitution prints.
func (r *reader) command(script string) {
	switch strings.TrimSpace(script) {
	case "pwd":
		r.literal(".")
	case "git rev-parse --show-toplevel":
		r.vary(append([]string{"."}, r.Roots...), true)
	default:
		values, sure := r.output(script)
		r.vary(values, sure)
	}
}

// output returns what a script that echoes something is known to print, and whether it prints
// anything for sure.
func (r *reader) output(script string) (values []string, sure bool) {
	r.depth++
	defer func() { r.depth-- }()
	analysis := shell.Analysis{}
	if r.depth <= maxDepth {
		analysis = shell.Analyze(script)
	}
	if r.depth > maxDepth || !r.scriptState.step(analysis.Walked) {
		r.lose()
		return nil, false
	}
	commands := outermost(analysis.Commands)
	sure = len(commands) == 1
	for i := range commands {
		if !among(outputPrograms, path.Base(commands[i].Name)) {
			continue
		}
		for _, printed := range r.prints(&commands[i]) {
			if printed.lost || printed.escaped {
				r.lose()
			}
			if sure = sure && !printed.guessed; !printed.guessed {
				values = append(values, printed.text)
			}
		}
	}
	return values, sure && len(values) > 0
}

// lose records that the word may come to more than is found.
func (r *reader) lose() { r.found[0].lost = true }

func (r *reader) literal(text string) {
	for i := range r.found {
		r.found[i].text += text
	}
}

// vary goes on with each value, and unless it is sure that there is one, with none.
func (r *reader) vary(values []string, sure bool) {
	slash := len(r.rest) > 1 && r.rest[1].Kind == shell.Plain && strings.HasPrefix(r.rest[1].Text, "/")
	var found []reading
	if !r.rest[0].Quoted { // then each of its words is a word
		values = strings.Fields(strings.Join(values, " "))
	}
	for _, begun := range r.found {
		for _, value := range values {
			next := begun
			next.text += value
			if len(next.text) > maxText {
				next.text, next.lost = next.text[:maxText], true
			}
			found = append(found, next)
		}
		if !sure {
			begun.guessed = true
			begun.leads = begun.leads || slash && strings.Trim(begun.text, "/") == ""
			found = append(found, begun)
		} else if len(values) == 0 {
			begun.text += something
			found = append(found, begun)
		}
	}
	if len(found) > maxReadings {
		found[0].lost = true
	}
	r.found = found[:min(len(found), maxReadings)]
}

// everythingIn takes globs that match all there is off the end of a path.
func everythingIn(name string) (dir string, all bool) {
	for isEverything(path.Base(name)) {
		name, all = path.Dir(name), true
	}
	return name, all
}

// isEverything reports whether a glob takes in all there is, or all that is hidden.
func isEverything(glob string) bool {
	if !strings.ContainsAny(glob, "*?[") {
		return false
	}
	for {
		before, class, found := strings.Cut(glob, "[")
		_, after, closed := strings.Cut(class, "]")
		if !found || !closed {
			return strings.Trim(glob, "*?.") == ""
		}
		glob = before + "?" + after
	}
}
