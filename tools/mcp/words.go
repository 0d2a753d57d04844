//go:build !no_mcp

// What went wrong, in words that do not give away what an entry holds in confidence: the values of variables may stand in its
// address and its headers. Pure.

package mcp

import (
	"net/url"
	"strings"
)

// words returns the text of an error without the address beyond its host, and without the headers' values.
func (e Entry) words(err error) string {
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

// leastSecret is the least length, in bytes, of a value that is taken out of words by itself: shorter ones are parts of too
// much else. Ours.
const leastSecret = 6
