// Package websearch is the WebSearch tool: it uses the search engine that the user has configured.
// It does not know where settings are, nor who permitted the engine's host.
package websearch

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/net/egress"
	"github.com/toold/toold/tools/net/web"
)

//go:embed description.md
var description string

// A Backend is a search engine.
type Backend struct {
	Kind string // "searxng" or "brave"
	URL  string // the first page of a SearXNG instance; the search URL of Brave, or empty for the usual one
	Key  string // for Brave; it is sent to URL and never shown
}

// The kinds of backends.
const (
	SearXNG = "searxng"
	Brave   = "brave"
)

const braveURL = "https://api.search.brave.com/res/v1/web/search"

type input struct {
	Query   string   `json:"query" jsonschema:"what to search for"`
	Allowed []string `json:"allowed_domains,omitempty" jsonschema:"only results of these domains and those below them, such as example.com"`
	Blocked []string `json:"blocked_domains,omitempty" jsonschema:"no results of these domains and those below them"`

	backend Backend  // in force when the input was parsed
	at      *url.URL // of the backend; nil: there is none
}

// longestQuery is in characters; engines accept less.
const longestQuery = 1000

// Tool returns the WebSearch tool. agent is its User-Agent. configured returns the search engine
// from the settings, and the zero value if there is none; the tool is then not available. It is called
// for each call and must be safe for concurrent use.
func Tool(agent string, configured func() Backend) tools.Tool {
	limits := web.Standard()
	limits.Bytes = 2 << 20 // a page of results has some 50 KiB
	s := searcher{client: web.Client{Limits: limits, Agent: agent}, configured: configured}
	return tools.New(tools.Spec{
		Name: "WebSearch", Description: description, OpenWorld: true, TimeLimit: 60 * time.Second, OnInterrupt: tools.Stop,
		Available: func(*tools.Env) string { return s.configured().lack() },
	}, tools.Funcs[input]{Validate: s.validate, Effects: effects, Check: check, Run: s.run})
}

type searcher struct {
	client     web.Client
	configured func() Backend
}

// validate also records the engine, so that the request goes to the one that was permitted.
func (s searcher) validate(in *input) error {
	var wrong []tools.Violation
	if query := strings.TrimSpace(in.Query); query == "" || len([]rune(query)) > longestQuery {
		wrong = append(wrong, tools.Violation{Field: "/query", Expected: fmt.Sprintf("1 to %d characters", longestQuery)})
	}
	if len(in.Allowed) > 0 && len(in.Blocked) > 0 {
		wrong = append(wrong, tools.Violation{Field: "/blocked_domains", Expected: "nothing, since there is allowed_domains; use one of the two"})
	}
	wrong = append(append(wrong, domains("/allowed_domains", in.Allowed)...), domains("/blocked_domains", in.Blocked)...)
	if len(wrong) > 0 {
		return tools.Violated("WebSearch", wrong)
	}
	in.backend = s.configured()
	in.at = in.backend.at()
	return nil
}

// domains converts domains to the form in which they are compared, and reports invalid ones.
func domains(field string, list []string) (wrong []tools.Violation) {
	for i, text := range list {
		domain, ok := egress.Host(strings.Trim(strings.TrimPrefix(strings.TrimSpace(text), "*."), "."))
		if !ok || strings.Contains(domain, ":") {
			wrong = append(wrong, tools.Violation{Field: fmt.Sprintf("%s/%d", field, i), Expected: fmt.Sprintf("a domain such as example.com, not %.100q", text)})
		}
		list[i] = domain
	}
	return wrong
}

// at returns the search URL; nil: the backend's is invalid.
func (b Backend) at() *url.URL {
	address := b.URL
	if b.Kind == Brave && address == "" {
		address = braveURL
	}
	at, err := url.Parse(address)
	if err != nil || b.Kind == "" || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" {
		return nil
	}
	if b.Kind == SearXNG {
		at = at.JoinPath("search")
	}
	return at
}

func effects(in input) tools.Effects {
	if in.at == nil {
		return tools.Effects{}
	}
	return tools.Effects{Hosts: []string{hostOf(in.at)}}
}

// hostOf returns the URL's host in the form in which hosts are compared; an invalid one unchanged.
func hostOf(u *url.URL) string {
	host, ok := egress.Host(u.Hostname())
	if !ok {
		return strings.ToLower(u.Hostname())
	}
	return host
}

// lack returns why the backend cannot be used; empty: it can.
func (b Backend) lack() string {
	switch {
	case b.at() == nil:
		return "No search engine is configured. The user can name one in the settings: \"webSearch\": {\"backend\": \"searxng\", \"url\": ...}."
	case b.Kind == Brave && b.Key == "":
		return "There is no key for the search engine: the daemon has no BRAVE_API_KEY in its environment."
	}
	return ""
}

