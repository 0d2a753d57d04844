package daemon

// gRPC statuses, for what concerns a stream and never for one tool use. Each carries an ErrorInfo, and for a field a
// BadRequest. It does not know which mistakes there are: who finds one names it.

import (
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// A refusal is why a stream or a unary call is not served.
type refusal struct {
	code    codes.Code
	reason  string // stable, lower_snake_case; listed in docs/errors.md
	field   string // of the request; empty: none
	message string
	cause   error                  // for the log alone
	about   []protoadapt.MessageV1 // further details of google.rpc
}

func refuse(code codes.Code, reason, format string, args ...any) *refusal {
	return &refusal{code: code, reason: reason, message: fmt.Sprintf(format, args...)}
}

// at blames a field of the request.
func (r *refusal) at(field string) *refusal {
	r.field = field
	return r
}

func (r *refusal) Error() string { return r.message }

// GRPCStatus is what grpc-go sends for the error.
func (r *refusal) GRPCStatus() *status.Status {
	plain := status.New(r.code, r.message)
	full, err := plain.WithDetails(append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "toold", Reason: r.reason}}, r.about...)...)
	if err == nil && r.field != "" {
		full, err = full.WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: r.field, Description: r.message},
		}})
	}
	if err != nil {
		return plain
	}
	return full
}
