package webfetch

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/tooltest"
)

func TestTool(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("text/html", "<title>T</title><p>Hello")})
	tooltest.Check(t, s.tool,
		tooltest.Case{Name: "page", Input: s.fill(`{"url":"ORIGIN/a"}`)},
		tooltest.Case{Name: "prompt", Input: s.fill(`{"url":"ORIGIN/a#part","prompt":"What does it say?"}`)},
	)
}

// drawn is an image.
var drawn = func() string {
	var b strings.Builder
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 1))); err != nil {
		panic(err)
	}
	return b.String()
}()

// contentCases are what servers answer, and what is in all that is said of it; or the code of an error.
var contentCases = []struct {
	name, media, body string
	want              string // in the text, parted by |
	not               string
	facts             Fetched
	code              string
}{
	{
		"page", "text/html; charset=utf-8", `<html><head><title>A &amp; B</title><style>x{}</style></head><body><nav>menu</nav><h1>H</h1>` +
			`<p>one <b>two</b> <a href="../c?d#e">three</a><ul><li>four<li>five</ul><script>six()</script><div hidden>seven</div>`,
		"Title: A & B\n|Asked: why\n|# H|one **two** [three](ORIGIN/c?d#e)|- four\n- five", "menu|six|seven|x{}",
		Fetched{MediaType: "text/html", Charset: "utf-8", Title: "A & B"},
		"",
	},
	{
		"main", "text/html", `<div>chrome</div><main><p>` + strings.Repeat("content ", 50) + `</main><footer>foot</footer>`,
		"content content", "chrome|foot",
		Fetched{MediaType: "text/html", Charset: "utf-8"},
		"",
	},
	{
		"table", "text/html", "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n|---|---|\n| 1 | 2 |", "",
		Fetched{MediaType: "text/html", Charset: "utf-8"},
		"",
	},
	{"code", "text/html", "<pre><code class=language-go>a\n\tb</code></pre>", "```go\na\n\tb\n```", "", Fetched{MediaType: "text/html", Charset: "utf-8"}, ""},
	{"empty", "text/html", "<script>all()</script>", "made by scripts", "", Fetched{MediaType: "text/html", Charset: "utf-8"}, ""},
	{"json", "application/problem+json", `{"a":"<b>"}`, `{"a":"<b>"}`, "", Fetched{MediaType: "application/problem+json", Charset: "utf-8"}, ""},
	{"charset of the header", "text/plain; charset=windows-1251", "\xcf\xf0\xe8", "При", "", Fetched{MediaType: "text/plain", Charset: "windows-1251"}, ""},
	{"charset of the page", "text/html", `<meta charset=shift_jis><p>` + "\x93\xfa\x96\x7b", "日本", "", Fetched{MediaType: "text/html", Charset: "shift_jis"}, ""},
	{"UTF-8 late", "text/plain", strings.Repeat("a", 2000) + "é", "aé", "", Fetched{MediaType: "text/plain", Charset: "utf-8"}, ""},
	{"wrong charset", "text/plain; charset=utf-8", "a\xff\xfeb", "a\uFFFDb", "", Fetched{MediaType: "text/plain", Charset: "utf-8"}, ""},
	{"unknown charset", "text/plain; charset=klingon", "abc", "abc", "", Fetched{MediaType: "text/plain", Charset: "utf-8"}, ""},
	{"UTF-16", "text/plain", "\xff\xfea\x00b\x00", "ab", "", Fetched{MediaType: "text/plain", Charset: "utf-16le"}, ""},
	{"text of no type", "", "plain words", "plain words", "", Fetched{MediaType: "text/plain", Charset: "utf-8"}, ""},
	{"text of a wrong type", "application/octet-stream", "plain words", "plain words", "", Fetched{MediaType: "text/plain", Charset: "utf-8"}, ""},
	{"an image that says it is text", "text/html", drawn, "An image of 2 x 1 pixels", "PNG", Fetched{MediaType: "image/png"}, ""},
	{"a damaged image", "image/png", "\x89PNG\r\n\x1a\n\x00\x00", "", "", Fetched{}, "damaged_file"},
	{"text that says it is an image", "image/png", "<p>no", "", "PNG", Fetched{MediaType: "text/html", Charset: "utf-8"}, ""},
	{"binary", "application/zip", "PK\x03\x04\x00", "", "", Fetched{}, "unsupported_media"},
	{"binary that says it is text", "text/plain", "\x7fELF\x00\x01", "", "", Fetched{}, "unsupported_media"},
	{"too much text", "text/plain", strings.Repeat("long ", 1<<18), "only its beginning", "", Fetched{MediaType: "text/plain", Charset: "utf-8", Truncated: true}, ""},
	{"too large an image", "image/png", "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 1<<20), "", "", Fetched{}, "response_too_large"},
}

func TestContent(t *testing.T) {
	for _, c := range contentCases {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, map[string]http.HandlerFunc{"/d/p": says(c.media, c.body)})
			result, code := s.get("ORIGIN/d/p")
			if code != c.code {
				t.Fatalf("code %q, want %q", code, c.code)
			}
			if code != "" {
				return
			}
			for want := range strings.SplitSeq(s.fill(c.want), "|") {
				if c.name == "table" {
					want = s.fill(c.want)
				}
				if !strings.Contains(result.Content[0].Text, want) {
					t.Errorf("there is no %q in %.2000q", want, result.Content[0].Text)
				}
			}
			for not := range strings.SplitSeq(c.not, "|") {
				if not != "" && strings.Contains(result.Content[0].Text, not) {
					t.Errorf("there is %q in %.2000q", not, result.Content[0].Text)
				}
			}
			c.facts.URL, c.facts.Status, c.facts.Prompt = s.fill("ORIGIN/d/p"), 200, "why"
			got := result.Structured.(Fetched)
			got.Bytes = 0
			if got != c.facts {
				t.Errorf("%+v, want %+v", got, c.facts)
			}
			blob := c.facts.MediaType == "image/png"
			if blob != (len(result.Content) == 2) {
				t.Errorf("%d blocks", len(result.Content))
			}
		})
	}
}

