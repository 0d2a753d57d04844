// An editor beside a session, for tests: it holds texts, reports them, and makes the changes that
// it is asked for.

package tooltest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// An Editor holds files open for a session, which it tells by Buffers. It is safe for concurrent use.
type Editor struct {
	Buffers *workspace.Buffers
	t       testing.TB

	mu   sync.Mutex
	open map[string]document // by real path
}

type document struct {
	text    string
	version int64
}

// maxText is how many bytes an editor's buffers may have together.
const maxText = 64 << 20

// reserve refuses what the daemon would refuse.
func reserve(bytes int64) error {
	if bytes > maxText {
		return fault.Invalidf("buffer_too_large", "Its text in the editor was not taken: all buffers together have %d bytes, and may have %d.", bytes, maxText)
	}
	return nil
}

// NewEditor returns an editor without open files.
func NewEditor(t testing.TB) *Editor {
	e := &Editor{t: t, open: map[string]document{}}
	e.Buffers = workspace.NewBuffers(e.apply, reserve)
	return e
}

// Editor adds an editor to the session.
func (f *Files) Editor() *Editor {
	e := NewEditor(f.t)
	f.memory.SetBuffers(e.Buffers)
	return e
}

// Hold changes the text of the file at the real path in the editor, without reporting it.
func (e *Editor) Hold(real, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[real] = document{text, e.open[real].version + 1}
}

// Append appends text in the editor, without reporting it.
func (e *Editor) Append(real, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.open[real]
	e.open[real] = document{now.text + text, now.version + 1}
}

// Tell reports the editor's text.
func (e *Editor) Tell(real string) {
	e.t.Helper()
	if err := e.Say(real); err != nil {
		e.t.Errorf("what the editor has said of %s: %v", real, err)
	}
}

// Say is Tell for an editor whose report may be rejected.
func (e *Editor) Say(real string) error {
	e.mu.Lock()
	now := e.open[real]
	e.mu.Unlock()
	return e.Buffers.Changed(real, real, now.version, []byte(now.text))
}

// Type is Hold and Tell.
func (e *Editor) Type(real, text string) {
	e.t.Helper()
	e.Hold(real, text)
	e.Tell(real)
}

// Text returns the editor's text.
func (e *Editor) Text(real string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[real].text
}

// Save writes the editor's text to the file.
func (e *Editor) Save(real string) {
	e.t.Helper()
	if err := os.WriteFile(real, []byte(e.Text(real)), 0o644); err != nil {
		e.t.Error(err)
	}
}

// Close closes the file without saving it.
func (e *Editor) Close(real string) {
	e.mu.Lock()
	delete(e.open, real)
	e.mu.Unlock()
	e.Buffers.Closed(real)
}

// apply makes a change, if it is based on the editor's text.
func (e *Editor) apply(_ context.Context, c workspace.BufferEdit) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, open := e.open[c.Real]
	if !open || now.version != c.Version {
		return 0, fault.Invalidf("stale_file", "%s has version %d in the editor, and not %d. Read it again.", c.Path, now.version, c.Version)
	}
	if now.text != string(c.Old) {
		e.t.Errorf("%s, version %d, is %q in the editor, and the edit is of %q", c.Path, c.Version, now.text, c.Old)
	}
	now = document{string(c.New), now.version + 1}
	e.open[c.Real] = now
	return now.version, nil
}
