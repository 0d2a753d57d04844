package permission

// The hosts that commands name: in URLs, as user@host:path, and as operands of programs that are known to contact what they
// are given. What a program contacts without its being named is the sandbox's to keep it from.

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// A contact is a host that a call names.
type contact struct {
	host string // as written
	name string // as rules compare it
	by   int    // 1 + the index of the command that names it; 0: the tool itself
}

// contacting are programs that contact the host that an operand names without a scheme.
var contacting = []string{"curl", "wget", "http", "https", "xh", "ssh", "sftp", "telnet", "ping", "nc", "ncat", "ftp"}

// onlyNoting are subcommands of git that keep an address and contact nobody.
var onlyNoting = []string{"remote", "config", "commit", "tag", "notes"}

var (
	networkScheme = regexp.MustCompile(`^(?i:https?|ftps?|wss?|ssh|git|git\+ssh|git\+https|sftp|rsync)://`)
	atHost        = regexp.MustCompile(`^[A-Za-z0-9._-]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+):`)
	hostShape     = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?((?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+)(?::[0-9]+)?(?:/.*)?$`)
	// switches are the flags of those programs that take no value, alone or several in one word.
	switches = regexp.MustCompile(`^(?:-[#0-9fgijklnpqsvIJLNORS]+|--(?:silent|show-error|fail|location|insecure|head|include|verbose|compressed|quiet|no-verbose|spider))$`)
)

// contacts returns the hosts that a command names and may contact, in the order of its words. A loopback address is the
// session's own.
func contacts(c *shell.Command) (hosts []string) {
	if c.ReadOnly || c.Transparent || len(c.Words) < 2 {
		return nil
	}
	words := c.Words
	if c.Subcommand != nil {
		words = c.Subcommand
	}
	name := path.Base(c.Name)
	if name == "git" && len(words) > 1 && slices.Contains(onlyNoting, words[1].Text) {
		return nil
	}
	for i, word := range c.Words[1:] {
		if !word.Literal || setting.MatchString(word.Text) {
			continue
		}
		host := hostIn(word.Text)
		before := c.Words[i].Text
		if host == "" && slices.Contains(contacting, name) && (!strings.HasPrefix(before, "-") || switches.MatchString(before)) {
			host = firstGroup(hostShape, word.Text)
		}
		if host != "" && !isLoopback(host) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// hostIn returns the host of a word that is a URL, has one as the value of a flag, or is user@host:path; empty: it is none.
func hostIn(text string) string {
	if flag, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(flag, "-") {
		text = value
	}
	if !networkScheme.MatchString(text) {
		return firstGroup(atHost, text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func firstGroup(shape *regexp.Regexp, text string) string {
	if found := shape.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

func isLoopback(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsLoopback() || address.IsUnspecified()
	}
	name := hostName(host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// Contacts returns the names of the hosts that the commands of a script name and that a yes opens to it: no addresses.
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
			if r := l.rulesNaming(to.by-1, func(_ *anchored, word string) bool { return names(&l.Commands[to.by-1], word, to.host) }); r != nil {
				l.allow(r.reason(l.Commands[to.by-1].Text, ""))
				continue
			}
		}
		l.miss(l.lacksHost(to))
	}
}

// names reports whether a word of a rule is the one by which the command names the host.
func names(c *shell.Command, word, host string) bool {
	alone := *c
	alone.Words, alone.Subcommand = []shell.Word{c.Words[0], {Text: word, Literal: true}}, nil
	return slices.Contains(contacts(&alone), host)
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
