// Parsing of search engines' responses, which are not trusted.

package websearch

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/net/web"
	"github.com/toold/toold/tools/text/ellipsis"
)

// failedf makes a fault search_failed.
func failedf(format string, args ...any) error {
	return fault.Failedf("search_failed", format, args...)
}

// understand parses the response of the call's engine.
func (in input) understand(answer *web.Answer) (Found, error) {
	host, found := in.at.Host, Found{Query: in.Query, Backend: in.backend.Kind}
	switch {
	case answer.Status == http.StatusForbidden && in.backend.Kind == SearXNG:
		return found, failedf("%s does not answer in JSON (403). Its own settings must list json under search.formats.", host)
	case answer.Status == http.StatusUnauthorized, answer.Status == http.StatusForbidden:
		return found, failedf("%s rejects the key (%s). Ask the user to check BRAVE_API_KEY.", host, answer.Reason)
	case answer.Status == http.StatusTooManyRequests:
		return found, failedf("%s limits the rate of searches (%s). Wait before searching again.", host, answer.Reason)
	case answer.Status != http.StatusOK:
		return found, failedf("%s answered %s instead of results. Search again later, or do without it.", host, answer.Reason)
	}
	read := found.readSearXNG
	if in.backend.Kind == Brave {
		read = found.readBrave
	}
	if read(answer.Body) != nil || answer.Cut {
		return found, failedf("The response of %s has no search results. Ask the user to check webSearch in the settings.", host)
	}
	return found, nil
}

// readSearXNG parses the response of SearXNG with format=json. Answers are texts, or objects that
// hold one. Its engines write results in different ways: an invalid one is left out, and the others
// count.
func (f *Found) readSearXNG(body []byte) error {
	var answer struct {
		Results      []json.RawMessage `json:"results"`
		Answers      pieces            `json:"answers"`
		Unresponsive pieces            `json:"unresponsive_engines"` // of name and reason
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	for _, raw := range answer.Results {
		var r struct{ URL, Title, Content string }
		f.add(json.Unmarshal(raw, &r), r.Title, r.URL, r.Content)
	}
	for _, raw := range answer.Answers {
		var word string
		var object struct{ Answer string }
		if json.Unmarshal(raw, &word) != nil && json.Unmarshal(raw, &object) == nil {
			word = object.Answer
		}
		if word = tidy(word, longestExcerpt); word != "" && len(f.Answers) < maxAsides {
			f.Answers = append(f.Answers, word)
		}
	}
	for _, raw := range answer.Unresponsive {
		var engine []any
		if json.Unmarshal(raw, &engine) != nil || len(engine) == 0 || len(f.Unresponsive) == maxAsides {
			continue
		}
		if name, ok := engine[0].(string); ok {
			f.Unresponsive = append(f.Unresponsive, tidy(name, longestTitle))
		}
	}
	return nil
}

// pieces are the elements of a list; none for any other value.
type pieces []json.RawMessage

// UnmarshalJSON never fails.
func (p *pieces) UnmarshalJSON(data []byte) error {
	_ = json.Unmarshal(data, (*[]json.RawMessage)(p))
	return nil
}

// readBrave parses the response of Brave's web search.
func (f *Found) readBrave(body []byte) error {
	var answer struct {
		Web struct {
			Results []json.RawMessage `json:"results"`
		} `json:"web"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	for _, raw := range answer.Web.Results {
		var r struct{ URL, Title, Description string }
		f.add(json.Unmarshal(raw, &r), r.Title, r.URL, r.Description)
	}
	return nil
}

// The limits of a result; the first two in characters.
const (
	longestTitle   = 200
	longestExcerpt = 1000
	maxAsides      = 10
	maxHits        = 200
)

// add adds a result, unless it was invalid or there are too many.
func (f *Found) add(wrong error, title, url, excerpt string) {
	if wrong != nil || len(f.Results) == maxHits {
		f.LeftOut++
		return
	}
	f.Results = append(f.Results, Hit{Title: tidy(title, longestTitle), URL: strings.TrimSpace(url), Excerpt: tidy(excerpt, longestExcerpt)})
}

// tag matches the marks around words that were searched for.
var tag = regexp.MustCompile(`</?(?:strong|b|em|mark|span)(?:\s[^<>]*)?>`)

// tidy returns one line of plain text, without invisible characters.
func tidy(words string, most int) string {
	words = html.UnescapeString(tag.ReplaceAllString(words[:min(len(words), 16*most)], ""))
	words = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unseen(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(words, ""))
	return ellipsis.Runes(strings.Join(strings.Fields(words), " "), most)
}

// unseen reports whether a character is invisible.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}
