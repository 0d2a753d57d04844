// Lists of content blocks that a program prints. An invalid list is reported; anything else is
// text.

package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/media/image"
)

const (
	// maxList is the longest list of blocks, in bytes. Longer output is text. A message to a model
	// API ends at 32 MB.
	maxList = 16 << 20
	// maxBlocks is how many blocks it may hold; our own number.
	maxBlocks = 200
)

// A listing keeps the output while it may be a list: it begins with [ and is not too long.
type listing struct {
	kept  bytes.Buffer
	never bool
}

func (l *listing) Write(p []byte) (int, error) {
	if l.never {
		return len(p), nil
	}
	l.kept.Write(p)
	begun := bytes.TrimLeft(l.kept.Bytes()[:min(l.kept.Len(), 1<<10)], " \t\r\n")
	if l.kept.Len() > maxList || len(begun) > 0 && begun[0] != '[' {
		l.never, l.kept = true, bytes.Buffer{}
	}
	return len(p), nil
}

// A block is one block as printed. Both spellings of the media type are common, and so are both
// names of a link.
type block struct {
	Type      string  `json:"type"`
	Text      *string `json:"text"`
	Data      []byte  `json:"data"` // base64
	MediaType string  `json:"mediaType"`
	MIMEType  string  `json:"mimeType"`
	URI       string  `json:"uri"`
	Name      string  `json:"name"`

	wrong error // why it cannot be parsed
}

// blocks returns the content that was printed as a list. is reports whether it was one: a list of
// non-empty objects with known types. The error names an invalid one.
func (l *listing) blocks(ctx context.Context) (content []tools.Block, is bool, err error) {
	if l.never {
		return nil, false, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(l.kept.Bytes(), &items) != nil || len(items) == 0 {
		return nil, false, nil
	}
	list := make([]block, len(items))
	for i, item := range items {
		b := &list[i]
		b.wrong = json.Unmarshal(item, b)
		if !slices.Contains([]string{"text", "image", "document", "link", "resource_link"}, b.Type) {
			return nil, false, nil
		}
	}
	if len(list) > maxBlocks {
		return nil, true, fmt.Errorf("it has %d blocks, more than the limit of %d", len(list), maxBlocks)
	}
	for i, b := range list {
		if content, err = b.add(ctx, content); err != nil {
			return nil, true, fmt.Errorf("block %d: %w", i+1, err)
		}
	}
	return content, true, nil
}

// add adds the block to those before it.
func (b *block) add(ctx context.Context, to []tools.Block) ([]tools.Block, error) {
	media, _, _ := strings.Cut(b.MediaType+b.MIMEType, ";")
	switch {
	case b.wrong != nil:
		return nil, b.wrong
	case b.Type == "text" && b.Text == nil:
		return nil, errors.New(`a text has a "text"`)
	case b.Type == "text" && *b.Text == "":
		return to, nil
	case b.Type == "text":
		return append(to, tools.Block{Text: *b.Text}), nil
	case b.Type == "link" || b.Type == "resource_link":
		if b.URI == "" {
			return nil, errors.New(`a link has a "uri"`)
		}
		return append(to, tools.Block{Link: &tools.Link{URI: b.URI, Name: b.Name}}), nil
	case len(b.Data) == 0 || media == "" || b.MediaType != "" && b.MIMEType != "":
		return nil, errors.New(`an image or a document has "data" in base64 and a "mediaType"`)
	case b.Type == "document":
		return append(to, tools.Block{Document: &tools.Blob{MediaType: media, Data: b.Data}}), nil
	}
	if !image.Shown(media) {
		return nil, fmt.Errorf("%q is not a kind of image that can be shown; send it as a document", media)
	}
	fitted, err := image.Fit(ctx, media, b.Data, image.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("the image, %s of %d bytes, cannot be used: %w", media, len(b.Data), err)
	}
	return append(to, tools.Block{Image: &tools.Blob{MediaType: fitted.MediaType, Data: fitted.Data}}), nil
}
