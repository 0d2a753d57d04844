// The texts of files that editors hold open for a session, saved or not. A View has judged a path
// before it looks here.

package workspace

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

const (
	// MaxBuffer is the longest text of one buffer, in bytes. openBuffers is how many buffers a
	// session may have. The numbers are our own: far above source files and what an editor has open
	// at once.
	MaxBuffer   = 16 << 20
	openBuffers = 4096
	// keptTexts is how many earlier texts of a buffer are remembered, by hash, so that a save is
	// recognised.
	keptTexts = 64
)

// A Buffer is the text of one file as an editor has it at one moment.
type Buffer struct {
	Real     string // real path of the file, which need not exist
	Path     string // as the client names it
	Version  int64
	Text     []byte    // UTF-8; must not be modified
	Modified time.Time // when the text became what it is; the file's own time while it is the file's content
	// Err is a fault buffer_too_large or invalid_input if the text could not be stored; nil: Text
	// is the editor's text.
	Err error
}

// A BufferEdit is a change that an editor is asked to make in one of its buffers.
type BufferEdit struct {
	Call       string // Grant.Call of the call that wants it
	Real, Path string
	Version    int64  // the version of Old; an editor that has another version changes nothing and reports stale_file
	Old, New   []byte // whole texts; not to be modified
}

// A Conflict is a buffer whose file on the disk is no longer the one that the buffer was made from.
type Conflict struct {
	Real, Path string
	Version    int64
	Unsaved    bool // the buffer holds text that was never on the disk, so one of the two will be lost
	Gone       bool // there is no such file now
}

// Buffers are the files that editors hold open for one session. A ReadState that has them
// (SetBuffers) shows them to every View. It is safe for concurrent use.
type Buffers struct {
	apply   func(context.Context, BufferEdit) (int64, error)
	reserve func(bytes int64) error
	locks   *Locks // one for each buffer that is being changed, so that waiting for an editor blocks no other session

	mu    sync.Mutex
	open  map[string]*buffer // by real path
	bytes int                // of all texts, plus what running edits may add; reserve has agreed to it
}

// A buffer is a Buffer with the state of its file on the disk. It is never modified; a changed
// buffer is a new value.
type buffer struct {
	Buffer
	hash string // of Text; empty with Err
	// assumed is set if the editor has not sent this text itself but confirmed an edit that makes
	// it.
	assumed bool
	base    onDisk   // the file when it last had a text of the buffer, or when the buffer was opened
	since   []string // hashes of the buffer's texts since then, oldest first
	told    onDisk   // the file that Conflicts last reported
}

// NewBuffers returns an empty set.
//
// apply asks the editor for a change, waits until it is made, and returns the buffer's new version,
// which is above the edit's. Its error is a fault such as stale_file; it means that nothing was
// changed, and it ends the call unchanged. apply must return when its context ends.
//
// reserve is called with the number of bytes that all texts are about to have together. Its error
// is a fault such as buffer_too_large and refuses the larger text; it must not refuse a smaller
// number. It is called with a lock held, so it must not call the Buffers.
func NewBuffers(apply func(context.Context, BufferEdit) (int64, error), reserve func(bytes int64) error) *Buffers {
	return &Buffers{apply: apply, reserve: reserve, locks: NewLocks(), open: map[string]*buffer{}}
}

// Changed records a buffer's text as an editor has sent it: the file at the real path has this
// text, which must not be modified afterwards. named is the path as the client names it. Changed
// looks at the file on the disk. It returns these faults:
//   - stale_buffer: version is not above the recorded one and has another text. Nothing changes.
//   - buffer_open: the file is open already under another of its names. Nothing changes.
//   - buffer_too_large, invalid_input: the text cannot be stored. Until the next Changed or Closed
//     the file can be neither read nor changed, since the editor's text is unknown.
//   - too_many_buffers: the buffer is not recorded at all.
func (b *Buffers) Changed(real, named string, version int64, text []byte) error {
	next := &buffer{Buffer: Buffer{Real: real, Path: named, Version: version, Text: text}, hash: Hash(text)}
	disk := look(real, b.at(real))
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.open[real]
	switch {
	case was == nil, was.Path == named && was.replaceable(next):
	case was.Err == nil && bytes.Equal(was.Text, text):
		return nil
	case was.Path != named:
		return fault.Invalidf("buffer_open", "%s is open already, as %s. The text was ignored; a file has one buffer.", shown(named), shown(was.Path)).At("/path")
	default:
		return fault.Invalidf("stale_buffer", "The buffer of %s was changed to version %d, and %d is not higher. The text was ignored; versions increase until the buffer is closed.", shown(named), was.Version, version).At("/version")
	}
	if was == nil && len(b.open) >= openBuffers {
		return fault.Failedf("too_many_buffers", "%d buffers are open, the most for one session, so that of %s was ignored. Close others.", openBuffers, shown(named))
	}
	err := unfit(text)
	if err == nil {
		err = b.put(next.after(was, disk))
	}
	if err != nil {
		unheld := &buffer{Buffer: Buffer{Real: real, Path: named, Version: version, Err: err}}
		_ = b.put(unheld.after(was, disk)) // it has no bytes
	}
	return err
}

