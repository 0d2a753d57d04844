// Package contract has the methods of toold.v1 by their names, and their messages and errors in the form of JSON, for transports other
// than gRPC. It is made of the descriptors: a method that is added to the contract is there without a line here.
package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Method returns the method with that name, such as "ToolService/RunTool"; nil: there is none.
func Method(name string) protoreflect.MethodDescriptor {
	service, method, _ := strings.Cut(name, "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("toold.v1." + service))
	if err != nil {
		return nil
	}
	if s, is := found.(protoreflect.ServiceDescriptor); is {
		return s.Methods().ByName(protoreflect.Name(method))
	}
	return nil
}

// Path returns how gRPC names the method: "/toold.v1.ToolService/RunTool".
func Path(method protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
}

// New returns an empty message of that type, which is one of the contract.
func New(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(fmt.Sprintf("BUG: %s has no type: %v", d.FullName(), err))
	}
	return t.New().Interface()
}

// Decode reads a message from ProtoJSON; no text, or null, is an empty message. The error is a sentence for the caller of the method.
func Decode(text []byte, into proto.Message) error {
	if text = bytes.TrimSpace(text); len(text) == 0 || string(text) == "null" {
		return nil
	}
	if err := protojson.Unmarshal(text, into); err != nil {
		// The library's text has a space at random, so that nobody compares it.
		why := strings.TrimLeft(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"), " ")
		return errors.New(why)
	}
	return nil
}

// Encode returns a message as ProtoJSON on one line, with the field names of the contract.
func Encode(m proto.Message) json.RawMessage {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("BUG: a %s that is not JSON: %v", m.ProtoReflect().Descriptor().Name(), err))
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return line.Bytes()
}

// A Failure is an error of a method.
type Failure struct {
	// Code is the number of gRPC's status code, or of the transport that refused the request.
	Code int `json:"code"`
	// Message is a sentence for a person.
	Message string `json:"message"`
	// Data is for programs; nil: there is none.
	Data *Data `json:"data,omitempty"`
}

// Data is the part of a gRPC status that is for programs.
type Data struct {
	Status   string            `json:"status"`             // gRPC's name for the code, such as "NOT_FOUND"
	Reason   string            `json:"reason,omitempty"`   // as docs/errors.md lists it
	Metadata map[string]string `json:"metadata,omitempty"` // what goes with the reason
}

// FailureOf returns an error of a method as a Failure. An error that has no status is that of a context, or UNKNOWN.
func FailureOf(err error) *Failure {
	s, is := status.FromError(err)
	if !is {
		s = status.FromContextError(err)
	}
	f := &Failure{Code: int(s.Code()), Message: s.Message(), Data: &Data{Status: code.Code(s.Code()).String()}}
	for _, detail := range s.Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			f.Data.Reason, f.Data.Metadata = info.GetReason(), info.GetMetadata()
		}
	}
	return f
}
