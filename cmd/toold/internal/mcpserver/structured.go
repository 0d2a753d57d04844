package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// The structured part of a result goes from the daemon's message into the client's text. As values in between, a list of
// 100 files would cost more than all the rest of its call.

// The numbers of the fields on the way to it.
const (
	resultField     = 10 // ExecuteResponse.tool_result
	structuredField = 7  // ToolResult.structured
)

// undecoded returns a Dial whose connections leave the structured part of results undecoded: among their unknown fields.
func undecoded(dial toold.Dial) toold.Dial {
	return func(ctx context.Context) (*toold.Conn, error) {
		conn, err := dial(ctx)
		if err == nil {
			conn.Tools = tooldv1.NewToolServiceClient(events{conn.ClientConn})
		}
		return conn, err
	}
}

// An events is a connection whose streams have a codec of their own.
type events struct{ grpc.ClientConnInterface }

func (e events) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return e.ClientConnInterface.NewStream(ctx, desc, method, append(options, grpc.ForceCodecV2(codec{encoding.GetCodecV2(grpcproto.Name)}))...)
}

type codec struct{ encoding.CodecV2 }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	event, is := v.(*tooldv1.ExecuteResponse)
	if !is {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return decode(buffer.ReadOnlyData(), event)
}

// decode decodes an event, but for the structured part of a result.
func decode(wire []byte, event *tooldv1.ExecuteResponse) error {
	head, field, tail := cut(wire, resultField)
	if field == nil {
		return proto.Unmarshal(wire, event)
	}
	result := &tooldv1.ToolResult{}
	before, structured, after := cut(valueOf(field), structuredField)
	merge := proto.UnmarshalOptions{Merge: true}
	err := errors.Join(merge.Unmarshal(head, event), merge.Unmarshal(tail, event), merge.Unmarshal(before, result), merge.Unmarshal(after, result))
	result.ProtoReflect().SetUnknown(append(result.ProtoReflect().GetUnknown(), structured...))
	event.Event = &tooldv1.ExecuteResponse_ToolResult{ToolResult: result}
	return err
}

// cut returns the first field of that number in a message, with its tag, and what is before and behind it; nil: it has none. What
// is not a message is all before.
func cut(wire []byte, number protowire.Number) (before, field, after []byte) {
	for at := 0; at < len(wire); {
		found, kind, size := protowire.ConsumeField(wire[at:])
		if size < 0 {
			break
		}
		if found == number && kind == protowire.BytesType {
			return wire[:at], wire[at : at+size], wire[at+size:]
		}
		at += size
	}
	return wire, nil, nil
}

// structuredOf returns the structured part of a result as it came; nil: it has none.
func structuredOf(result *tooldv1.ToolResult) []byte {
	if _, field, _ := cut(result.ProtoReflect().GetUnknown(), structuredField); field != nil {
		return valueOf(field)
	}
	return nil
}

// valueOf returns the value of a field of bytes.
func valueOf(field []byte) []byte {
	_, _, size := protowire.ConsumeTag(field)
	value, _ := protowire.ConsumeBytes(field[size:])
	return value
}

// fields returns the fields of a message, without their tags and the lengths of bytes.
func fields(wire []byte) iter.Seq2[protowire.Number, []byte] {
	return func(yield func(protowire.Number, []byte) bool) {
		for len(wire) > 0 {
			number, kind, size := protowire.ConsumeTag(wire)
			if size < 0 {
				return
			}
			wire = wire[size:]
			var value []byte
			if kind == protowire.BytesType {
				value, size = protowire.ConsumeBytes(wire)
			} else if size = protowire.ConsumeFieldValue(number, kind, wire); size >= 0 {
				value = wire[:size]
			}
			if size < 0 || !yield(number, value) {
				return
			}
			wire = wire[size:]
		}
	}
}

// appendStruct appends an encoded google.protobuf.Struct as JSON, its members by their names, so that equal ones are equal texts.
func appendStruct(to, wire []byte) []byte {
	type member struct{ name, value []byte }
	list := make([]member, 0, 8)
	for _, entry := range fields(wire) {
		var m member
		for number, value := range fields(entry) {
			if number == 1 {
				m.name = value
			} else {
				m.value = value
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	for i, m := range list {
		to = append(to, "{,"[min(i, 1)])
		to = appendValue(append(appendString(to, string(m.name)), ':'), m.value)
	}
	if len(list) == 0 {
		to = append(to, '{')
	}
	return append(to, '}')
}

// appendValue appends an encoded google.protobuf.Value.
func appendValue(to, wire []byte) []byte {
	for number, value := range fields(wire) {
		switch number {
		case 2:
			return appendNumber(to, value)
		case 3:
			return appendString(to, string(value))
		case 4:
			set, _ := protowire.ConsumeVarint(value)
			return strconv.AppendBool(to, set != 0)
		case 5:
			return appendStruct(to, value)
		case 6:
			return appendList(to, value)
		}
	}
	return append(to, "null"...)
}

func appendList(to, wire []byte) []byte {
	to = append(to, '[')
	first := true
	for _, value := range fields(wire) {
		if !first {
			to = append(to, ',')
		}
		to, first = appendValue(to, value), false
	}
	return append(to, ']')
}

// appendNumber appends a double of eight bytes. What JSON has no number for is null.
func appendNumber(to, wire []byte) []byte {
	bits, _ := protowire.ConsumeFixed64(wire)
	number := math.Float64frombits(bits)
	if whole := int64(number); float64(whole) == number && whole > -1<<53 && whole < 1<<53 {
		return strconv.AppendInt(to, whole, 10)
	}
	text, err := json.Marshal(number)
	if err != nil {
		return append(to, "null"...)
	}
	return append(to, text...)
}
