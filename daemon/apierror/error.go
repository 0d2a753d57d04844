// Package apierror is the error that a client of the API gets: a gRPC status with a stable reason.
package apierror

import (
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// An Error is why a stream or a unary call is not served, as a gRPC status with details. Its
// message and field are for clients.
type Error struct {
	Code    codes.Code
	Reason  string // stable, lower_snake_case; listed in docs/errors.md
	Field   string // of the request; empty: none
	Message string
	Cause   error                  // for the log only: it is not sent
	Details []protoadapt.MessageV1 // further details of google.rpc
}

// New returns an error with a message made as fmt.Sprintf does.
func New(code codes.Code, reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// At sets the field of the request that is wrong, and returns the error.
func (e *Error) At(field string) *Error {
	e.Field = field
	return e
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// GRPCStatus returns what grpc-go sends for the error.
func (e *Error) GRPCStatus() *status.Status {
	plain := status.New(e.Code, e.Message)
	full, err := plain.WithDetails(append([]protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "toold", Reason: e.Reason}}, e.Details...)...)
	if err == nil && e.Field != "" {
		full, err = full.WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: e.Field, Description: e.Message},
		}})
	}
	if err != nil {
		return plain
	}
	return full
}

// Invalidf returns an error about a field of the request that has a value which is not allowed;
// field may be empty.
func Invalidf(reason, field, format string, args ...any) *Error {
	return New(codes.InvalidArgument, reason, format, args...).At(field)
}

// NotFoundf returns an error about a field of the request that names nothing which is there.
func NotFoundf(reason, field, format string, args ...any) *Error {
	return New(codes.NotFound, reason, format, args...).At(field)
}

// Preconditionf returns an error about a field of the request that cannot be served as things
// stand.
func Preconditionf(reason, field, format string, args ...any) *Error {
	return New(codes.FailedPrecondition, reason, format, args...).At(field)
}
