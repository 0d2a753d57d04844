package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/daemon/contract"
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

// failure is the error of a request.
type failure = contract.Failure

// failureOf returns the failure of a method.
func failureOf(err error) *failure {
	if e, is := errors.AsType[*cli.Error](err); is { // no daemon could be reached
		err = status.Error(codes.Unavailable, e.Text)
	}
	return contract.FailureOf(err)
}

// decode reads the parameters of a method from JSON; none are an empty message.
func decode(text json.RawMessage, into proto.Message) *failure {
	if err := contract.Decode(text, into); err != nil {
		return &failure{Code: codeParams, Message: fmt.Sprintf("the parameters are not those of %s: %s", into.ProtoReflect().Descriptor().Name(), err)}
	}
	return nil
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
