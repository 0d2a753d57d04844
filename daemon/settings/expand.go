package settings

import (
	"os"
	"regexp"
	"slices"
)

// reference is ${NAME} or ${NAME:-default}. A default holds no }, so references do not nest.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:-)([^}]*))?\}`)

// expand puts the values of variables into a text. One that is not set and has no default stays as it is written, and is
// among the missing. With a default an empty one counts as not set, as in a shell.
func expand(text string, lookup func(string) (string, bool)) (expanded string, missing []string) {
	expanded = reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		value, set := lookup(parts[1])
		switch {
		case parts[2] != "" && value == "":
			return parts[3]
		case set:
			return value
		}
		if !slices.Contains(missing, parts[1]) {
			missing = append(missing, parts[1])
		}
		return found
	})
	return expanded, missing
}

// expanded returns a text of a settings file with the values of the daemon's own variables. A session's text stays as it is
// written: the client, perhaps on another machine, could read the daemon's secrets in it.
func (e *entry) expanded(line int, text string) string {
	found := reference.FindAllStringSubmatch(text, -1)
	if e.reader.place.level == session {
		if found != nil {
			e.reader.warn(line, "%s names the variable %s; of the daemon's variables the session's own settings get none, and ${%s} stays as it is written", e.name, shortened(found[0][1]), shortened(found[0][1]))
		}
		return text
	}
	for _, variable := range found {
		e.references = append(e.references, variable[1])
	}
	value, missing := expand(text, os.LookupEnv)
	for _, name := range missing {
		e.reader.warn(line, "%s names the variable %s, which is not set; ${%s} stays as it is written", e.name, shortened(name), shortened(name))
	}
	return value
}
