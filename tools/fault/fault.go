// Package fault holds the one error type that crosses the boundary of a tool: what was wrong with a call, in a code
// for programs and in words for a model. It does not know who made the call, nor how the error is sent.
package fault

import (
	"errors"
	"fmt"
)

// A Kind says whose turn it is after the error. It decides the outcome of the call.
type Kind uint8

const (
	// Failed: the call was executed and did not succeed.
	Failed Kind = iota
	// Invalid: the call was not executed; its input, or what it names, must change first.
	Invalid
	// Denied: the call was not executed; somebody or some rule did not permit it.
	Denied
)

// An Error is one finding about one call. It is a value to be shown, never a wrapper: a cause that matters is in the
// message. Codes are stable, lower_snake_case, and each is listed in docs/errors.md.
type Error struct {
	Kind    Kind
	Code    string
	Message string // what was wrong, what is true, what to do next; for a model to read
	Field   string // JSON pointer into the input; empty when no field is to blame
	Details any    // a struct that marshals to a JSON object, for programs; nil when there is nothing to add
}

// Error returns the message with its code in front, for logs and for people.
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

// From finds the Error in err's chain. Any other error is a Failed "internal": a tool gave back something that it had
// not put into words.
func From(err error) *Error {
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	return Failedf("internal", "The tool gave an unexpected error: %v.", err)
}
