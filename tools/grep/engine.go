// Our own engine's work on files, and the record of what either engine could not search.

package grep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
)

// errTooMuch stops a search without a limit whose result is too large for memory.
var errTooMuch = errors.New("more than 32 MiB of matching lines; narrow the search or set head_limit")

// notes record what a search left out and what it could not read. Safe for concurrent use.
type notes struct {
	searched, binaries, links atomic.Int64

	mu     sync.Mutex
	missed []string // the first of them
	more   int64
}

// maxMissed is how many unread files are named; a longer list is of no more use to a model.
const maxMissed = 10

func (n *notes) note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.missed) == maxMissed {
		n.more++
		return
	}
	n.missed = append(n.missed, text)
}

// unreadable records a file. A file that has vanished meanwhile does not count.
func (n *notes) unreadable(path string, err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		n.note(walk.Fault{Path: path, Err: workspace.Cause(err)}.String())
	}
}

// An ownEngine searches a file as soon as the walk has found it, on the walk's goroutine.
type ownEngine struct {
	*search
	scanners sync.Pool
}

func (e *ownEngine) visit(ctx context.Context, f *walk.File, _ *index.Text) {
	in, err := f.Reader()
	if err != nil {
		e.unreadable(f.Path(), err)
		return
	}
	defer in.Close()
	found := e.scan(ctx, f.Path(), in)
	found.modified = in.ModTime()
	e.got.add(found)
}

func (e *ownEngine) buffer(ctx context.Context, path string, b workspace.Buffer) {
	found := e.scan(ctx, path, bytes.NewReader(b.Text))
	found.modified = b.Modified
	e.got.add(found)
}

// scan searches the file at path, and records what prevents that.
func (e *ownEngine) scan(ctx context.Context, path string, in io.Reader) *hits {
	s, ok := e.scanners.Get().(*scanner)
	if !ok {
		s = newScanner(e.query)
	}
	defer e.scanners.Put(s)
	found, err := s.scan(workspace.Patient(ctx, in))
	switch {
	case errors.Is(err, errBinary):
		e.binaries.Add(1)
		return &hits{}
	case ctx.Err() != nil && err != nil:
	case errors.Is(err, errLongLine), errors.Is(err, errTooLarge), errors.Is(err, errManySpans):
		e.note(fmt.Sprintf("%s: %v", workspace.NameOf(path), err))
	case err != nil:
		e.unreadable(path, err)
	}
	e.searched.Add(1)
	found.path = path
	return found
}

func (e *ownEngine) pass(_ string, isBinary bool) bool {
	if isBinary {
		e.binaries.Add(1)
	} else {
		e.searched.Add(1)
	}
	return true
}

func (e *ownEngine) finish(context.Context) {}
