package settings

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// WebSearch is the search engine that the user or the administrator names.
type WebSearch struct {
	Backend string // "searxng" or "brave"
	URL     string // http or https; empty, only of brave: its usual address
	Origin  permission.Origin
}

const (
	searXNG = "searxng"
	brave   = "brave"
)

// webSearch is the search engine. A workspace names none: queries, and a key, would be sent to its address.
var webSearch = scalar[WebSearch]{
	parse: parseWebSearch,
	text:  func(w WebSearch) string { return strings.TrimSpace(w.Backend + " " + w.URL) },
	set:   func(s *Settings, v value[WebSearch]) { s.WebSearch = &v.is },
}

func parseWebSearch(r *reader, k *key, m member) (w WebSearch, ok bool) {
	if m.value.isEmpty() {
		return w, false
	}
	w.Origin, ok = r.origin(m.line), true
	for _, m := range r.members(&m.value, k.name+".") {
		switch name := k.name + "." + m.key; {
		case m.key == "backend" && m.value.kind == text && (m.value.word == searXNG || m.value.word == brave):
			w.Backend = m.value.word
		case m.key == "backend":
			r.wrong(&m.value, name, fmt.Sprintf("%q or %q", searXNG, brave))
			ok = false
		case m.key == "url" && isWebURL(&m.value):
			w.URL = m.value.word
		case m.key == "url":
			r.wrong(&m.value, name, "an http or https URL without user name or password")
			ok = false
		default:
			r.unknown(m, k.name+".", []string{"backend", "url"})
		}
	}
	switch {
	case !ok:
	case w.Backend == "":
		r.warn(m.line, "%s has no backend, %q or %q; it has no effect", k.name, searXNG, brave)
		ok = false
	case w.Backend == searXNG && w.URL == "":
		r.warn(m.line, "%s has no url, which %s needs; it has no effect", k.name, searXNG)
		ok = false
	}
	return w, ok
}

func isWebURL(n *node) bool {
	u, err := url.Parse(n.word)
	return n.kind == text && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// Reach returns the hosts that the sandbox's settings and rules about WebFetch allow and deny, as an egress.Policy has them.
func (s *Settings) Reach() (allowed, denied []string) {
	allowed, denied = plain(s.Sandbox.AllowedDomains), plain(s.Sandbox.DeniedDomains)
	for _, rule := range s.Rules {
		domain, ok := strings.CutPrefix(rule.Text, "WebFetch(domain:")
		domain = strings.TrimSuffix(domain, ")")
		switch {
		case !ok:
		case rule.List == permission.DenyList:
			denied = append(denied, domain)
		case rule.List == permission.AllowList && s.Sandbox.ManagedDomainsOnly == nil:
			allowed = append(allowed, domain)
		}
	}
	return allowed, denied
}
