// Package webfetch is the WebFetch tool: it fetches one page by its URL, as text. It caches pages
// for a short while and follows redirects within a host. It does not know who permitted the host,
// nor where settings are.
package webfetch

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/net/egress"
	"github.com/toold/toold/tools/net/web"
)

//go:embed description.md
var description string

type input struct {
	URL    string `json:"url" jsonschema:"absolute http or https URL of the page"`
	Prompt string `json:"prompt,omitempty" jsonschema:"what you want to know of the page; it is passed back with the result"`

	at *url.URL // the parsed URL
}

// Fetched is the structured result.
type Fetched struct {
	URL       string `json:"url"`    // of the content, after redirects
	Status    int    `json:"status"` // of HTTP
	MediaType string `json:"mediaType,omitempty"`
	Charset   string `json:"charset,omitempty"` // of the text before conversion, as the Encoding standard names it
	Bytes     int    `json:"bytes"`             // fetched, decompressed
	Title     string `json:"title,omitempty"`
	Pages     int    `json:"pages,omitempty"`     // of a PDF document, all of them
	Truncated bool   `json:"truncated,omitempty"` // the page is longer than what was read
	// Redirect is the target of a redirect that was not followed; empty: none.
	Redirect string `json:"redirect,omitempty"`
	Cached   bool   `json:"cached,omitempty"` // it was fetched by an earlier call
	Age      int    `json:"age,omitempty"`    // seconds since then
	Prompt   string `json:"prompt,omitempty"`
	// Unencrypted is set if the page came over http, after https had failed.
	Unencrypted bool `json:"unencrypted,omitempty"`
}

// maxRedirects is how many redirects within a host are followed. Browsers follow 20; more than a
// few are a loop.
const maxRedirects = 8

// Tool returns the WebFetch tool. agent is its User-Agent.
func Tool(agent string) tools.Tool {
	return newTool(&fetcher{client: web.Client{Limits: web.Standard(), Agent: agent}, pages: newCache(), upgrade: upgradeTime})
}

// upgradeTime is our own: a server with https accepts a connection in that time; a port that drops
// packets would otherwise take all the time there is.
const upgradeTime = 4 * time.Second

// A fetcher is what all calls share.
type fetcher struct {
	client  web.Client
	pages   *cache
	upgrade time.Duration // how long https is tried if the URL has http
}

func newTool(f *fetcher) tools.Tool {
	return tools.New(tools.Spec{
		Name: "WebFetch", Description: description, OpenWorld: true, TimeLimit: 60 * time.Second, OnInterrupt: tools.Stop,
	}, tools.Funcs[input]{Validate: validate, Effects: effects, Check: check, Run: f.run})
}

func validate(in *input) error {
	at, unfit := parseURL(in.URL)
	if unfit != "" {
		return fault.Invalidf("invalid_input", "url cannot be fetched: %s.", strings.TrimSuffix(unfit, ".")).At("/url")
	}
	in.at = at
	return nil
}

func effects(in input) tools.Effects {
	return tools.Effects{Hosts: []string{in.at.Hostname()}}
}

// check prevents a question about a host that settings refuse anyway.
func check(_ context.Context, env *tools.Env, in input) (tools.Preview, error) {
	port, _ := portOf(in.at) // it is known to be valid
	if refused := policyFor(in.at.Hostname(), env.Reach).Check(in.at.Hostname(), port); refused != nil {
		return tools.Preview{}, web.Refused(refused)
	}
	return tools.Preview{}, nil
}

func (f *fetcher) run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	if _, err := check(ctx, env, in); err != nil {
		return tools.Result{}, err // settings may have changed, and a cached page is not requested again
	}
	p, cached, err := f.pages.get(ctx, placeOf(env, in.at), func() (*page, error) { return f.fetch(ctx, env, in.at) })
	if err != nil {
		return tools.Result{}, err
	}
	facts := p.facts
	facts.Prompt, facts.Cached = in.Prompt, cached
	if cached {
		facts.Age = int(f.pages.now().Sub(p.fetched) / time.Second)
	}
	result := tools.Text(words(facts, p.text))
	if p.image != nil {
		result.Content = append(result.Content, tools.Block{Image: p.image})
	}
	result.Structured = facts
	if facts.Status >= 400 {
		return result, fault.Failedf("http_status", "%s answered %d %s. Check the URL; the server's response is in the result.", facts.URL, facts.Status, http.StatusText(facts.Status)).
			With(Status{facts.Status})
	}
	return result, nil
}

