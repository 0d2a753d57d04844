// What a client's tool has given, as the daemon's own value.

package daemon

import (
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// How much a client may give as one result, in bytes on the wire: what is recorded of it stays below what most clients take.
const (
	takenBlocks = 200
	takenResult = 3 << 20
)

// resultIn puts what a client's tool gave into a result. Its error says that the tool has failed.
func resultIn(wire *tooldv1.ClientToolResult) (result tools.Result, err error) {
	if blocks, size := len(wire.GetContent()), proto.Size(wire); blocks > takenBlocks || size > takenResult {
		return result, fault.Failedf("tool_failed", "The client's tool gave %d blocks with %d bytes, but no more than %d blocks with %d bytes, all of them together with what is structured, are taken.", blocks, size, takenBlocks, takenResult)
	}
	text := ""
	for _, content := range wire.GetContent() {
		block := blockIn(content)
		result.Content = append(result.Content, block)
		if text == "" {
			text = block.Text
		}
	}
	if wire.GetStructured() != nil {
		result.Structured = wire.GetStructured().AsMap()
	}
	if wire.GetIsError() {
		return result, failedTool(text)
	}
	return result, nil
}

func blockIn(content *tooldv1.Content) tools.Block {
	switch block := content.GetBlock().(type) {
	case *tooldv1.Content_Image:
		return tools.Block{Image: &tools.Blob{MediaType: block.Image.GetMediaType(), Data: block.Image.GetData()}}
	case *tooldv1.Content_Document:
		return tools.Block{Document: &tools.Blob{MediaType: block.Document.GetMediaType(), Data: block.Document.GetData()}}
	case *tooldv1.Content_Link:
		return tools.Block{Link: &tools.Link{URI: block.Link.GetUri(), Name: block.Link.GetName()}}
	}
	return tools.Block{Text: content.GetText()}
}
