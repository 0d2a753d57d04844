package permission

// The hosts that a call names. The sandbox keeps a program from hosts that the call does not name.

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// A contact is a host that a call names.
type contact struct {
	host string // as written
	name string // as rules compare it
	by   int    // 1 + the index of the command that names it; 0: the tool itself
}

// contacts returns the hosts that a command names and may contact. A loopback address is the session's own.
func contacts(c *shell.Command) []string { return slices.DeleteFunc(c.Hosts(), isLoopback) }

func isLoopback(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback() || address.IsUnspecified()
	}
	name := hostName(host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// Contacts returns the names, not the addresses, of the hosts that the commands of a script name and that a yes opens to it.
func (f *Facts) Contacts() (names []string) {
	for i := range f.Commands {
		for _, host := range contacts(&f.Commands[i]) {
			if _, err := netip.ParseAddr(host); err != nil && !slices.Contains(names, hostName(host)) {
				names = append(names, hostName(host))
			}
		}
	}
	return names
}

// hosts looks at the hosts that the call names. Permission to run a command does not include them.
func (l *coverage) hosts() {
	rules := l.policy.Rules.list(AllowList)
	for _, to := range l.call.hosts {
		if l.whole && to.by == 0 || to.by > 0 && slices.ContainsFunc(l.Reachable, func(rule string) bool { return hostFits(hostName(rule), to.name) }) {
			continue
		}
		at := slices.IndexFunc(rules, func(a anchored) bool { return a.subject&hosts != 0 && hostFits(a.host, to.name) })
		if at >= 0 {
			l.allow(rules[at].reason(to.host, ""))
			continue
		}
		if to.by > 0 {
			if r := l.rulesNaming(to.by-1, func(_ *anchored, word string) bool { return l.Commands[to.by-1].NamesHost(word, to.host) }); r != nil {
				l.allow(r.reason(l.Commands[to.by-1].Text, ""))
				continue
			}
		}
		l.miss(l.lacksHost(to))
	}
}

func (l *coverage) lacksHost(to contact) Reason {
	g := Reason{Code: NoRuleHost, About: to.host, Part: to.host, needs: []string{"WebFetch(domain:" + to.name + ")"}}
	if to.by > 0 {
		if l.whole || l.covered(to.by-1) {
			g.wants = g.needs
		}
	}
	return g
}
