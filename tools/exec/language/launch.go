//go:build !no_lsp

// Starting a server: the program is found, started in a box with pipes, and initialized.

package language

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
)

// launch starts and initializes a server. ctx is the set's; the server ends with ctx at the latest.
func (s *Set) launch(ctx context.Context, spec Server, root string) (*server, error) {
	srv := &server{
		spec: spec, root: root, limits: s.limits, stderr: &sandbox.Ending{Most: maxStderr}, gone: make(chan struct{}), units: utf16Units,
		documents: newDocuments(), news: newNews(),
	}
	srv.life, srv.end = context.WithCancelCause(ctx)
	srv.documents.stamps = srv.scan(ctx)
	printed, err := s.spawn(srv)
	if err != nil {
		srv.end(nil)
		return nil, err
	}
	srv.conn = jsonrpc2.NewConn(srv.life, srv.stream, incoming{srv}, jsonrpc2.SetLogger(silence{}))
	s.work.Go(func() { srv.attend(printed) })
	if err := srv.greet(ctx); err != nil {
		srv.end(err)
		<-srv.gone
		return nil, err
	}
	return srv, nil
}

// spawn starts the process.
func (s *Set) spawn(srv *server) (*io.PipeWriter, error) {
	program, err := find(srv.spec, srv.root, sandbox.Environ(s.host.Environ()))
	if err != nil {
		return nil, err
	}
	box := s.host.Box(program)
	environ := box.Environ(s.host.Environ())
	far, near, err := os.Pipe()
	if err != nil {
		return nil, failedf("%s was not started: %v.", srv.spec.name(), err)
	}
	defer far.Close()
	reader, writer := io.Pipe()
	srv.process, err = box.Start(sandbox.Command{
		ID: "language", Path: program, Args: srv.spec.Command, Dir: srv.root, Env: environ,
		Stdin: far, Stdout: writer, Stderr: srv.stderr,
	})
	if err != nil {
		_ = near.Close()
		if _, unavailable := errors.AsType[*sandbox.UnavailableError](err); unavailable {
			return nil, fault.Failedf("sandbox_unavailable", "%s was not started: %v.", srv.spec.name(), err)
		}
		return nil, failedf("%s was not started: %v.", srv.spec.name(), err)
	}
	srv.output, srv.stream = reader, newStream(reader, near)
	return writer, nil
}

// greet initializes the server.
func (s *server) greet(ctx context.Context) error {
	var about struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}
	err := s.once(ctx, s.limits.start, "initialize", wireInitialize{
		Root: uriOf(s.root), Folders: []wireFolder{{uriOf(s.root), filepath.Base(s.root)}},
		Options: s.spec.options(), Capabilities: json.RawMessage(wanted),
	}, &about)
	gone, isGone := errors.AsType[*goneError](err)
	refusal, refused := errors.AsType[*jsonrpc2.Error](err)
	switch {
	case isGone:
		return failedf("While it was starting, %s.", gone.words)
	case refused:
		return failedf("%s does not start: %s", s.spec.name(), printable(refusal.Message, 1000))
	case err != nil:
		return err
	}
	s.can = about.Capabilities
	var units unit
	_ = json.Unmarshal(s.can["positionEncoding"], &units) // without a known one the default counts
	if units == utf8Units || units == utf32Units {
		s.units = units
	}
	s.notify("initialized", struct{}{})
	return nil
}

// find returns the path of the server's program: relative to the root if it has a slash, otherwise
// from an absolute entry of PATH.
func find(spec Server, root string, environ []string) (string, error) {
	program, err := pathname.Program(spec.Command[0], root, environ)
	why := "there is no program " + program
	if err != nil {
		why = spec.Command[0] + " is not in the session's PATH"
	} else if pathname.Executable(program) {
		return program, nil
	}
	return "", fault.Failedf("program_not_found", "The language server for %s cannot be started: %s. Install it, or name another in settings: "+
		`"lsp": {%[1]q: {"command": ["program"], "extensions": [%q]}}.`, spec.Language, why, strings.Join(spec.Extensions, `", "`))
}

// silence discards the library's log: its errors have the same content.
type silence struct{}

// Printf does nothing.
func (silence) Printf(string, ...any) {}
