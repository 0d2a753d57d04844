// What search engines answer, read with distrust. It does not know what was asked.

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
	"github.com/toold/toold/tools/web"
)

// said is an engine's answer.
type said struct {
	hits         []Hit
	answers      []string
	unresponsive []string
}

// understand reads the answer of the call's engine.
func (in input) understand(answer *web.Answer) (said, error) {
	host := in.at.Host
	switch {
	case answer.Status == http.StatusForbidden && in.backend.Kind == SearXNG:
		return said{}, fault.Failedf("search_failed", "%s does not answer in JSON (403). Its own settings must list json under search.formats.", host)
	case answer.Status == http.StatusUnauthorized, answer.Status == http.StatusForbidden:
		return said{}, fault.Failedf("search_failed", "%s refuses the key (%s). The user has to look at BRAVE_API_KEY.", host, answer.Reason)
	case answer.Status == http.StatusTooManyRequests:
		return said{}, fault.Failedf("search_failed", "%s wants fewer questions (%s). Wait before searching again.", host, answer.Reason)
	case answer.Status != http.StatusOK:
		return said{}, fault.Failedf("search_failed", "%s answered %s instead of results. Search again later, or do without it.", host, answer.Reason)
	}
	read := readSearXNG
	if in.backend.Kind == Brave {
		read = readBrave
	}
	found, err := read(answer.Body)
	if err != nil || answer.Cut {
		return said{}, fault.Failedf("search_failed", "What %s answered are no search results. The user has to look at webSearch in the settings.", host)
	}
	return found, nil
}

// readSearXNG reads what SearXNG gives with format=json. Answers are texts, or objects that hold one.
func readSearXNG(body []byte) (said, error) {
	var answer struct {
		Results []struct {
			URL, Title, Content string
		} `json:"results"`
		Answers      []json.RawMessage `json:"answers"`
		Unresponsive [][]any           `json:"unresponsive_engines"` // of name and reason
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return said{}, err
	}
	var s said
	for _, r := range answer.Results {
		s.add(r.Title, r.URL, r.Content)
	}
	for _, raw := range answer.Answers {
		var word string
		var object struct{ Answer string }
		if json.Unmarshal(raw, &word) != nil && json.Unmarshal(raw, &object) == nil {
			word = object.Answer
		}
		if word = tidy(word, longestExcerpt); word != "" && len(s.answers) < maxAsides {
			s.answers = append(s.answers, word)
		}
	}
	for _, engine := range answer.Unresponsive {
		if len(engine) == 0 || len(s.unresponsive) == maxAsides {
			continue
		}
		if name, ok := engine[0].(string); ok {
			s.unresponsive = append(s.unresponsive, tidy(name, longestTitle))
		}
	}
	return s, nil
}

// readBrave reads what Brave's search for web pages gives.
func readBrave(body []byte) (said, error) {
	var answer struct {
		Web struct {
			Results []struct {
				URL, Title, Description string
			} `json:"results"`
		} `json:"web"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return said{}, err
	}
	var s said
	for _, r := range answer.Web.Results {
		s.add(r.Title, r.URL, r.Description)
	}
	return s, nil
}

// The bounds of what is taken over; the first two in characters.
const (
	longestTitle   = 200
	longestExcerpt = 1000
	maxAsides      = 10
	maxHits        = 200
)

func (s *said) add(title, url, excerpt string) {
	if len(s.hits) < maxHits {
		s.hits = append(s.hits, Hit{Title: tidy(title, longestTitle), URL: strings.TrimSpace(url), Excerpt: tidy(excerpt, longestExcerpt)})
	}
}

// tag matches the marks around words that were searched for.
var tag = regexp.MustCompile(`</?(?:strong|b|em|mark|span)(?:\s[^<>]*)?>`)

// tidy makes one line of plain text, without what cannot be seen.
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
	words = strings.Join(strings.Fields(words), " ")
	if r := []rune(words); len(r) > most {
		return string(r[:most]) + "..."
	}
	return words
}

// unseen says whether a character is none that a person would see.
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}
