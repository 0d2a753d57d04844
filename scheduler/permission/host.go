// Hosts that a call names, and how they are compared with the domains of WebFetch rules: by name, without ports, and without
// looking anything up. The sandbox keeps a program from hosts that the call does not name.

package permission

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/toold/toold/tools/exec/shell"
)

// A contact is a host that a call names.
type contact struct {
	host string // as written
	name string // as rules compare it
	by   int    // 1 + the index of the command that names it; 0: the tool itself, or a redirection of its script
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
	for _, c := range f.Commands {
		for _, host := range contacts(&c) {
			if _, err := netip.ParseAddr(host); err != nil && !slices.Contains(names, hostName(host)) {
				names = append(names, hostName(host))
			}
		}
	}
	return names
}

// hosts looks at the hosts that the call names. Permission to run a command does not include them.
func (l *coverage) hosts() {
	for _, to := range l.call.hosts {
		reachable := func(rule string) bool { return hostFits(hostName(rule), to.name) }
		if l.whole && to.by == 0 && !l.Opaque || to.by > 0 && slices.ContainsFunc(l.Reachable, reachable) {
			continue
		}
		if r := l.policy.Rules.first(AllowList, func(r *anchored) bool { return r.subject&hosts != 0 && hostFits(r.host, to.name) }); r != nil {
			l.allow(r.reason(to.host, ""))
			continue
		}
		names := func(_ *anchored, word string) bool { return l.Commands[to.by-1].NamesHost(word, to.host) }
		if to.by > 0 && l.allowBy(l.ruleNaming(to.by-1, names), to.by-1) {
			continue
		}
		g := to.unruled()
		if l.whole || to.by > 0 && l.covered(to.by-1) {
			g.wants = g.needs
		}
		l.miss(g)
	}
}

// unruled is the reason that no rule allows the call to contact the host.
func (to contact) unruled() Reason {
	return Reason{Code: NoRuleHost, About: to.host, Part: to.host, needs: []string{"WebFetch(domain:" + to.name + ")"}}
}

// ConnectionFacts returns the facts of a connection that a program of a call is about to make.
func ConnectionFacts(host string) *Facts { return &Facts{Hosts: []string{host}} }

// DecideHost returns the verdict on such a connection to a host that nothing allows: by the rules
// that deny it or ask about it, and by the mode. An allow rule for a whole tool does not name it.
func DecideHost(host string, p Policy) Verdict {
	c := read(ConnectionFacts(host))
	v := Verdict{Level: level(c.Facts)}
	denying, doubtful := p.Rules.meeting(DenyList, &c)
	if len(denying) > 0 {
		v.Level = Forbidden
		return v.on(Deny, denying)
	}
	asking, more := p.Rules.meeting(AskList, &c)
	if asking = slices.Concat(asking, doubtful, more); len(asking) > 0 {
		return v.on(Ask, asking).under(c.Facts, p.Mode)
	}
	v = v.on(Ask, []Reason{c.hosts[0].unruled()})
	v.Free = true
	return v.under(c.Facts, p.Mode)
}

// mapping converts names to the xn-- form. It accepts *.
var mapping = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// hostName is the form in which hosts are compared: lower case, in ASCII, without a final dot. What is not a name stays as it is.
func hostName(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if name, err := mapping.ToASCII(host); err == nil {
		return name
	}
	return host
}

// hostFits reports whether a host fits a rule's: "*" is every host, "*.x" any depth below x but not x itself, and another *
// stays within one label.
func hostFits(rule, host string) bool {
	if rule == "*" {
		return true
	}
	if domain, ok := strings.CutPrefix(rule, "*."); ok && !strings.Contains(domain, "*") {
		name, below := strings.CutSuffix(host, "."+domain)
		return below && name != ""
	}
	wanted, labels := strings.Split(rule, "."), strings.Split(host, ".")
	return slices.EqualFunc(wanted, labels, func(pattern, label string) bool { return newPattern(pattern).matches(label) })
}