// A document is read by a process of its own.
func TestDocument(t *testing.T) {
	document := "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
	var table strings.Builder
	for i, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
		"<</Length 43>>\nstream\nBT /F 12 Tf 10 100 Td (Hello there) Tj ET      \nendstream", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	} {
		fmt.Fprintf(&table, "%010d 00000 n \n", len(document))
		document += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	document += fmt.Sprintf("xref\n0 6\n0000000000 65535 f \n%strailer\n<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF\n", table.String(), len(document))
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("application/pdf", document), "/b": says("application/pdf", "%PDF-1.4\nnothing")})
	room := tooltest.NewRoom(t)
	for path, want := range map[string]string{"/a": "", "/b": "damaged_file"} {
		action, err := s.tool.Parse([]byte(s.fill(`{"url":"ORIGIN` + path + `"}`)))
		if err != nil {
			t.Fatal(err)
		}
		result, err := action.Run(t.Context(), room.Env(action))
		if tooltest.Code(err) != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if err == nil && (!strings.Contains(result.Content[0].Text, "--- Page 1 ---\nHello there") || result.Structured.(Fetched).Pages != 1) {
			t.Errorf("%s: %q, %+v", path, result.Content[0].Text, result.Structured)
		}
	}
}

// What is asked: GET, by an honest name, without a cookie, without the fragment.
func TestQuestion(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"/a": func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "c", Value: "v"})
		w.Header().Set("Content-Type", "text/plain")
		_ = r.Write(w)
	}, "/b": sends(302, "/a")})
	if _, code := s.get("ORIGIN/a?x=%20#secret"); code != "" {
		t.Fatal(code)
	}
	result, code := s.get("ORIGIN/b")
	if code != "" {
		t.Fatal(code)
	}
	text := result.Content[0].Text
	for _, want := range []string{"GET /a HTTP/1.1", "User-Agent: toold/test", "Accept-Encoding: gzip"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
	for _, not := range []string{"Cookie", "Referer", "Authorization", "secret"} {
		if strings.Contains(text, not) {
			t.Errorf("there is %q in %s", not, text)
		}
	}
}

// A page is fetched once in a while, and once for all who want it at the same time.
func TestShelf(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	s := newSite(t, map[string]http.HandlerFunc{
		"/a": says("text/plain", "words"),
		"/slow": func(w http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			_, _ = w.Write([]byte("slow"))
		},
	})
	now := time.Now()
	s.fetcher.pages.now = func() time.Time { return now }
	for i, c := range []struct {
		later    time.Duration
		requests int32
	}{{0, 1}, {14 * time.Minute, 1}, {time.Minute, 2}} {
		now = now.Add(c.later)
		result, code := s.get("ORIGIN/a#" + string(rune('a'+i)))
		if code != "" || s.requests.Load() != c.requests {
			t.Fatalf("call %d: %q after %d requests, want %d", i, code, s.requests.Load(), c.requests)
		}
		if facts := result.Structured.(Fetched); facts.Cached != (i == 1) || i == 1 && facts.Age != 14*60 {
			t.Errorf("call %d: %+v", i, facts)
		}
	}
	for range 2 {
		_, _ = s.get("ORIGIN/missing")
	}
	if n := s.requests.Load(); n != 4 {
		t.Errorf("%d requests; what is not there is asked for again", n)
	}
	// The one who fetches is stopped; who waits takes over.
	ctx, stop := context.WithCancelCause(t.Context())
	first, second := make(chan error), make(chan error)
	fly := func(ctx context.Context, done chan error) {
		_, err := s.fetch(ctx, "ORIGIN/slow")
		done <- err
	}
	go fly(ctx, first)
	<-begun
	go fly(t.Context(), second)
	gone := errors.New("gone")
	stop(gone)
	if err := <-first; !errors.Is(err, gone) {
		t.Errorf("the one who was stopped: %v", err)
	}
	<-begun
	close(release)
	if err := <-second; err != nil {
		t.Errorf("the one who took over: %v", err)
	}
}

