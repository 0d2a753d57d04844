// What settings say of the web: which search engine there is, and which hosts may be reached. A workspace names no engine:
// what is searched for, and a key, would go where it says.

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
	URL     string // http or https; empty, of brave alone: its usual place
	Origin  permission.Origin
}

const (
	keyWebSearch = "webSearch"
	searXNG      = "searxng"
	brave        = "brave"
)

func (r *reader) webSearch(m member) {
	if m.value.isEmpty() {
		return
	}
	if r.place.level != managed && r.place.level != user {
		r.idle(m.line, m.key, "it counts in the user's file and in a managed file alone")
		return
	}
	said, wrong := WebSearch{Origin: r.origin(m.line)}, false
	for _, m := range r.members(&m.value, keyWebSearch+".") {
		switch {
		case m.key == "backend" && m.value.kind == text && (m.value.word == searXNG || m.value.word == brave):
			said.Backend = m.value.word
		case m.key == "backend":
			r.wrong(&m.value, keyWebSearch+".backend", fmt.Sprintf("%q or %q", searXNG, brave))
			wrong = true
		case m.key == "url" && isWebURL(&m.value):
			said.URL = m.value.word
		case m.key == "url":
			r.wrong(&m.value, keyWebSearch+".url", "an http or https URL without user name or password")
			wrong = true
		default:
			r.unknown(m, keyWebSearch+".", []string{"backend", "url"})
		}
	}
	switch {
	case wrong:
	case said.Backend == "":
		r.warn(m.line, "%s has no backend, %q or %q; it has no effect", keyWebSearch, searXNG, brave)
	case said.Backend == searXNG && said.URL == "":
		r.warn(m.line, "%s has no url, which %s needs; it has no effect", keyWebSearch, searXNG)
	default:
		r.facts.search = &said
	}
}

func isWebURL(n *node) bool {
	u, err := url.Parse(n.word)
	return n.kind == text && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// webSearch takes the highest file's word.
func (m *merger) webSearch() {
	for _, s := range m.sources {
		if said := s.facts.search; said != nil {
			m.out.WebSearch = said
			m.out.flags = append(m.out.flags, Line{keyWebSearch, strings.TrimSpace(said.Backend + " " + said.URL), said.Origin})
			return
		}
	}
}

// Reach gives the hosts that the sandbox's settings and rules about WebFetch allow and deny, as an egress.Policy has them.
func (s *Settings) Reach() (allowed, denied []string) {
	for _, name := range s.Sandbox.AllowedDomains {
		allowed = append(allowed, name.Name)
	}
	for _, name := range s.Sandbox.DeniedDomains {
		denied = append(denied, name.Name)
	}
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