// replaceable reports whether next may replace the recorded buffer.
func (f *buffer) replaceable(next *buffer) bool {
	return next.Version > f.Version || next.Version == f.Version && (f.assumed || f.Err != nil)
}

// unfit returns the fault for a text that no buffer can hold, or nil.
func unfit(text []byte) error {
	switch {
	case len(text) > MaxBuffer:
		return fault.Invalidf("buffer_too_large", "Its text in the editor has %d bytes, and at most %d MiB are held of one buffer. Save it and close it there.", len(text), MaxBuffer>>20).At("/content")
	case !utf8.Valid(text):
		return fault.Invalidf("invalid_input", "Its text as the editor has sent it is not UTF-8.").At("/content")
	}
	return nil
}

// put makes next the open buffer at its path, unless reserve refuses its text. b.mu is held.
func (b *Buffers) put(next *buffer) error {
	more := len(next.Text)
	if was := b.open[next.Real]; was != nil {
		more -= len(was.Text)
	}
	if err := b.grow(more); err != nil {
		return err
	}
	b.open[next.Real] = next
	return nil
}

// grow counts more bytes, or fewer if more is negative, unless reserve refuses them. b.mu is held.
func (b *Buffers) grow(more int) error {
	if err := b.reserve(int64(b.bytes + more)); err != nil {
		return err
	}
	b.bytes += more
	return nil
}

// after returns f as the successor of was, which is nil if the file was not open. disk is the
// present state of the file.
func (f *buffer) after(was *buffer, disk onDisk) *buffer {
	f.base, f.since, f.Modified = disk, []string{f.hash}, time.Now()
	if was != nil {
		was = was.resolve(disk)
		f.base, f.told, f.since = was.base, was.told, was.since
		if was.hash == f.hash {
			f.Modified = was.Modified
		} else {
			f.since = append(slices.Clone(was.since[max(0, len(was.since)+1-keptTexts):]), f.hash)
		}
	}
	f = f.resolve(disk)
	if disk.holds(f.hash) {
		f.Modified = disk.state.Mtime
	}
	return f
}

// resolve returns f with disk as its base if the file holds a text that the buffer has had since
// its old base.
func (f *buffer) resolve(disk onDisk) *buffer {
	at := slices.IndexFunc(f.since, disk.holds)
	if at < 0 || disk.same(f.base) && at == 0 {
		return f
	}
	settled := *f
	settled.base, settled.since, settled.told = disk, f.since[at:], onDisk{}
	return &settled
}

// Closed records that no editor holds the file at the real path open any more; the content on the
// disk counts from now on. A caller with several editors also calls it before another editor takes
// the file over, since that editor's versions are its own.
func (b *Buffers) Closed(real string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was := b.open[real]; was != nil {
		_ = b.grow(-len(was.Text)) // fewer are never refused
		delete(b.open, real)
	}
}

// Unsaved returns the buffers whose text is not the present content of their files, by real path.
// It looks at the disk.
func (b *Buffers) Unsaved() []Buffer {
	var list []Buffer
	b.compare(func(f *buffer, disk onDisk) *buffer {
		if f.differs(disk) {
			list = append(list, f.Buffer)
		}
		return f
	})
	return list
}

