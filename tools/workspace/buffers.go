// The texts of files that editors hold open for a session, saved or not. It does not know how an editor is talked to, nor
// who may read what: a View has judged the path before it looks here.

package workspace

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/workspace/text"
)

const (
	// MaxBuffer is the longest text, in bytes, that is held of one buffer; openBuffers bounds how many a session has. Ours:
	// far above source files and what an editor has open at once.
	MaxBuffer   = 16 << 20
	openBuffers = 4096
	// keptTexts is how many earlier texts of a buffer are remembered, by hash, to know one when the editor has saved it.
	keptTexts = 64
)

// A Buffer is the text of one file as an editor has it at one moment.
type Buffer struct {
	Real     string // real path of the file, which need not exist
	Path     string // as the client names it
	Version  int64
	Text     []byte    // UTF-8; never modified
	Modified time.Time // when the text became what it is; the file's own time as long as it is the file's content
	// Err is a fault buffer_too_large or invalid_input for a buffer whose text could not be taken; nil: Text is what the
	// editor has.
	Err error
}

// A BufferEdit is a change that an editor is asked to make in a buffer of its own.
type BufferEdit struct {
	Call       string // Grant.Call of the call that wants it
	Real, Path string
	Version    int64  // which Old is. An editor that has another one by now changes nothing: stale_file
	Old, New   []byte // whole texts; not to be modified
}

// A Conflict is a buffer whose file on the disk is not any more what the buffer was made of.
type Conflict struct {
	Real, Path string
	Version    int64
	Unsaved    bool // the buffer holds text that was never on the disk: one of both has to give way
	Gone       bool // there is no such file now
}

// Buffers are what editors hold open for one session. A Memory that has them (SetBuffers) shows them to every View. It is
// safe for concurrent use.
type Buffers struct {
	apply   func(context.Context, BufferEdit) (int64, error)
	reserve func(bytes int64) error
	locks   *Locks // one for each buffer that is being changed: who waits for an editor keeps no other session waiting

	mu    sync.Mutex
	open  map[string]*buffer // by real path
	bytes int                // of all texts, and what edits that are under way may add; reserve has agreed
}

// A buffer is a Buffer with what is known of its file on the disk. It is never modified, but put in the place of.
type buffer struct {
	Buffer
	hash string // of Text; empty with Err
	// assumed: the editor has not shown this text itself, but confirmed an edit that makes it.
	assumed bool
	base    onDisk   // the file when it last had a text of the buffer, or when the buffer was opened
	since   []string // hashes of the buffer's texts since then, oldest first
	told    onDisk   // the file of which Conflicts has told
}

// NewBuffers returns none yet. apply asks the editor for a change and waits until it is made: it gives the buffer's new
// version, which is above the edit's. Its error, a fault such as stale_file, says that nothing was changed, and ends the
// call as it is. It has to return when its context ends. reserve is told how many bytes all texts are about to have together,
// and must agree when they become fewer. Its error, a fault such as buffer_too_large, refuses the text that would make
// them more. It is called with a lock held, so it must not call the Buffers.
func NewBuffers(apply func(context.Context, BufferEdit) (int64, error), reserve func(bytes int64) error) *Buffers {
	return &Buffers{apply: apply, reserve: reserve, locks: NewLocks(), open: map[string]*buffer{}}
}

