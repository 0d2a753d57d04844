package websearch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) { os.Exit(tooltest.Main(m)) }

// An engine answers searches on loopback, and notes the last question.
type engine struct {
	server *httptest.Server
	asked  *http.Request
	status int
	body   string
}

func newEngine(t testing.TB, body string) *engine {
	e := &engine{status: http.StatusOK, body: body}
	e.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked = r
		w.WriteHeader(e.status)
		_, _ = w.Write([]byte(e.body))
	}))
	t.Cleanup(e.server.Close)
	return e
}

func (e *engine) tool(kind string) tools.Tool {
	return Tool("toold/test", func() Backend { return Backend{kind, e.server.URL + "/sub", "the key"} })
}

func search(t testing.TB, tool tools.Tool, input string) (tools.Result, error) {
	t.Helper()
	_, result, err := tooltest.NewFiles(t, t.TempDir()).Call(tool, json.RawMessage(input))
	return result, err
}

const searxng = `{"query": "q", "number_of_results": 0, "results": [
	{"url": "https://docs.example.com/a", "title": "A &amp; <b>B</b>", "content": "one\n two\u202e", "engine": "x", "score": 1.5},
	{"url": "https://docs.example.com/a", "title": "again"},
	{"url": "javascript:alert(1)", "title": "no page"},
	{"url": "https://other.example/", "title": "Other", "content": ""}],
	"answers": ["42", {"answer": "43", "engine": "y"}, 7], "unresponsive_engines": [["google", "timeout"], [], [1], "x", null]}`

func TestTool(t *testing.T) {
	tooltest.Check(t, newEngine(t, searxng).tool(SearXNG),
		tooltest.Case{Name: "one", Input: `{"query":"q"}`},
		tooltest.Case{Name: "of a domain", Input: `{"query":"q","allowed_domains":["example.com"]}`},
	)
}

func TestSearch(t *testing.T) {
	docs, other := Hit{"A & B", "https://docs.example.com/a", "one two"}, Hit{Title: "Other", URL: "https://other.example/"}
	brave := `{"type":"search","web":{"results":[{"url":"https://docs.example.com/a","title":"A & <strong>B</strong>","description":"one two"}]}}`
	for _, c := range []struct {
		name, kind, body, input string
		asked                   string // path and query
		want                    Found
	}{
		{
			"all", SearXNG, searxng, `{"query":"q r&s"}`, "/sub/search?format=json&q=q+r%26s",
			Found{Query: "q r&s", Backend: SearXNG, Results: []Hit{docs, other}, LeftOut: 2, Answers: []string{"42", "43"}, Unresponsive: []string{"google"}},
		},
		{
			"allowed", SearXNG, searxng, `{"query":"q","allowed_domains":["*.Example.com."]}`, "/sub/search?format=json&q=q+site%3Aexample.com",
			Found{Query: "q", Backend: SearXNG, Results: []Hit{docs}, LeftOut: 3, Answers: []string{"42", "43"}, Unresponsive: []string{"google"}},
		},
		{
			"not a part of a name", SearXNG, searxng, `{"query":"q","allowed_domains":["ample.com","x.example"]}`, "/sub/search?format=json&q=q+%28site%3Aample.com+OR+site%3Ax.example%29",
			Found{Query: "q", Backend: SearXNG, Results: []Hit{}, LeftOut: 4, Answers: []string{"42", "43"}, Unresponsive: []string{"google"}},
		},
		{
			"blocked", SearXNG, searxng, `{"query":"q","blocked_domains":["example.com"]}`, "/sub/search?format=json&q=q+-site%3Aexample.com",
			Found{Query: "q", Backend: SearXNG, Results: []Hit{other}, LeftOut: 3, Answers: []string{"42", "43"}, Unresponsive: []string{"google"}},
		},
		{
			"odd ones", SearXNG, `{"results":[{"url":7},"x",null,{"url":"https://other.example/","title":"Other","content":["a"]},{"url":"https://other.example/","title":"Other"}],"answers":"none","unresponsive_engines":{}}`,
			`{"query":"q"}`, "/sub/search?format=json&q=q",
			Found{Query: "q", Backend: SearXNG, Results: []Hit{other}, LeftOut: 4},
		},
		{
			"letters", SearXNG, `{"results":[{"url":"https://Bücher.example/","title":"B"}]}`, `{"query":"q","allowed_domains":["bücher.example"]}`, "/sub/search?format=json&q=q+site%3Axn--bcher-kva.example",
			Found{Query: "q", Backend: SearXNG, Results: []Hit{{Title: "B", URL: "https://Bücher.example/"}}},
		},
		{"nothing", SearXNG, `{"results":[]}`, `{"query":"q"}`, "/sub/search?format=json&q=q", Found{Query: "q", Backend: SearXNG, Results: []Hit{}}},
		{"brave", Brave, brave, `{"query":"q"}`, "/sub?count=20&q=q", Found{Query: "q", Backend: Brave, Results: []Hit{docs}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, c.body)
			result, err := search(t, e.tool(c.kind), c.input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, result.Structured); diff != "" {
				t.Error(diff)
			}
			if e.asked.URL.String() != c.asked || (e.asked.Header.Get("X-Subscription-Token") == "the key") != (c.kind == Brave) {
				t.Errorf("asked %s with %v, want %s", e.asked.URL, e.asked.Header, c.asked)
			}
			for _, hit := range c.want.Results {
				if !strings.Contains(result.Content[0].Text, hit.URL) {
					t.Errorf("%s is not in %s", hit.URL, result.Content[0].Text)
				}
			}
			if incomplete := strings.Contains(result.Content[0].Text, "Incomplete: these did not answer: google."); incomplete != (c.want.Unresponsive != nil) {
				t.Errorf("it says %s", result.Content[0].Text)
			}
		})
	}
}