// Conflicts returns the buffers whose files hold neither the buffer's text nor what they held when
// buffer and file were last equal, or when the buffer was opened, by real path. It reports each
// state of a file once. It looks at the disk.
func (b *Buffers) Conflicts() []Conflict {
	var list []Conflict
	b.compare(func(f *buffer, disk onDisk) *buffer {
		next := *f
		switch {
		case disk.same(f.base), !f.differs(disk):
			next.told = onDisk{}
		case !f.told.seen() || !disk.same(f.told):
			next.told = disk
			list = append(list, Conflict{Real: f.Real, Path: f.Path, Version: f.Version, Unsaved: f.differs(f.base), Gone: !disk.there})
		}
		return &next
	})
	return list
}

// compare looks at the disk for each buffer and calls with for it, one after the other. The buffer
// that with returns replaces it.
func (b *Buffers) compare(with func(*buffer, onDisk) *buffer) {
	for _, f := range b.all() {
		disk := look(f.Real, f)
		next := with(f.resolve(disk), disk)
		b.mu.Lock()
		if b.open[f.Real] == f {
			_ = b.put(next) // its text is the same
		}
		b.mu.Unlock()
	}
}

// differs reports whether the buffer's text is not the file's content. An empty text of a missing
// file does not count as unsaved.
func (f *buffer) differs(disk onDisk) bool {
	if !disk.there && f.Err == nil {
		return len(f.Text) > 0
	}
	return !disk.holds(f.hash)
}

// all returns the buffers by real path.
func (b *Buffers) all() []*buffer {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.open), func(x, y *buffer) int { return cmp.Compare(x.Real, y.Real) })
}

// at returns the buffer of the file at the real path; nil: none is open.
func (b *Buffers) at(real string) *buffer {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[real]
}

// ofFile returns a buffer of the file, whatever name it is open under; nil: none. It looks at the
// disk.
func (b *Buffers) ofFile(id inode) *buffer {
	for _, f := range b.all() {
		if info, err := os.Lstat(f.Real); err == nil && StateOf(info).inode() == id {
			return f
		}
	}
	return nil
}

// edit has the editor change f to next and records the result. The growth of the text is reserved
// before the editor is asked.
func (b *Buffers) edit(ctx context.Context, call string, f *buffer, next []byte) (*buffer, error) {
	more := max(0, len(next)-len(f.Text))
	b.mu.Lock()
	err := b.grow(more)
	b.mu.Unlock()
	if err != nil {
		why := *fault.From(err)
		why.Message, why.Field = shown(f.Path)+" is open in an editor, and nothing was changed. "+why.Message, ""
		return nil, &why
	}
	made, err := b.makeEdit(ctx, call, f, next)
	disk := look(f.Real, f)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= more
	defer func() { _ = b.grow(0) }() // the part of the reservation that is not needed is released
	if err != nil {
		return nil, err
	}
	now := b.open[f.Real]
	if now == nil { // closed meanwhile
		return made.after(nil, disk), nil
	}
	version := made.Version
	if made = made.after(now, disk); now.Version < version {
		_ = b.put(made) // its bytes are reserved
	}
	return made, nil
}

// makeEdit has the editor change f to next, and returns the new buffer.
func (b *Buffers) makeEdit(ctx context.Context, call string, f *buffer, next []byte) (*buffer, error) {
	version, err := b.apply(ctx, BufferEdit{Call: call, Real: f.Real, Path: f.Path, Version: f.Version, Old: f.Text, New: next})
	if err != nil {
		return nil, err
	}
	if version <= f.Version {
		return nil, fault.Failedf("editor_failed", "The editor reports that it has changed %s, but as version %d after %d, so its present text is unknown. Read the file again.", shown(f.Path), version, f.Version)
	}
	return &buffer{Buffer: Buffer{Real: f.Real, Path: f.Path, Version: version, Text: next}, hash: Hash(next), assumed: true}, nil
}

// textHash returns the hash of the text that an editor shows for a file's content, without its byte
// order mark.
func textHash(data []byte) string {
	const mark = "\ufeff"
	if utf8.Valid(data) {
		return Hash(bytes.TrimPrefix(data, []byte(mark)))
	}
	encoding, isText := text.DetectWhole(data)
	if !isText {
		return ""
	}
	return Hash([]byte(strings.TrimPrefix(text.Decode(data, encoding).String, mark)))
}
