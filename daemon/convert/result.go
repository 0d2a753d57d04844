// A call's result: never larger, nor nested deeper, than what clients take.

package convert

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/toold/toold/daemon/dialect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

const (
	// recordedResult is how many bytes a result may have on the wire: with what stands around it a
	// record stays below 4 MiB.
	recordedResult  = 3<<20 + 512<<10
	shownText       = 1 << 20
	shownStructured = 1 << 20 // as JSON
	// wiredStructured is the same on the wire, where a number takes several times what it takes in
	// JSON.
	wiredStructured = 2 << 20
	// nested is how deep objects and lists may nest. Clients in C++, Java and Python stop at 100
	// messages in each other; an object is three.
	nested = 25
	// smallPart is the size, in bytes, up to which leaving a part out gains nothing; crowdedBlocks
	// such blocks are far below recordedResult.
	smallPart, crowdedBlocks = 1 << 10, 1000
)

func resultOf(use *pipeline.Use, e pipeline.Ended) *tooldv1.ToolResult {
	result := &tooldv1.ToolResult{
		ToolUseId: use.ID, Index: uint32(use.Index), IsError: e.Outcome != pipeline.OK, Outcome: tooldv1.Outcome(e.Outcome),
		Error: errorOf(e.Fault), Structured: structOf(e.Structured), Confinement: confinementOf(e.Confined), Content: Each(e.Content, contentOf),
		Usage: &tooldv1.Usage{
			Waited: durationpb.New(e.Usage.Waited), Asked: durationpb.New(e.Usage.Asked), Ran: durationpb.New(e.Usage.Ran),
			OutputBytes: uint64(e.Usage.OutputBytes), PeakMemoryBytes: uint64(e.Usage.PeakMemory), Sandbox: Tier(e.Confined.Tier),
		},
	}
	if e.Spill != nil {
		result.Spill = &tooldv1.Spill{Path: Clean(e.Spill.Path), OmittedBytes: uint64(e.Spill.Bytes), OmittedLines: uint64(e.Spill.Lines)}
	}
	fit(result)
	return result
}

func contentOf(block tools.Block) *tooldv1.Content {
	switch {
	case block.Image != nil:
		return &tooldv1.Content{Block: &tooldv1.Content_Image{Image: blobOf(block.Image)}}
	case block.Document != nil:
		return &tooldv1.Content{Block: &tooldv1.Content_Document{Document: blobOf(block.Document)}}
	case block.Link != nil:
		return &tooldv1.Content{Block: &tooldv1.Content_Link{Link: &tooldv1.Link{Uri: Clean(block.Link.URI), Name: Clean(block.Link.Name)}}}
	}
	return &tooldv1.Content{Block: &tooldv1.Content_Text{Text: Shortened(block.Text, shownText)}}
}

func blobOf(b *tools.Blob) *tooldv1.Blob { return &tooldv1.Blob{MediaType: b.MediaType, Data: b.Data} }

func errorOf(e *fault.Error) *tooldv1.Error {
	if e == nil {
		return nil
	}
	return &tooldv1.Error{Code: e.Code, Message: Shortened(Visible(e.Message), shownFault), Field: Shortened(e.Field, ShownReason), Details: structOf(e.Details)}
}

// fit leaves the largest parts of a result out, and notes that in their place, until the rest is no
// larger than may be recorded.
func fit(result *tooldv1.ToolResult) {
	for proto.Size(result) > recordedResult {
		largest := slices.MaxFunc(partsOf(result), func(a, b part) int { return a.size - b.size })
		if largest.size <= smallPart {
			crowd(result)
			return
		}
		largest.omit(largest.size)
	}
}

// crowd leaves blocks out of a result that has too many of them, none of which is large.
func crowd(result *tooldv1.ToolResult) {
	if more := len(result.GetContent()) - crowdedBlocks; more > 0 {
		text := fmt.Sprintf("(%d more blocks of the result are left out: no more than %d are given.)", more, crowdedBlocks)
		result.Content = append(result.Content[:crowdedBlocks:crowdedBlocks], &tooldv1.Content{Block: &tooldv1.Content_Text{Text: text}})
	}
}

// A part is what of a result can be left out.
type part struct {
	size int // on the wire
	omit func(size int)
}

func partsOf(result *tooldv1.ToolResult) []part {
	parts := []part{
		{proto.Size(result.GetStructured()), func(size int) { result.Structured = omitted(size) }},
		{proto.Size(result.GetError().GetDetails()), func(size int) { result.Error.Details = omitted(size) }},
	}
	for i, content := range result.GetContent() {
		parts = append(parts, part{proto.Size(content), func(int) { result.Content[i] = omittedBlock(content) }})
	}
	return parts
}

// omitted stands for a value of that size.
func omitted(size int) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"omitted_bytes": structpb.NewNumberValue(float64(size))}}
}

// omittedBlock returns which block is left out.
func omittedBlock(content *tooldv1.Content) *tooldv1.Content {
	what, size := "A block", proto.Size(content)
	for _, blob := range []*tooldv1.Blob{content.GetImage(), content.GetDocument()} {
		if blob != nil {
			what, size = "A block, "+Short(Visible(blob.GetMediaType()))+",", len(blob.GetData())
		}
	}
	text := fmt.Sprintf("(%s of %d bytes is left out: all of a result may have no more than %d.)", what, size, recordedResult)
	return &tooldv1.Content{Block: &tooldv1.Content_Text{Text: text}}
}

// How much a client may give as one result, in bytes on the wire: what is recorded of it stays
// below what most clients take.
const (
	takenBlocks = 200
	takenResult = 3 << 20
)

// ResultIn puts what a client's tool has returned into a result. Its error means that the tool has
// failed.
func ResultIn(wire *tooldv1.ClientToolResult) (result tools.Result, err error) {
	if blocks, size := len(wire.GetContent()), proto.Size(wire); blocks > takenBlocks || size > takenResult {
		return result, fault.Failedf("tool_failed", "The client's tool gave %d blocks with %d bytes, but no more than %d blocks with %d bytes, all of them together with what is structured, are taken.", blocks, size, takenBlocks, takenResult)
	}
	result.Content = Each(wire.GetContent(), Block)
	if wire.GetStructured() != nil {
		result.Structured = wire.GetStructured().AsMap()
	}
	if wire.GetIsError() {
		text := cmp.Or(append(Each(result.Content, func(b tools.Block) string { return b.Text }), "The client's tool has failed and does not say why.")...)
		return result, fault.Failedf("tool_failed", "%s", Shortened(text, ShownAnswer)) // in the words of its result
	}
	return result, nil
}

// ForModel returns what a result has for the model, which is what was wrong where its content has nothing to read.
func ForModel(r *tooldv1.ToolResult) dialect.Output {
	blocks := Each(r.GetContent(), Block)
	if r.GetError() != nil && !slices.ContainsFunc(blocks, dialect.Spoken) {
		blocks = []tools.Block{{Text: r.GetError().GetMessage()}}
	}
	stopped := slices.Contains([]tooldv1.Outcome{
		tooldv1.Outcome_OUTCOME_CANCELLED, tooldv1.Outcome_OUTCOME_ABORTED, tooldv1.Outcome_OUTCOME_INTERRUPTED, tooldv1.Outcome_OUTCOME_DISCARDED,
	}, r.GetOutcome())
	return dialect.Output{Blocks: blocks, IsError: r.GetIsError(), Stopped: stopped, Structured: r.GetStructured().MarshalJSON}
}

// Block returns a block of content.
func Block(content *tooldv1.Content) tools.Block {
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