// Status is the details of http_status.
type Status struct {
	Status int `json:"status"`
}

// words returns the text of a result: facts about the page, and then the page.
func words(f Fetched, text string) string {
	if f.Redirect != "" {
		return fmt.Sprintf("%s redirects (%d) to another place, which was not followed: %s\nFetch that URL if you need it.", f.URL, f.Status, f.Redirect)
	}
	var b strings.Builder
	line := func(known bool, format string, args ...any) {
		if known {
			fmt.Fprintf(&b, format+"\n", args...)
		}
	}
	line(true, "URL: %s", f.URL)
	line(f.Title != "", "Title: %s", f.Title)
	line(f.Prompt != "", "Asked: %s", f.Prompt)
	line(f.Cached, "Fetched %d seconds ago.", f.Age)
	line(f.Unencrypted, "Fetched by http, not encrypted: no connection was made by https.")
	line(f.Truncated, "The page is longer: this is only its beginning.")
	if strings.TrimSpace(text) == "" && (isText(f.MediaType) || f.MediaType == "") {
		text = "(The page has no text. It may be made by scripts, which are not run.)"
	}
	return strings.TrimRight(b.String()+"\n"+text, "\n")
}

// fetch requests the page and follows redirects while they stay at the host.
func (f *fetcher) fetch(ctx context.Context, env *tools.Env, asked *url.URL) (*page, error) {
	q := redirects{f: f, env: env, policy: policyFor(asked.Hostname(), env.Reach)}
	answer, from, err := q.first(ctx, asked, upgraded(asked))
	unencrypted := upgraded(asked) != nil && err == nil && from.Scheme == "http"
	for range maxRedirects + 1 {
		if err != nil {
			return nil, err
		}
		target := redirect(from, answer)
		if target == "" || !stays(from, target, asked.Scheme) {
			return newPage(ctx, env, from, answer, Fetched{Redirect: target, Unencrypted: unencrypted})
		}
		from, _ = parseURL(target)
		answer, err = q.ask(ctx, &f.client, from)
	}
	return nil, fault.Failedf("too_many_redirects", "%s redirects more than %d times, so the page was not fetched.", from.Host, maxRedirects)
}

// A redirects is the requests of one fetch.
type redirects struct {
	f      *fetcher
	env    *tools.Env
	policy egress.Policy
}

// first requests the URL of the call; from is the URL that answered. better, if there is one, is
// tried before it.
func (q *redirects) first(ctx context.Context, at, better *url.URL) (answer *web.Answer, from *url.URL, err error) {
	if better != nil {
		brief := q.f.client
		brief.Limits.Connect = min(brief.Limits.Connect, q.f.upgrade)
		answer, err = q.ask(ctx, &brief, better)
		if !errors.Is(err, web.ErrNoConnection) || ctx.Err() != nil {
			return answer, better, err
		}
	}
	answer, err = q.ask(ctx, &q.f.client, at)
	return answer, at, err
}

// ask requests one URL.
func (q *redirects) ask(ctx context.Context, client *web.Client, at *url.URL) (*web.Answer, error) {
	header := http.Header{"Accept": {"text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"}}
	q.env.Report(tools.Step{Message: "asking " + at.Host})
	return client.Get(ctx, q.policy, at, header, reporter(q.env, at.Host))
}

// reporter returns a function that reports the progress of a fetch, at most once a second.
func reporter(env *tools.Env, host string) func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			env.Report(tools.Step{Message: "reading from " + host, Done: done, Total: total})
		}
	}
}

// redirect returns the target of a redirect, absolute; empty: none. A target that is not a URL is
// returned as it was sent.
func redirect(from *url.URL, answer *web.Answer) string {
	location := answer.Header.Get("Location")
	switch answer.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return ""
	}
	if location == "" {
		return ""
	}
	target, err := from.Parse(location)
	if err != nil {
		return fmt.Sprintf("%.300q", location)
	}
	return strings.ToValidUTF8(target.String(), "\uFFFD")
}

// stays reports whether the target is a page of the same host, which may be fetched, over https
// unless the call named http.
func stays(from *url.URL, target, scheme string) bool {
	to, unfit := parseURL(target)
	return unfit == "" && to.Hostname() == from.Hostname() && (to.Scheme == "https" || to.Scheme == scheme)
}
