//go:build !no_mcp

// Error texts without the secrets of an entry: the values of variables may be in its URL and its
// headers. Pure.

package mcp

import (
	"errors"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools/text/ellipsis"
)

// words returns the text of an error with the URL cut to its host, and without the headers' values.
func (e Entry) words(err error) string {
	if errors.Is(err, sdk.ErrConnectionClosed) { // whose own text has the method of the protocol
		return "it closed the connection"
	}
	var pairs []string
	if u, wrong := url.Parse(e.URL); wrong == nil && e.URL != "" {
		host := u.Scheme + "://" + u.Host
		pairs = append(pairs, e.URL, host, u.String(), host)
		for _, part := range []string{u.RawQuery, strings.TrimPrefix(u.Path, "/")} {
			if len(part) >= leastSecret {
				pairs = append(pairs, part, "...")
			}
		}
	}
	for _, value := range e.Headers {
		if len(value) >= leastSecret {
			pairs = append(pairs, value, "...")
		}
	}
	return strings.NewReplacer(pairs...).Replace(err.Error())
}

// brief is words for the line of a message.
func (e Entry) brief(err error) string { return ellipsis.Runes(line(e.words(err)), 300) }

// leastSecret is the shortest value, in bytes, that is removed from texts by itself: shorter ones
// are parts of too many other words. Our own number.
const leastSecret = 6
