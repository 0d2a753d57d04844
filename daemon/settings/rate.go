// How often a tool, an MCP server or a host may be called. Who waits when there is no room is not known here.

package settings

import (
	"cmp"
	"slices"
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

const (
	keyRate    = "limits.rate"
	mostEvents = 1_000_000
)

// rateUnits are how spans of one are called.
var rateUnits = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "day": 24 * time.Hour,
}

func (r *reader) rate(m member) {
	if r.place.level == workspace || r.place.level == session {
		r.idle(m.line, keyRate, "it is the whole daemon's, which a "+levelNames[r.place.level]+" does not set")
		return
	}
	for _, m := range r.members(&m.value, keyRate+".") {
		said := Rate{Subject: strings.TrimSpace(m.key), Origin: r.origin(m.line), text: m.value.word}
		said.Subject = subjectOf(said.Subject)
		var ok bool
		said.Events, said.Per, ok = parseRate(m.value.word)
		switch {
		case !isSubject(said.Subject):
			r.warn(m.line, "%s: %q is no name of a tool, no mcp__server or mcp__server__*, and no host; it has no effect", keyRate, shortened(m.key))
		case m.value.kind != text || !ok:
			r.wrong(&m.value, keyRate+"."+shortened(m.key), `a text like "60/min", "10/s" or "5/30s"`)
		default:
			r.facts.rates = append(r.facts.rates, said)
		}
	}
}

// subjectOf writes what means the same the same way: a host in lower case without a dot at its end, all tools of a server by
// its name alone.
func subjectOf(text string) string {
	if strings.Contains(text, ".") {
		return strings.TrimSuffix(strings.ToLower(text), ".")
	}
	if server := strings.TrimSuffix(text, "__*"); isServerOfTools(server) {
		return server
	}
	return text
}

// isSubject says whether calls can be about the text: patterns are about nothing.
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

// rates takes the highest file's of each subject.
func (m *merger) rates() {
	for _, s := range m.sources {
		for _, said := range s.facts.rates {
			if !slices.ContainsFunc(m.out.Rates, func(r Rate) bool { return r.Subject == said.Subject }) {
				m.out.Rates = append(m.out.Rates, said)
			}
		}
	}
	slices.SortFunc(m.out.Rates, func(a, b Rate) int { return cmp.Compare(a.Subject, b.Subject) })
}
