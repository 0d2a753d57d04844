// Package fault holds the one error type that crosses the boundary of a tool: what was wrong with a
// call, as a code for programs and as a message for a model. It does not know who made the call,
// nor how the error is sent.
package fault

import (
	"errors"
	"fmt"
)

// A Kind is what an error means for its call. It decides the outcome of the call.
type Kind uint8

const (
	// Failed means that the call was executed and did not succeed.
	Failed Kind = iota
	// Invalid means that the call was not executed: its input, or what it names, must change first.
	Invalid
	// Denied means that the call was not executed: a rule, a hook or the user did not permit it.
	Denied
)

// An Error is one finding about one call. It is a value to be shown, never a wrapper: a cause that matters is in the
// message. Codes are stable, lower_snake_case, and each is listed in docs/errors.md.
type Error struct {
	Kind    Kind
	Code    string
	Message string // what was wrong, the present state, what to do next; for a model
	Field   string // JSON pointer into the input; empty if no field is the cause
	Details any    // a struct that marshals to a JSON object, for programs; nil: none
}

// Error returns the message with its code before it, for logs and for people.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Invalidf makes an Error of kind Invalid.
func Invalidf(code, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Failedf makes an Error of kind Failed.
func Failedf(code, format string, args ...any) *Error {
	return &Error{Kind: Failed, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Deniedf makes an Error of kind Denied.
func Deniedf(code, format string, args ...any) *Error {
	return &Error{Kind: Denied, Code: code, Message: fmt.Sprintf(format, args...)}
}

// At returns a copy of e that blames field, a JSON pointer such as "/file_path".
func (e *Error) At(field string) *Error {
	blamed := *e
	blamed.Field = field
	return &blamed
}

// With returns a copy of e that carries details for programs.
func (e *Error) With(details any) *Error {
	detailed := *e
	detailed.Details = details
	return &detailed
}

// From returns the Error in err's chain. Any other error becomes a Failed "internal": a tool has
// returned an error without a message for models.
func From(err error) *Error {
	if found, ok := errors.AsType[*Error](err); ok {
		return found
	}
	return Failedf("internal", "The tool returned an unexpected error: %v.", err)
}
