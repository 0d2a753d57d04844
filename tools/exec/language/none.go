//go:build no_lsp

// The build without language servers: the same names, and one answer.

package language

import (
	"context"
	"errors"

	"github.com/toold/toold/tools/fault"
)

// ErrClosed is the error after Close in a build with language servers.
var ErrClosed = errors.New("the session is closed")

const unbuilt = "This build of toold has no language servers."

func none() error { return fault.Failedf("no_language_server", unbuilt) }

// A Set has no servers.
type Set struct{}

// NewSet returns a set without servers.
func NewSet(Host) *Set { return &Set{} }

// Close does nothing.
func (*Set) Close() {}

// Unavailable returns that there are none.
func (*Set) Unavailable() string { return unbuilt }

// Check returns a fault no_language_server.
func (*Set) Check(string) error { return none() }

// Servers returns none.
func (*Set) Servers() []Status { return nil }

// Used returns false.
func (*Set) Used() bool { return false }

// Runs returns false.
func (*Set) Runs(string) bool { return false }

// Busy returns "".
func (*Set) Busy(string) string { return "" }

// Definition returns a fault no_language_server.
func (*Set) Definition(context.Context, Query) ([]Location, error) { return nil, none() }

// References returns a fault no_language_server.
func (*Set) References(context.Context, Query) ([]Location, error) { return nil, none() }

// Implementation returns a fault no_language_server.
func (*Set) Implementation(context.Context, Query) ([]Location, error) { return nil, none() }

// Hover returns a fault no_language_server.
func (*Set) Hover(context.Context, Query) (string, error) { return "", none() }

// Outline returns a fault no_language_server.
func (*Set) Outline(context.Context, Query) ([]Symbol, error) { return nil, none() }

// Search returns a fault no_language_server.
func (*Set) Search(context.Context, Query, string) ([]Symbol, error) { return nil, none() }

// Calls returns a fault no_language_server.
func (*Set) Calls(context.Context, Query) (Calls, error) { return Calls{}, none() }

// Rename returns a fault no_language_server.
func (*Set) Rename(context.Context, Query, string) (Renaming, error) { return Renaming{}, none() }

// Diagnose returns a fault no_language_server.
func (*Set) Diagnose(context.Context, Query) (Diagnostics, error) { return Diagnostics{}, none() }

// A Watching has no server to watch.
type Watching struct{}

// Watch returns nil, whose methods work.
func (*Set) Watch(context.Context, string, []byte) *Watching { return nil }

// New returns nil.
func (*Watching) New(context.Context, []byte) []Diagnostic { return nil }
