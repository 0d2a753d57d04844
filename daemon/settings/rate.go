package settings

import (
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/permission"
)

// A Rate is how often calls of a subject may begin.
type Rate struct {
	Subject string // the name of a tool, mcp__ and a server's, or a host in lower case
	Events  int    // that many
	Per     time.Duration
	Origin  permission.Origin

	text string // as written
}

const mostEvents = 1_000_000

// rateUnits are the names of spans.
var rateUnits = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "day": 24 * time.Hour,
}

// rates are the bounds by subject; of each the highest file's counts.
func rates(field *[]Rate) entries[Rate] {
	subject := func(r *Rate) string { return r.Subject }
	return entries[Rate]{
		object: true, identity: subject, sorted: subject, field: field,
		parse: func(r *reader, k *key, m member) (Rate, bool) {
			rate := Rate{Subject: subjectOf(strings.TrimSpace(m.key)), Origin: r.origin(m.line), text: m.value.word}
			var ok bool
			rate.Events, rate.Per, ok = parseRate(m.value.word)
			switch {
			case !isSubject(rate.Subject):
				r.warn(m.line, "%s: %q is not the name of a tool, mcp__server, mcp__server__* or a host; it has no effect", k.name, shortened(m.key))
			case m.value.kind != text || !ok:
				r.wrong(&m.value, k.name+"."+shortened(m.key), `a text like "60/min", "10/s" or "5/30s"`)
			default:
				return rate, true
			}
			return rate, false
		},
		line: func(k *key, r *Rate) Line { return Line{k.name, r.Subject + " " + r.text, r.Origin} },
	}
}

// subjectOf returns the one form of a subject: a host in lower case without a dot at its end, all tools of a server by the
// name of the server.
func subjectOf(text string) string {
	if strings.Contains(text, ".") {
		return strings.TrimSuffix(strings.ToLower(text), ".")
	}
	if server := strings.TrimSuffix(text, "__*"); isServerOfTools(server) {
		return server
	}
	return text
}

// isSubject reports whether calls can be about the text. None is about a pattern.
func isSubject(text string) bool {
	server, tool, whole := strings.Cut(strings.TrimPrefix(text, toolsOfServers), "__")
	switch {
	case text == "" || strings.ContainsAny(text, "*/() \x00"):
		return false
	case !strings.HasPrefix(text, toolsOfServers):
		return true
	}
	return isServerOfTools(toolsOfServers+server) && (!whole || tool != "")
}

// toolsOfServers is what the names of MCP servers' tools begin with.
const toolsOfServers = "mcp__"

func isServerOfTools(text string) bool {
	name, is := strings.CutPrefix(text, toolsOfServers)
	return is && isServerName(name) && plainName(name) == name
}

func parseRate(word string) (events int, per time.Duration, ok bool) {
	number, unit, found := strings.Cut(word, "/")
	events, err := strconv.Atoi(strings.TrimSpace(number))
	unit = strings.TrimSpace(unit)
	if per = rateUnits[unit]; per == 0 {
		per, _ = time.ParseDuration(unit)
	}
	return events, per, found && err == nil && events > 0 && events <= mostEvents && per >= time.Millisecond
}