// Engines that do not answer as they should. A redirect is not followed.
func TestEngineFails(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   string // in the message
	}{
		{200, "<html>", "no search results"},
		{200, `{"results": 7}`, "no search results"},
		{200, strings.Repeat("[", 3<<20), "no search results"},
		{403, "", "search.formats"},
		{429, "", "limits the rate"},
		{500, "", "500 Internal Server Error"},
		{302, "", "302 Found"},
	} {
		e := newEngine(t, c.body)
		e.status = c.status
		action, err := e.tool(SearXNG).Parse([]byte(`{"query":"q"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = action.Run(t.Context(), tooltest.NewFiles(t, t.TempDir()).Env())
		if tooltest.Code(err) != "search_failed" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %.20s: %v, want search_failed with %q", c.status, c.body, err, c.want)
		}
	}
}

// Without an engine, or with one that cannot be, the call ends before anybody is asked.
func TestNotConfigured(t *testing.T) {
	for _, c := range []struct {
		backend Backend
		code    string
	}{
		{Backend{}, "search_not_configured"}, {Backend{Kind: Brave}, "search_not_configured"}, {Backend{Kind: SearXNG, URL: "x"}, "search_not_configured"},
	} {
		tool := Tool("x", func() Backend { return c.backend })
		_, err := search(t, tool, `{"query":"q"}`)
		why := tool.Spec().Available(nil)
		if tooltest.Code(err) != c.code || why == "" || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v, want %s; not available, since %q", c.backend, err, c.code, why)
		}
	}
	if why := newEngine(t, searxng).tool(Brave).Spec().Available(nil); why != "" {
		t.Errorf("with an engine and its key it is not available, since %q", why)
	}
}

func TestInput(t *testing.T) {
	tool := Tool("x", func() Backend { return Backend{Kind: SearXNG, URL: "https://Search.Example./"} })
	for input, code := range map[string]string{
		`{"query":"q"}`: "", `{"query":" "}`: "invalid_input", `{"query":"q","allowed_domains":["a.example"],"blocked_domains":["b.example"]}`: "invalid_input",
		`{"query":"q","allowed_domains":["https://a.example/"]}`: "invalid_input", `{"query":"q","blocked_domains":["a\" OR x"]}`: "invalid_input", `{}`: "invalid_input",
		fmt.Sprintf(`{"query":%q}`, strings.Repeat("q", 1001)): "invalid_input",
	} {
		action, err := tool.Parse([]byte(input))
		if tooltest.Code(err) != code {
			t.Errorf("%.60s: %v, want %q", input, err, code)
		}
		if err == nil && action.Effects().Hosts[0] != "search.example" {
			t.Errorf("contacts %q", action.Effects().Hosts)
		}
	}
}

// An engine that the user has named may be inside, by its own name alone.
func TestEngineInside(t *testing.T) {
	e := newEngine(t, searxng)
	_, port, _ := strings.Cut(strings.TrimPrefix(e.server.URL, "http://"), ":")
	tool := Tool("x", func() Backend { return Backend{Kind: SearXNG, URL: "http://LocalHost.:" + port} })
	if _, err := search(t, tool, `{"query":"q"}`); err != nil {
		t.Error(err)
	}
	for backend, want := range map[Backend]string{
		{Kind: SearXNG, URL: "http://127.0.0.1:1"}: "[127.0.0.1]", {Kind: SearXNG, URL: "https://bücher.example"}: "[xn--bcher-kva.example]", {Kind: Brave}: "[]",
	} {
		if got := fmt.Sprint(backend.policy().Opened); got != want {
			t.Errorf("%+v opens %s, want %s", backend, got, want)
		}
	}
}

// Whatever an engine answers, what comes of it is text and addresses of web pages.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(searxng))
	f.Add([]byte(`{"web":{"results":[{"url":"http://a","title":"\ud800","description":"<strong>"}]}}`))
	f.Add([]byte(`{"answers":[{"answer":null}],"unresponsive_engines":[[{}],["a"]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range []func(*Found, []byte) error{(*Found).readSearXNG, (*Found).readBrave} {
			var found Found
			if read(&found, body) != nil {
				continue
			}
			input{Query: "q"}.sift(&found)
			if text := found.text(); !utf8.ValidString(text) || len(found.Results) > maxResults || strings.ContainsAny(text, "\x00\x1b\u202e") {
				t.Errorf("%q", text)
			}
			for _, hit := range found.Results {
				if at, err := url.Parse(hit.URL); err != nil || at.Scheme != "http" && at.Scheme != "https" || strings.ContainsAny(hit.URL, "\n\x1b") {
					t.Errorf("%q is no page", hit.URL)
				}
			}
		}
	})
}