// Changed takes what an editor says: the file at the real path has this text, which belongs to Buffers from now on. named
// is the path as the client names it. It returns faults: stale_buffer for a version that is not above the one held and
// has another text, and buffer_open for another name of the file than the one it was opened by, which change nothing;
// buffer_too_large and invalid_input for a text that is not held: until the next
// Changed or Closed the file can then be neither read nor changed, since what the editor has is not known;
// too_many_buffers, and then the buffer is not known at all. It looks at the file on the disk.
func (b *Buffers) Changed(real, named string, version int64, text []byte) error {
	next := &buffer{Buffer: Buffer{Real: real, Path: named, Version: version, Text: text}, hash: Hash(text)}
	disk := look(real, b.at(real))
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.open[real]
	switch {
	case was == nil, was.Path == named && was.gives(next):
	case was.Err == nil && bytes.Equal(was.Text, text):
		return nil
	case was.Path != named:
		return fault.Invalidf("buffer_open", "%s is open already, as %s. What was sent is not taken; a file has one buffer.", shown(named), shown(was.Path)).At("/path")
	default:
		return fault.Invalidf("stale_buffer", "The buffer of %s was changed to version %d, and %d is not after that. What was sent is not taken; versions grow until the buffer is closed.", shown(named), was.Version, version).At("/version")
	}
	if was == nil && len(b.open) >= openBuffers {
		return fault.Failedf("too_many_buffers", "%d buffers are open, as many as are held for a session; that of %s is not known. Close others.", openBuffers, shown(named))
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

// gives reports that next may take the place of what is held.
func (f *buffer) gives(next *buffer) bool {
	return next.Version > f.Version || next.Version == f.Version && (f.assumed || f.Err != nil)
}

// unfit returns why text cannot be held, whatever else is.
func unfit(text []byte) error {
	switch {
	case len(text) > MaxBuffer:
		return fault.Invalidf("buffer_too_large", "Its text in the editor has %d bytes, and at most %d MiB are held of one buffer. Save it and close it there.", len(text), MaxBuffer>>20).At("/content")
	case !utf8.Valid(text):
		return fault.Invalidf("invalid_input", "Its text as the editor has sent it is not UTF-8.").At("/content")
	}
	return nil
}

// put makes next what is open at its path, unless reserve refuses its text. b.mu is held.
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

// grow counts so many bytes more, or fewer when that is negative, unless reserve refuses them. b.mu is held.
func (b *Buffers) grow(more int) error {
	if err := b.reserve(int64(b.bytes + more)); err != nil {
		return err
	}
	b.bytes += more
	return nil
}

// after returns f as what follows was, nil if it was not open, while the file is as disk says.
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

// resolve returns f with the disk for its base, if the file holds a text that the buffer has had since.
func (f *buffer) resolve(disk onDisk) *buffer {
	at := slices.IndexFunc(f.since, disk.holds)
	if at < 0 || disk.same(f.base) && at == 0 {
		return f
	}
	settled := *f
	settled.base, settled.since, settled.told = disk, f.since[at:], onDisk{}
	return &settled
}

// Closed says that no editor holds the file at the real path open any more: what is on the disk counts from then on. Who
// has several editors calls it also before another one of them takes a file over, since its versions are its own.
func (b *Buffers) Closed(real string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if was := b.open[real]; was != nil {
		_ = b.grow(-len(was.Text)) // fewer are never refused
		delete(b.open, real)
	}
}

// Unsaved returns the buffers whose text is not what their files hold now, by real path. It looks at the disk.
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

// Conflicts returns the buffers whose files hold something else than when buffer and file last were the same, or than when
// the buffer was opened, and not the buffer's text either, by real path. Each state of a file is told of once. It looks
// at the disk.
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

// compare looks at the disk for each buffer and calls with for it, one after the other; what that gives takes its place.
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

// differs reports that the buffer's text is not what the file holds. An empty text of no file is nothing to be saved.
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
	list := make([]*buffer, 0, len(b.open))
	for _, f := range b.open {
		list = append(list, f)
	}
	slices.SortFunc(list, func(x, y *buffer) int { return cmp.Compare(x.Real, y.Real) })
	return list
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

// ofFile returns a buffer of the file, by whatever name it is open; nil: none is. It looks at the disk.
func (b *Buffers) ofFile(id inode) *buffer {
	for _, f := range b.all() {
		info, err := os.Lstat(f.Real)
		if err != nil {
			continue
		}
		if s := StateOf(info); (inode{s.Device, s.Inode}) == id {
			return f
		}
	}
	return nil
}

// edit has the editor make next of what f holds, and takes it over. What the text grows by is reserved before the editor is
// asked.
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
	defer func() { _ = b.grow(0) }() // what was reserved and is not needed is given back
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

// makeEdit has the editor make next of what f holds, and returns that.
func (b *Buffers) makeEdit(ctx context.Context, call string, f *buffer, next []byte) (*buffer, error) {
	version, err := b.apply(ctx, BufferEdit{Call: call, Real: f.Real, Path: f.Path, Version: f.Version, Old: f.Text, New: next})
	if err != nil {
		return nil, err
	}
	if version <= f.Version {
		return nil, fault.Failedf("editor_failed", "The editor says that it has changed %s, but names version %d after %d; what it has now is not known. Read the file again.", shown(f.Path), version, f.Version)
	}
	return &buffer{Buffer: Buffer{Real: f.Real, Path: f.Path, Version: version, Text: next}, hash: Hash(next), assumed: true}, nil
}

// textHash returns the hash of what an editor would show of a file's content, without its mark of byte order.
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
