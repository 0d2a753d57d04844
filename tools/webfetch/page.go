// Conversion of a response: text, an image, a document, or the sentence why nothing of it can be
// shown.

package webfetch

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/media/image"
	"github.com/toold/toold/tools/net/web"
)

// A page is a converted response. It is immutable.
type page struct {
	facts   Fetched // without what belongs to one call
	text    string
	image   *tools.Blob // nil: it is text
	keep    bool        // it may be cached
	fetched time.Time
}

// size returns the memory of the page, in bytes.
func (p *page) size() int {
	n := len(p.text) + 1<<10
	if p.image != nil {
		n += len(p.image.Data)
	}
	return n
}

// newPage converts the response of the server at that address; facts are already set in part.
func newPage(ctx context.Context, env *tools.Env, at *url.URL, answer *web.Answer, facts Fetched) (*page, error) {
	p := &page{facts: facts, keep: answer.Status == http.StatusOK}
	p.facts.URL, p.facts.Status = at.String(), answer.Status
	if facts.Redirect != "" {
		return p, nil
	}
	media := mediaType(answer)
	p.facts.MediaType, p.facts.Bytes, p.facts.Truncated = media, len(answer.Body), answer.Cut
	switch {
	case answer.Status >= 400 && !isText(media):
		return p, nil // the status is enough
	case answer.Cut && (image.Shown(media) || media == typePDF):
		return nil, fault.Failedf("response_too_large", "%s (%s) is larger than the limit, and a part of it cannot be shown. Use Bash to load it, if the network may be used there.", p.facts.URL, media).With(p.blob())
	case image.Shown(media):
		return p, p.draw(ctx, answer.Body)
	case media == typePDF:
		return p, p.pages(ctx, env, answer.Body)
	case !isText(media):
		return nil, fault.Failedf("unsupported_media", "%s is not text: %s, %s. WebFetch shows text, PNG, JPEG, GIF and WebP images and PDF documents. Use Bash with a program for the format, if there is one.",
			at.Redacted(), media, text.Count(len(answer.Body), "byte")).With(p.blob())
	}
	decoded, name := decode(answer.Body, answer.Header.Get("Content-Type"))
	p.facts.Charset = name
	if media == "text/html" || media == "application/xhtml+xml" {
		var cut bool
		p.text, p.facts.Title, cut = markdown(decoded, at)
		p.facts.Truncated = p.facts.Truncated || cut
		return p, nil
	}
	p.text = string(decoded)
	return p, nil
}

// isText reports whether content of that media type is shown unchanged.
func isText(media string) bool {
	kind, sub, _ := strings.Cut(media, "/")
	if kind == "text" || media == "image/svg+xml" {
		return true
	}
	words := []string{"json", "xml", "javascript", "ecmascript", "yaml", "toml", "sql", "graphql", "x-sh", "x-httpd-php", "x-ndjson", "x-tex"}
	return kind == "application" && slices.ContainsFunc(words, func(word string) bool {
		return sub == word || strings.HasSuffix(sub, "+"+word) || sub == "x-"+word
	})
}

// mediaType returns the media type of the response: the server's, unless the bytes contradict it.
func mediaType(answer *web.Answer) string {
	said, params, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // an invalid one counts as absent
	seen, _, _ := strings.Cut(http.DetectContentType(answer.Body), ";")
	if answer.Header.Get("Content-Type") == "" || said == "application/octet-stream" || said == "" {
		return seen
	}
	binary := bytes.IndexByte(answer.Body[:min(len(answer.Body), 1024)], 0) >= 0 && !strings.HasPrefix(strings.ToLower(params["charset"]), "utf-16")
	switch {
	case isText(said) && (image.Shown(seen) || seen == typePDF || binary && !strings.HasPrefix(seen, "text/")):
		return seen
	case (image.Shown(said) || said == typePDF) && said != seen:
		return seen
	}
	return said
}

// decode returns the body as UTF-8, and the name of its encoding: from a byte order mark, the
// server or the page; otherwise UTF-8 if it is valid, or else what browsers assume.
func decode(body []byte, contentType string) (decoded []byte, name string) {
	encoding, name, certain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" || !certain && utf8.Valid(body) {
		return bytes.ToValidUTF8(bytes.TrimPrefix(body, []byte("\uFEFF")), []byte("\uFFFD")), "utf-8"
	}
	decoded, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		decoded = body
	}
	return bytes.ToValidUTF8(decoded, []byte("\uFFFD")), name
}
