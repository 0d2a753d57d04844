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
func webSearch(field **WebSearch) scalar[WebSearch] {
	return scalar[WebSearch]{
		parse: readWebSearch,
		text:  func(w WebSearch) string { return strings.TrimSpace(w.Backend + " " + w.URL) },
		set:   func(v value[WebSearch]) { *field = &v.is },
	}
}

func readWebSearch(r *reader, k *key, m member) (w WebSearch, ok bool) {
	if m.value.isEmpty() {
		return w, false
	}
	e, wrong := r.entry(k.name), false
	w.Origin = r.origin(m.line)
	known := func(of *string, expected string, is func(word string) bool) func(member) {
		return func(m member) {
			if *of = m.value.word; m.value.kind != text || !is(*of) {
				wrong = true
				r.wrong(&m.value, k.name+"."+m.key, expected)
			}
		}
	}
	e.fields(&m.value, map[string]func(member){
		"backend": known(&w.Backend, fmt.Sprintf("%q or %q", searXNG, brave), func(word string) bool { return word == searXNG || word == brave }),
		"url": known(&w.URL, "an http or https URL without user name or password", func(word string) bool {
			u := webURL(word)
			return u != nil && u.Hostname() != "" && u.User == nil
		}),
	})
	switch {
	case wrong:
	case w.Backend == "":
		e.lacks(m.line, fmt.Sprintf("has no backend, %q or %q", searXNG, brave))
	case w.Backend == searXNG && w.URL == "":
		e.lacks(m.line, fmt.Sprintf("has no url, which %s needs", searXNG))
	}
	return w, !wrong && !e.void
}

// webURL returns an http or https address with a host, or nil if the text is not one.
func webURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil
	}
	return u
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
