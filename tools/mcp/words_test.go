//go:build !no_mcp

package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestWords: an error names the host of a server, and neither the rest of its address nor its headers.
func TestWords(t *testing.T) {
	e := Entry{URL: "https://user:secret-word@api.example.com:8443/mcp/secret-path?key=secret-key", Headers: map[string]string{"X": "secret-header", "Y": "1"}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&url.Error{Op: "Post", URL: e.URL, Err: errors.New("refused 1")}, `Post "https://api.example.com:8443": refused 1`},
		{errors.New("bad header secret-header, path mcp/secret-path, query key=secret-key"), "bad header ..., path ..., query ..."},
		{errors.New("plain"), "plain"},
		{fmt.Errorf("%w: calling %q: %w", sdk.ErrConnectionClosed, "tools/call", io.EOF), "it closed the connection"},
	} {
		if got := e.words(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := (Entry{}).words(errors.New("x")); got != "x" {
		t.Errorf("%q", got)
	}
}
