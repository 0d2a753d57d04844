// What a word of a command may come to, as far as the script and the environment tell. It errs towards what would be
// worst, and knows no files: what a pattern of names stands for is not looked up.

package damage

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// A reading is one of the texts that a word may become.
type reading struct {
	text   string // quotes taken off, globs left in
	source string // as written
	// guessed: a variable of which nothing is known was taken for empty.
	guessed bool
	// leads: such a variable stands at the beginning, with a / behind it.
	leads bool
	// escaped: some of it is spelled in escapes.
	escaped bool
	// lost: the word may come to more than can be followed.
	lost bool
}

// maxReadings bounds how many variables with several values are combined, maxText how long what they make can get: Linux
// takes no longer path.
const (
	maxReadings = 64
	maxText     = 4096
)

// readings returns what the word may become; at least one.
func (t *scriptState) readings(w shell.Word) []reading {
	if !t.step(1) {
		return []reading{{source: w.Text, lost: true}}
	}
	if w.Literal {
		return []reading{{text: literally(w.Text), source: w.Text}}
	}
	if words := w.Spelled(); len(words) > 0 { // the shell analysis knows all that it becomes
		var found []reading
		for _, word := range words {
			for _, r := range t.readings(shell.Word{Text: word}) {
				r.source = w.Text
				found = append(found, r)
			}
		}
		return found
	}
	r := reader{scriptState: t, rest: w.Text[:min(len(w.Text), maxText)], found: []reading{{source: w.Text, lost: len(w.Text) > maxText}}}
	if strings.HasPrefix(r.rest, "~") {
		r.home()
	}
	for r.rest != "" && t.step(len(r.found)) {
		r.next()
	}
	if r.rest != "" {
		r.lose()
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

// A reader takes the source of one word apart.
type reader struct {
	*scriptState
	rest   string
	quoted bool // inside double quotes
	found  []reading
}

func (r *reader) next() {
	c := r.rest[0]
	switch {
	case c == '\\' && len(r.rest) > 1:
		r.literal(r.rest[1:2])
		r.rest = r.rest[2:]
	case c == '"':
		r.quoted = !r.quoted
		r.rest = r.rest[1:]
	case c == '\'' && !r.quoted:
		text, rest, _ := strings.Cut(r.rest[1:], "'")
		r.literal(text)
		r.rest = rest
	case c == '$' && !r.quoted && strings.HasPrefix(r.rest, "$'"):
		for i := range r.found {
			r.found[i].escaped = true
		}
		r.rest = ""
	case c == '`':
		inner, rest, _ := strings.Cut(r.rest[1:], "`")
		r.rest = rest
		r.command(inner)
	case c == '$' && len(r.rest) > 1:
		r.rest = r.rest[1:]
		r.expansion()
	default:
		end := strings.IndexAny(r.rest[1:], "\\\"'`$") + 1 // where something else may begin
		if end == 0 {
			end = len(r.rest)
		}
		r.literal(r.rest[:end])
		r.rest = r.rest[end:]
	}
}

// home takes ~ and ~NAME: another's home is as dear to him.
func (r *reader) home() {
	end := strings.IndexByte(r.rest, '/')
	if end < 0 {
		end = len(r.rest)
	}
	if name := r.rest[:end]; name == "~+" {
		r.literal(".")
	} else {
		r.literal(path.Join("/", r.Home))
	}
	r.rest = r.rest[end:]
}

// expansion takes what follows a dollar.
func (r *reader) expansion() {
	switch {
	case strings.HasPrefix(r.rest, "("):
		inner := enclosed(r.rest, '(', ')')
		r.rest = r.rest[min(len(r.rest), len(inner)+2):]
		r.command(inner)
	case strings.HasPrefix(r.rest, "{"):
		inner := enclosed(r.rest, '{', '}')
		r.rest = r.rest[min(len(r.rest), len(inner)+2):]
		name := leadingName(inner)
		r.variable(name, inner[len(name):])
	default:
		name := leadingName(r.rest)
		r.rest = r.rest[len(name):]
		r.variable(name, "")
	}
}

// variable takes one by its name and what ${NAME...} does with it: a default, or a complaint, when it is empty.
func (r *reader) variable(name, operation string) {
	values, sure := r.valuesOf(name)
	if r.scriptState.lost[name] {
		r.lose()
	}
	switch operation = strings.TrimPrefix(operation, ":"); {
	case strings.HasPrefix(operation, "?"):
		sure = true
	case strings.HasPrefix(operation, "-"), strings.HasPrefix(operation, "="):
		for _, other := range r.readings(shell.Word{Text: operation[1:]}) {
			if other.lost {
				r.lose()
			}
			if other.text != "" && !other.guessed {
				values, sure = append(slices.Clip(values), other.text), true
			}
		}
	}
	r.vary(values, sure)
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
		r.vary(values, sure || strings.HasPrefix(script, "("))
	}
}

// output returns what a script that echoes something is known to print, and whether it prints anything for sure.
func (r *reader) output(script string) (values []string, sure bool) {
	if r.depth == maxDepth {
		r.lose()
		return nil, false
	}
	r.depth++
	defer func() { r.depth-- }()
	analysis := shell.Analyze(script)
	if !r.scriptState.step(analysis.Walked) {
		r.lose()
		return nil, false
	}
	commands := outermost(analysis.Commands)
	sure = len(commands) == 1
	for i := range commands {
		if !slices.Contains(outputPrograms, path.Base(commands[i].Name)) {
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

// lose says that the word may come to more than is found.
func (r *reader) lose() { r.found[0].lost = true }

func (r *reader) literal(text string) {
	for i := range r.found {
		r.found[i].text += text
	}
}

// vary goes on with each value, and unless it is sure that there is one, with none.
func (r *reader) vary(values []string, sure bool) {
	slash := strings.HasPrefix(strings.TrimLeft(r.rest, `"`), "/")
	var found []reading
	if !r.quoted { // then each of its words is a word
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
		switch {
		case !sure:
			next := begun
			next.guessed = true
			next.leads = next.leads || slash && strings.Trim(next.text, "/") == ""
			found = append(found, next)
		case len(values) == 0:
			next := begun
			next.text += something
			found = append(found, next)
		}
	}
	if len(found) > maxReadings {
		found[0].lost = true
	}
	r.found = found[:min(len(found), maxReadings)]
}

// enclosed is what stands between an opening character, the first of text, and the one that closes it.
func enclosed(text string, open, closing byte) string {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case open:
			depth++
		case closing:
			if depth--; depth == 0 {
				return text[1:i]
			}
		}
	}
	return text[1:]
}

// leadingName is the name that a parameter begins with, or its one character.
func leadingName(text string) string {
	end := strings.IndexFunc(text, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	switch {
	case text == "":
		return ""
	case end < 0:
		return text
	case end == 0 && strings.ContainsRune("@*#?$!-", rune(text[0])):
		return text[:1]
	}
	return text[:end]
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
