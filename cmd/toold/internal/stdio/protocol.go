package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// The codes of errors that JSON-RPC 2.0 gives; all others are the numbers of gRPC's.
const (
	codeParse   = -32700
	codeRequest = -32600
	codeMethod  = -32601
	codeParams  = -32602
)

// A request is a request or, without an id, a notification of the client.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// parse reads a line. Its error is to be answered; the request then has the id, if the line has one.
func parse(line []byte) (r request, failed *failure) {
	if !json.Valid(line) {
		return r, &failure{Code: codeParse, Message: "the line is not JSON: a message is one line of it"}
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return request{}, &failure{Code: codeRequest, Message: "the line is not a request of JSON-RPC, which is one object with a method"}
	}
	switch {
	case len(r.ID) > 0 && r.ID[0] != '"' && r.ID[0] != '-' && (r.ID[0] < '0' || r.ID[0] > '9'):
		r.ID = nil
		return r, &failure{Code: codeRequest, Message: "an id is a string or a number"}
	case r.Version != "2.0":
		return r, &failure{Code: codeRequest, Message: `"jsonrpc" is not "2.0"`}
	case r.Method == "":
		return r, &failure{Code: codeRequest, Message: "there is no method"}
	}
	return r, nil
}

// A failure is the error of a request.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    *data  `json:"data,omitempty"`
}

// data is what of a status of gRPC is for programs.
type data struct {
	Status   string            `json:"status"`
	Reason   string            `json:"reason,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// failureOf returns the failure of a method.
func failureOf(err error) *failure {
	s, is := status.FromError(err)
	if e, isCLI := errors.AsType[*cli.Error](err); isCLI { // no daemon could be reached
		s, is = status.New(codes.Unavailable, e.Text), true
	}
	if !is {
		s = status.FromContextError(err)
	}
	f := &failure{Code: int(s.Code()), Message: s.Message(), Data: &data{Status: code.Code(s.Code()).String()}}
	for _, detail := range s.Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			f.Data.Reason, f.Data.Metadata = info.GetReason(), info.GetMetadata()
		}
	}
	return f
}

// methodOf returns the method of the contract that a request names, such as "ToolService/RunTool"; nil: there is none.
func methodOf(name string) protoreflect.MethodDescriptor {
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

// newMessage returns an empty message of that type, which is one of the contract.
func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(fmt.Sprintf("BUG: %s has no type: %v", d.FullName(), err))
	}
	return t.New().Interface()
}

// decode reads a message from JSON; nothing is an empty one.
func decode(text json.RawMessage, into proto.Message) *failure {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	if err := protojson.Unmarshal(text, into); err != nil {
		// The library's text has a space at random, so that nobody compares it.
		why := strings.TrimLeft(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"), " ")
		return &failure{Code: codeParams, Message: fmt.Sprintf("the parameters are not those of %s: %s", into.ProtoReflect().Descriptor().Name(), why)}
	}
	return nil
}

// encode returns a message as JSON on one line.
func encode(m proto.Message) json.RawMessage {
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

// A writer writes lines. It is safe for concurrent use; who writes waits for a client that does not read.
type writer struct {
	mu     sync.Mutex
	out    io.Writer
	broken func() // is called when nothing can be written any more
}

// answer is a line that is a response.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

// notice is a line that is a notification.
type notice struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

func (w *writer) result(id json.RawMessage, result json.RawMessage) {
	w.write(answer{Version: "2.0", ID: id, Result: result})
}

// refuse answers a request with a failure. Without an id the answer has null for it, as JSON-RPC wants.
func (w *writer) refuse(id json.RawMessage, f *failure) {
	if id == nil {
		id = json.RawMessage("null")
	}
	w.write(answer{Version: "2.0", ID: id, Error: f})
}

func (w *writer) notify(method string, params any) { w.write(notice{"2.0", method, params}) }

func (w *writer) write(line any) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		panic(fmt.Sprintf("BUG: a line that is not JSON: %v", err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(b.Bytes()); err != nil {
		w.broken()
	}
}