func check(_ context.Context, _ *tools.Env, in input) (tools.Preview, error) {
	if lack := in.backend.lack(); lack != "" {
		return tools.Preview{}, fault.Invalidf("search_not_configured", "%s", lack)
	}
	return tools.Preview{}, nil
}

func (s searcher) run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	if _, err := check(ctx, env, in); err != nil {
		return tools.Result{}, err
	}
	env.Report(tools.Step{Message: "asking " + in.at.Host})
	target, header := in.question()
	answer, err := s.client.Get(ctx, in.backend.policy(), target, header, func(int64, int64) {})
	if err != nil {
		return tools.Result{}, err
	}
	found, err := in.understand(answer)
	if err != nil {
		return tools.Result{}, err
	}
	in.sift(&found)
	result := tools.Text(found.text())
	result.Structured = found
	return result, nil
}

// policy allows the engine's host. If the user has named it, an address that is not public is
// allowed too.
func (b Backend) policy() egress.Policy {
	p := egress.Policy{Allowed: []string{hostOf(b.at())}}
	if b.URL != "" {
		p.Opened = p.Allowed
	}
	return p
}

// question returns the request.
func (in input) question() (*url.URL, http.Header) {
	target := *in.at
	values := target.Query()
	values.Set("q", in.query())
	header := http.Header{"Accept": {"application/json"}}
	if in.backend.Kind == Brave {
		values.Set("count", "20")
		header["X-Subscription-Token"] = []string{in.backend.Key}
	} else {
		values.Set("format", "json")
	}
	target.RawQuery = values.Encode()
	return &target, header
}

// query returns the query with the requested domains, in the syntax that engines have in common.
// The results are filtered again.
func (in input) query() string {
	query := strings.TrimSpace(in.Query)
	var sites []string
	for _, domain := range in.Allowed {
		sites = append(sites, "site:"+domain)
	}
	switch {
	case len(sites) == 1:
		query += " " + sites[0]
	case len(sites) > 1:
		query += " (" + strings.Join(sites, " OR ") + ")"
	}
	for _, domain := range in.Blocked {
		query += " -site:" + domain
	}
	return query
}

// wanted reports whether the call accepts results of that host.
func (in input) wanted(host string) bool {
	below := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	if len(in.Allowed) > 0 {
		return slices.ContainsFunc(in.Allowed, below)
	}
	return !slices.ContainsFunc(in.Blocked, below)
}

// maxResults is how many results are returned.
const maxResults = 10

// sift filters the results.
func (in input) sift(found *Found) {
	kept, seen := []Hit{}, map[string]bool{}
	for _, hit := range found.Results {
		at, err := url.Parse(hit.URL)
		switch {
		case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.User != nil || len(hit.URL) > longestURL, strings.ContainsFunc(hit.URL, unseen),
			seen[hit.URL], !in.wanted(hostOf(at)), len(kept) == maxResults:
			found.LeftOut++
			continue
		}
		seen[hit.URL] = true
		kept = append(kept, hit)
	}
	found.Results = kept
}

// longestURL is in bytes: what WebFetch accepts.
const longestURL = 8 << 10

// Found is the structured result.
type Found struct {
	Query   string `json:"query"`
	Backend string `json:"backend"`
	Results []Hit  `json:"results"`
	// LeftOut counts the other results of the engine: those that the call excludes, duplicates,
	// those that are not web pages or invalid, and those beyond 10.
	LeftOut int `json:"left_out"`
	// Answers are the engine's own direct answers.
	Answers []string `json:"answers,omitempty"`
	// Unresponsive are the engines behind a metasearch engine that did not answer, so that there
	// may be more to find.
	Unresponsive []string `json:"unresponsive,omitempty"`
}

// A Hit is one result.
type Hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Excerpt string `json:"excerpt,omitempty"`
}

func (f Found) text() string {
	var b strings.Builder
	for _, answer := range f.Answers {
		fmt.Fprintf(&b, "The engine's answer: %s\n\n", answer)
	}
	for i, hit := range f.Results {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, hit.Title, hit.URL)
		if hit.Excerpt != "" {
			fmt.Fprintf(&b, "   %s\n", hit.Excerpt)
		}
	}
	if len(f.Results) == 0 {
		b.WriteString("Nothing was found.\n")
	}
	if f.LeftOut > 0 {
		fmt.Fprintf(&b, "\nLeft out: %s.", text.Count(f.LeftOut, "result"))
	}
	if len(f.Unresponsive) > 0 {
		fmt.Fprintf(&b, "\nIncomplete: these did not answer: %s.", strings.Join(f.Unresponsive, ", "))
	}
	return strings.TrimSpace(b.String())
}