// What one principal has fetched, or has under some settings, another does not learn of, be it by a page's age.
func TestShelfIsOnePrincipals(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("text/plain", "words")})
	for _, c := range []struct {
		principal string
		allowed   []string
		denied    []string
		requests  int32
	}{
		{"uid:1", []string{"127.0.0.1"}, nil, 1},
		{"uid:1", []string{"127.0.0.1"}, nil, 1},
		{"uid:2", []string{"127.0.0.1"}, nil, 2},
		{"uid:1", []string{"127.0.0.1", "b.example"}, nil, 3},
		{"uid:1", []string{"127.0.0.1"}, []string{"b.example"}, 4},
		{"uid:2", []string{"127.0.0.1"}, nil, 4},
	} {
		action, err := s.tool.Parse([]byte(s.fill(`{"url":"ORIGIN/a"}`)))
		if err != nil {
			t.Fatal(err)
		}
		env := s.env()
		env.Principal, env.Reach = c.principal, tools.Reach{Allowed: c.allowed, Denied: c.denied}
		before := s.requests.Load()
		result, err := s.do(t.Context(), action, env)
		if err != nil || s.requests.Load() != c.requests || result.Structured.(Fetched).Cached != (before == c.requests) {
			t.Errorf("%+v: %v after %d requests, %+v", c, err, s.requests.Load(), result.Structured)
		}
	}
}

// What is kept is bounded.
func TestShelfIsBounded(t *testing.T) {
	s := newCache()
	for i := range 100 {
		name := strings.Repeat("x", i)
		_, _, err := s.get(t.Context(), name, func() (*page, error) { return &page{text: strings.Repeat("a", keptEach/2), keep: true}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.bytes > keptBytes || len(s.pages) != len(s.order) || len(s.pages) < 10 || len(s.flights) > 0 {
		t.Errorf("%d bytes of %d pages, %d in order, %d under way", s.bytes, len(s.pages), len(s.order), len(s.flights))
	}
	if _, cached, _ := s.get(t.Context(), "large", func() (*page, error) { return &page{text: strings.Repeat("a", keptEach), keep: true}, nil }); cached || s.pages["large"] != nil {
		t.Error("a page too large is kept")
	}
}

func TestURLs(t *testing.T) {
	tool := Tool("x")
	for url, hosts := range map[string]string{
		"https://Example.COM./a b": "example.com", "http://bücher.example/": "xn--bcher-kva.example", "https://[2606:4700::1111]:443/": "2606:4700::1111",
		"HTTP://example.com:8080": "example.com", "https://example.com?q": "example.com",
		"ftp://example.com/": "", "file:///etc/passwd": "", "javascript:alert(1)": "", "data:text/plain,a": "", "example.com": "", "//example.com/": "", "https:///a": "",
		"https://user:secret@example.com/": "", "https://user@example.com/": "", "https://example.com:25/": "", "https://example.com:0/": "", "https://example.com:99999/": "",
		"https://127.1/": "", "https://0x7f000001/": "", "https://2130706433/": "", "https://exa mple.com/": "", "https://[fe80::1%25eth0]/": "", "http:example.com": "",
		"https://a" + strings.Repeat("a", 300) + ".example/": "", "https://example.com/" + strings.Repeat("a", 9000): "", "https://exa%6dple.com/": "", "": "",
	} {
		action, err := tool.Parse([]byte(`{"url":"` + url + `"}`))
		if err != nil {
			if code := tooltest.Code(err); code != "invalid_input" || hosts != "" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%.60s: %v", url, err)
			}
			continue
		}
		if got := strings.Join(action.Effects().Hosts, " "); got != hosts {
			t.Errorf("%.60s contacts %q, want %q", url, got, hosts)
		}
	}
}

// A long fetch says how far it is.
func TestProgress(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"/a": says("text/plain", "a")})
	var steps []tools.Step
	env := s.env()
	env.Report = func(step tools.Step) { steps = append(steps, step) }
	action, err := s.tool.Parse([]byte(s.fill(`{"url":"ORIGIN/a"}`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := action.Run(t.Context(), env); err != nil || len(steps) == 0 || !strings.HasPrefix(steps[0].Message, "asking 127.0.0.1") {
		t.Errorf("%v, %+v", err, steps)
	}
}
