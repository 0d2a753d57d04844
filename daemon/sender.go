// What a stream sends. A record is kept as it is on the wire, less its number and time, so it is
// sent without being decoded and encoded again, and all streams send the same bytes.

package daemon

import (
	"slices"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An eventSender is the sending side of a method that streams events, as they are or as the field event
// of its responses.
type eventSender struct {
	send   func(message any) error
	within func(*tooldv1.ExecuteResponse) any // makes a response; nil: the event is one
}

// event sends an event.
func (o eventSender) event(e *tooldv1.ExecuteResponse) error {
	if o.within != nil {
		return o.send(o.within(e))
	}
	return o.send(e)
}

// Numbers of fields in the contract.
const (
	fieldSeq      = 1 // of ExecuteResponse, and so on
	fieldTime     = 2
	fieldAccepted = 5
	fieldResult   = 10
	fieldValues   = 7 // of ToolResult
	fieldReplayed = 6 // of Accepted
	fieldInput    = 9
	fieldEvent    = 1 // of WatchResponse and RunToolResponse
	fieldSeconds  = 1 // of Timestamp
	fieldNanos    = 2
)

// record sends a record with that body, which is in parts.
func (o eventSender) record(r journal.Record, body ...[]byte) error {
	at := make([]byte, 0, 16)
	at = protowire.AppendVarint(protowire.AppendTag(at, fieldSeconds, protowire.VarintType), uint64(r.Time.Unix()))
	at = protowire.AppendVarint(protowire.AppendTag(at, fieldNanos, protowire.VarintType), uint64(r.Time.Nanosecond()))
	head := make([]byte, 0, 48)
	head = protowire.AppendVarint(protowire.AppendTag(head, fieldSeq, protowire.VarintType), r.Seq)
	head = protowire.AppendBytes(protowire.AppendTag(head, fieldTime, protowire.BytesType), at)
	if o.within != nil {
		around := protowire.AppendTag(make([]byte, 0, 48), fieldEvent, protowire.BytesType)
		size := len(head)
		for _, part := range body {
			size += len(part)
		}
		head = append(protowire.AppendVarint(around, uint64(size)), head...)
	}
	return o.send(append(encoded{head}, body...))
}

// encoded is a message as it is on the wire, in parts that are not changed.
type encoded [][]byte

// event decodes a record that was to be sent as it is.
func (e encoded) event() (*tooldv1.ExecuteResponse, error) {
	event := &tooldv1.ExecuteResponse{}
	err := proto.Unmarshal(slices.Concat(e...), event)
	return event, err
}

// A codec is that of protocol buffers, which also takes what is encoded already.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	if e, is := message.(encoded); is {
		parts := make(mem.BufferSlice, 0, len(e))
		for _, part := range e {
			parts = append(parts, mem.SliceBuffer(part))
		}
		return parts, nil
	}
	return c.CodecV2.Marshal(message)
}

// acceptedBody returns the body of an Accepted record, without the call's input or marked as one
// that answers a tool use that was sent again. What cannot be read is returned as it is.
func acceptedBody(body []byte, input, replayed bool) []byte {
	from, end, old := findField(body, fieldAccepted)
	if end == 0 {
		return body
	}
	accepted := old
	if inputFrom, inputEnd, _ := findField(old, fieldInput); !input && inputEnd > 0 {
		accepted = slices.Concat(old[:inputFrom], old[inputEnd:])
	}
	if replayed {
		accepted = protowire.AppendTag(slices.Clip(accepted), fieldReplayed, protowire.VarintType)
		accepted = protowire.AppendVarint(accepted, 1)
	}
	if len(accepted) == len(old) {
		return body
	}
	shown := append(make([]byte, 0, len(body)+2), body[:from]...)
	shown = protowire.AppendBytes(protowire.AppendTag(shown, fieldAccepted, protowire.BytesType), accepted)
	return append(shown, body[end:]...)
}

// plainBody returns the body of a ToolResult's record without what is structured, as parts of it. What cannot be read is
// returned as it is.
func plainBody(body []byte) [][]byte {
	from, end, result := findField(body, fieldResult)
	valuesFrom, valuesEnd, _ := findField(result, fieldValues)
	if valuesEnd == 0 {
		return [][]byte{body}
	}
	head := protowire.AppendTag(slices.Clip(body[:from]), fieldResult, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(result)-(valuesEnd-valuesFrom)))
	return [][]byte{head, result[:valuesFrom], result[valuesEnd:], body[end:]}
}

// findField finds a field of bytes in a message: where it begins and ends, and what it holds. end 0:
// the message has no such field, or cannot be read.
func findField(message []byte, number protowire.Number) (from, end int, value []byte) {
	for from < len(message) {
		found, kind, tag := protowire.ConsumeTag(message[from:])
		if tag < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(found, kind, message[from+tag:])
		if size < 0 {
			break
		}
		if found == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[from+tag:])
			return from, from + tag + size, value
		}
		from += tag + size
	}
	return 0, 0, nil
}
