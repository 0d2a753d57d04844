// The read state of a session: which files it has seen, and how much of each.

package workspace

import (
	"cmp"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A ReadState is what one session has read: the read state of each file, by real path. It is safe
// for concurrent use. Calls do not write to it; the session merges a call's View.ReadState into it.
type ReadState struct {
	mu     sync.Mutex
	states map[string]State
	kept   []string // real paths whose state holds a Text, oldest first
	bytes  int      // length of all kept texts
	// buffers are the files that editors hold open for the session; nil: none.
	buffers *Buffers
}

// KeptFile is the longest content, in bytes, that a State keeps, so that a later change can be
// shown as a diff. keptAll limits the kept bytes of one session. Both numbers are our own: source
// files are mostly shorter, and a session reads some hundred.
const (
	KeptFile = 128 << 10
	keptAll  = 8 << 20
)

// A State is what a session has seen of one file: its metadata when it was read, and the lines that
// were shown. The journal stores its JSON form; Text is not part of it.
type State struct {
	Size   int64     `json:"size"` // bytes
	Mtime  time.Time `json:"mtime"`
	Ctime  time.Time `json:"ctime"`
	Device uint64    `json:"device"`
	Inode  uint64    `json:"inode"`
	Hash   string    `json:"hash,omitempty"`  // Hash of the whole content; empty: unknown
	Lines  int       `json:"lines,omitempty"` // lines of the file; 0: empty or unknown
	Seen   []Range   `json:"seen,omitempty"`  // lines shown, ascending, not touching
	Whole  bool      `json:"whole,omitempty"` // all of it was shown, or the model itself has written it
	Text   []byte    `json:"-"`               // the content at that time, up to KeptFile; nil: not kept. Must not be modified
}

// A Range is a run of lines, both ends included, counted from 1.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// NewReadState returns an empty read state.
func NewReadState() *ReadState { return &ReadState{states: map[string]State{}} }

// SetBuffers makes every View that is created with m from now on use the texts of b.
func (m *ReadState) SetBuffers(b *Buffers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buffers = b
}

// Buffers returns what SetBuffers has set, or nil.
func (m *ReadState) Buffers() *Buffers {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buffers
}

// Lookup returns the read state of the file at the real path.
func (m *ReadState) Lookup(real string) (State, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.states[real]
	return s, ok
}

// Merge adds the read state of a call, or of a journal.
func (m *ReadState) Merge(seen map[string]State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for real, s := range seen {
		m.put(real, s)
	}
}

// put merges one state and drops the oldest texts above keptAll. m.mu is held.
func (m *ReadState) put(real string, s State) {
	before, known := m.states[real]
	if known {
		s = s.join(before)
		m.bytes -= len(before.Text)
	}
	m.states[real] = s
	m.bytes += len(s.Text)
	if s.Text != nil {
		m.kept = append(m.kept, real)
	}
	for (m.bytes > keptAll || len(m.kept) > 2*len(m.states)) && len(m.kept) > 1 {
		m.dropOldest(real)
	}
}

// dropOldest drops the oldest text, unless it is that of latest or has been put again since.
func (m *ReadState) dropOldest(latest string) {
	oldest := m.kept[0]
	m.kept = m.kept[1:]
	if slices.Contains(m.kept, oldest) {
		return
	}
	if s := m.states[oldest]; oldest != latest {
		m.bytes -= len(s.Text)
		s.Text = nil
		m.states[oldest] = s
	}
}

// StateOf returns the state that follows from a file's metadata, without hash and lines.
func StateOf(info fs.FileInfo) State {
	s := State{Size: info.Size(), Mtime: info.ModTime().UTC()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ctime = changeTime(sys).UTC()
		s.Device, s.Inode = uint64(sys.Dev), sys.Ino
	}
	return s
}

// An inode identifies a file, whatever its names are.
type inode struct{ device, number uint64 }

func (s State) inode() inode { return inode{s.Device, s.Inode} }

// sameFacts reports whether size, times and inode are equal.
func (s State) sameFacts(o State) bool {
	return s.Size == o.Size && s.Mtime.Equal(o.Mtime) && s.Ctime.Equal(o.Ctime) && s.inode() == o.inode()
}

// Same reports whether both states are of the same content: by hash if both have one, otherwise by
// metadata.
func (s State) Same(o State) bool {
	if s.Hash != "" && o.Hash != "" {
		return s.Size == o.Size && s.Hash == o.Hash
	}
	return s.sameFacts(o)
}

// Unseen returns how many of the file's lines were never shown, or 0 if their number is unknown.
func (s State) Unseen() int {
	if s.Whole {
		return 0
	}
	left := s.Lines
	for _, r := range s.Seen {
		left -= r.Last - r.First + 1
	}
	return max(left, 0)
}

// join adds the seen lines of an earlier state to s, if both are of the same content.
func (s State) join(before State) State {
	if !s.Same(before) {
		return s
	}
	s.Whole, s.Hash, s.Lines = s.Whole || before.Whole, cmp.Or(s.Hash, before.Hash), cmp.Or(s.Lines, before.Lines)
	if s.Text == nil {
		s.Text = before.Text
	}
	for _, r := range before.Seen {
		s.Seen = addRange(s.Seen, r)
	}
	return s
}

// addRange returns runs and r as ascending ranges that do not touch. It does not modify runs.
func addRange(runs []Range, r Range) []Range {
	if r.Last < r.First {
		return runs
	}
	var out []Range
	for _, x := range runs {
		if x.Last+1 < r.First || r.Last+1 < x.First {
			out = append(out, x)
		} else {
			r = Range{min(r.First, x.First), max(r.Last, x.Last)}
		}
	}
	at, _ := slices.BinarySearchFunc(out, r, func(x, r Range) int { return cmp.Compare(x.First, r.First) })
	return slices.Insert(out, at, r)
}

// Now returns the present state of the file at a real path, and whether its content differs from
// the one that the session has read. A file that the session has not read has not changed; a
// missing file has the zero state. For a file that an editor holds open, the editor's text counts.
func (m *ReadState) Now(real string) (now State, changed bool) {
	known, ok := m.Lookup(real)
	if !ok {
		return State{}, false
	}
	if f := m.Buffers().at(real); f != nil {
		now = StateOf(f.info())
		now.Hash = f.hash
		return now, !now.Same(known)
	}
	info, err := os.Lstat(real)
	if err != nil {
		return State{}, true
	}
	now = StateOf(info)
	if now.sameFacts(known) {
		return now, false
	}
	if known.Hash == "" || now.Size != known.Size || !info.Mode().IsRegular() {
		return now, true
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return now, true
	}
	defer f.Close()
	hasher := NewHasher()
	if _, err := io.Copy(hasher, io.LimitReader(f, now.Size+1)); err != nil {
		return now, true
	}
	now.Hash = hasher.Sum()
	return now, !now.Same(known)
}

// Paths returns the real paths of the files that the session has read, sorted.
func (m *ReadState) Paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.states))
}
