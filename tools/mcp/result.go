//go:build !no_mcp

// Conversion of a server's result. Every kind of block has its counterpart; what is too large or
// cannot be shown is described in a sentence.

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/media/image"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	// maxBlocks is how many blocks of one result are returned; our own number.
	maxBlocks = 200
	// maxBytes is the limit of all content other than text, in bytes. Most clients accept messages
	// of 4 MiB, and text, which is shortened elsewhere, needs room too.
	maxBytes = 3 << 20
)

// A structured is a JSON object from a server.
type structured json.RawMessage

// MarshalJSON returns the object unchanged.
func (s structured) MarshalJSON() ([]byte, error) { return s, nil }

// taken is a result that is being converted.
type taken struct {
	ctx    context.Context
	blocks []tools.Block
	bytes  int // of content other than text
}

// resultOf converts a server's result. The error is the server's own report that the call has
// failed.
func resultOf(ctx context.Context, server string, given *sdk.CallToolResult) (tools.Result, error) {
	t := taken{ctx: ctx}
	result := tools.Result{Structured: t.object(given.StructuredContent)}
	for i, content := range given.Content {
		if i == maxBlocks {
			t.say("(%d more blocks of the result are left out; the limit is %d.)", len(given.Content)-maxBlocks, maxBlocks)
			break
		}
		t.add(content)
	}
	if len(t.blocks) == 0 && result.Structured != nil {
		text, _ := json.Marshal(result.Structured)
		t.text(string(text))
	}
	if len(t.blocks) == 0 {
		t.say("(The server returned no content.)")
	}
	result.Content = t.blocks
	if given.IsError {
		return result, fault.Failedf("tool_failed", "The MCP server %s reports that the call has failed; its report is in the result.", server)
	}
	return result, nil
}

// object returns structured content as an object. Another value is wrapped in one, and a value that
// is too large is replaced by a sentence.
func (t *taken) object(content any) any {
	if content == nil {
		return nil
	}
	if _, is := content.(map[string]any); !is {
		content = map[string]any{"value": content}
	}
	text, err := json.Marshal(content)
	if err != nil || !t.room("application/json", len(text)) {
		return nil
	}
	return structured(text)
}

func (t *taken) text(text string) {
	if text = strings.ToValidUTF8(text, "�"); text != "" {
		t.blocks = append(t.blocks, tools.Block{Text: text})
	}
}

func (t *taken) say(format string, args ...any) { t.text(fmt.Sprintf(format, args...)) }

func (t *taken) add(content sdk.Content) {
	switch c := content.(type) {
	case *sdk.TextContent:
		t.text(c.Text)
	case *sdk.ImageContent:
		t.image(c.MIMEType, c.Data)
	case *sdk.AudioContent:
		t.document(c.MIMEType, c.Data)
	case *sdk.ResourceLink:
		link := tools.Link{URI: line(c.URI), Name: line(c.Name)}
		if t.room("a link", len(link.URI)+len(link.Name)) {
			t.blocks = append(t.blocks, tools.Block{Link: &link})
		}
	case *sdk.EmbeddedResource:
		t.resource(c.Resource)
	default:
		t.say("(A block of an unknown kind is left out.)")
	}
}

// line cleans a URI or a name for one line.
func line(text string) string {
	return ellipsis.Runes(strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(text)), maxDescription)
}

func (t *taken) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
		t.say("(A resource without content is left out.)")
	case r.Blob == nil:
		t.say("Resource %s:\n%s", line(r.URI), r.Text)
	default:
		t.say("Resource %s:", line(r.URI))
		if image.Shown(r.MIMEType) {
			t.image(r.MIMEType, r.Blob)
		} else {
			t.document(r.MIMEType, r.Blob)
		}
	}
}

// image adds an image in a form that model APIs accept: scaled down if it is too large, or
// described if it is invalid.
func (t *taken) image(media string, data []byte) {
	media, _, _ = strings.Cut(media, ";")
	if !image.Shown(media) {
		t.document(media, data)
		return
	}
	fitted, err := image.Fit(t.ctx, media, data, min(image.MaxBytes, maxBytes))
	switch {
	case err != nil && context.Cause(t.ctx) != nil:
		t.say("(An image of %d bytes is left out: the call was stopped before it was read.)", len(data))
	case err != nil:
		t.say("(An image, %s of %d bytes, is left out: %v.)", media, len(data), err)
	case t.room(media, len(fitted.Data)):
		t.blocks = append(t.blocks, tools.Block{Image: &tools.Blob{MediaType: fitted.MediaType, Data: fitted.Data}})
	}
}

// document adds bytes that are not an image.
func (t *taken) document(media string, data []byte) {
	media = line(media)
	if media == "" {
		media = "application/octet-stream"
	}
	if len(data) == 0 {
		t.say("(A block of %s without any data is left out.)", media)
		return
	}
	if t.room(media, len(data)) {
		t.blocks = append(t.blocks, tools.Block{Document: &tools.Blob{MediaType: media, Data: data}})
	}
}

// room reports whether size more bytes fit, and otherwise adds a description.
func (t *taken) room(media string, size int) bool {
	if t.bytes+size > maxBytes {
		t.say("(A block, %s of %d bytes, is left out: a result may have %d MiB in all.)", media, size, maxBytes>>20)
		return false
	}
	t.bytes += size
	return true
}
