// The read state of a session: what it has seen of which file.

package workspace

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A ReadState is what one session has read: the read state of each file, by real path. It is safe for concurrent use. It
// does not depend on calls: what a call learns comes to it when the session merges it.
type ReadState struct {
	mu     sync.Mutex
	states map[string]State
	kept   []string // real paths whose state holds a Text, oldest first
	bytes  int      // length of all kept texts
	// buffers are what editors hold open for the session; nil: none do.
	buffers *Buffers
}

// KeptFile is the longest content, in bytes, that a State keeps so that a later change can be shown as a diff; keptAll
// bounds what one session keeps. Both are ours: source files are mostly shorter, and a session reads some hundred.
const (
	KeptFile = 128 << 10
	keptAll  = 8 << 20
)

// A State is what a session knows of one file: how it was when it was read, and which lines were shown. Its JSON form
// is what the journal keeps; Text is not part of it.
type State struct {
	Size   int64     `json:"size"` // bytes
	Mtime  time.Time `json:"mtime"`
	Ctime  time.Time `json:"ctime"`
	Device uint64    `json:"device"`
	Inode  uint64    `json:"inode"`
	Hash   string    `json:"hash,omitempty"`  // Hash of the whole content; empty: not known
	Lines  int       `json:"lines,omitempty"` // lines of the file; 0: empty or not known
	Seen   []Range   `json:"seen,omitempty"`  // lines shown, ascending, not touching
	Whole  bool      `json:"whole,omitempty"` // all of it was shown, or was written by the model itself
	Text   []byte    `json:"-"`               // the content as it was, up to KeptFile; nil: not kept. Never modified
}

// A Range is a run of lines, both ends included, counted from 1.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// NewReadState returns an empty memory.
func NewReadState() *ReadState { return &ReadState{states: map[string]State{}} }

// SetBuffers has every View that is made with m from now on show the texts of b.
func (m *ReadState) SetBuffers(b *Buffers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buffers = b
}

// Buffers returns what SetBuffers has set; nil: nothing.
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

// Merge takes over what a call learned, or what a journal kept.
func (m *ReadState) Merge(learned map[string]State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for real, s := range learned {
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

// dropOldest forgets the text that was put first, unless it is that of latest or has been put again since.
func (m *ReadState) dropOldest(latest string) {
	oldest := m.kept[0]
	m.kept = m.kept[1:]
	for _, again := range m.kept {
		if again == oldest {
			return
		}
	}
	if s := m.states[oldest]; oldest != latest {
		m.bytes -= len(s.Text)
		s.Text = nil
		m.states[oldest] = s
	}
}

// StateOf returns the state that a file's own facts tell, without a hash and without lines.
func StateOf(info fs.FileInfo) State {
	s := State{Size: info.Size(), Mtime: info.ModTime().UTC()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ctime = changeTime(sys).UTC()
		s.Device, s.Inode = uint64(sys.Dev), sys.Ino
	}
	return s
}

// sameFacts reports that size, times and inode are equal.
func (s State) sameFacts(o State) bool {
	return s.Size == o.Size && s.Mtime.Equal(o.Mtime) && s.Ctime.Equal(o.Ctime) && s.Device == o.Device && s.Inode == o.Inode
}

// Same reports that both states are of one content: by hash where both have one, otherwise by the file's facts.
func (s State) Same(o State) bool {
	if s.Hash != "" && o.Hash != "" {
		return s.Size == o.Size && s.Hash == o.Hash
	}
	return s.sameFacts(o)
}

// Unseen returns how many of the file's lines were never shown, as far as their number is known.
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

// join adds to s what an earlier state knew, if it is of the same content.
func (s State) join(before State) State {
	if !s.Same(before) {
		return s
	}
	s.Whole = s.Whole || before.Whole
	if s.Hash == "" {
		s.Hash = before.Hash
	}
	if s.Lines == 0 {
		s.Lines = before.Lines
	}
	if s.Text == nil {
		s.Text = before.Text
	}
	for _, r := range before.Seen {
		s.Seen = addRange(s.Seen, r)
	}
	return s
}

// addRange returns runs and r as ascending runs that do not touch. It does not modify runs.
func addRange(runs []Range, r Range) []Range {
	if r.Last < r.First {
		return runs
	}
	var out []Range
	placed := false
	for _, x := range runs {
		switch {
		case x.Last+1 < r.First:
			out = append(out, x)
		case r.Last+1 < x.First:
			if !placed {
				out, placed = append(out, r), true
			}
			out = append(out, x)
		default:
			r.First, r.Last = min(r.First, x.First), max(r.Last, x.Last)
		}
	}
	if !placed {
		out = append(out, r)
	}
	return out
}

// Now returns how the file at a real path is by now, and whether that is another content than the session knows. A file that
// the session does not know has not changed; one that is gone has no state. Of one that an editor holds open the text
// there counts.
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
	if _, err := io.Copy(&hasher.sum, io.LimitReader(f, now.Size+1)); err != nil {
		return now, true
	}
	now.Hash = hasher.Sum()
	return now, !now.Same(known)
}

// Paths returns the real paths of the files that the session knows, in their order.
func (m *ReadState) Paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.states))
}
