// Package checkpoint keeps what calls are about to change, and computes how to restore it. Contents
// are stored by their hash in a directory, rows record which file had which content, and plans are
// made of both. It does not know sessions, the pipeline, or who may undo what. Its caller decides
// what a row records.
package checkpoint

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// A Store keeps contents, each once, by SHA-256. It is safe for concurrent use. One process uses a directory at a time.
type Store struct {
	dir string

	mu      sync.Mutex
	bytes   int64             // of all contents, as far as known
	synced  map[string]bool   // paths of contents that are surely on the disk, and of directories whose own names are
	whole   map[string]bool   // contents that this process has written, or read through and found to be what they should
	held    map[string]int    // how many Holds need a content
	touched map[string]bool   // contents that were asked for since the sweep that runs began; nil: none runs
	swept   time.Time         // when the latest sweep began
	grown   bool              // something was added since
	rows    int64             // bytes of rows that were recorded since
	packed  map[string]packed // contents that lie in packs
	writing map[string]bool   // packs that holds still write
	// syncedTo are the packs of which a part is surely on the disk, with the end of that part.
	syncedTo map[string]int64

	reading sync.Mutex
	read    map[[sha256.Size]byte]*Row // see Row
	readAll int                        // bytes of their texts
}

// ErrGone means that a content is no longer kept.
var ErrGone = errors.New("its content is not kept any more")

const tempPrefix = "new-"

// Open opens the directory and makes it, with mode 0700, if need be. What a process that died had half written is removed.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	s := &Store{
		dir: dir, synced: map[string]bool{}, whole: map[string]bool{}, held: map[string]int{}, packed: map[string]packed{}, writing: map[string]bool{},
		syncedTo: map[string]int64{},
	}
	return s, s.openPacks()
}

// A Hold keeps contents for a row that is not recorded yet: until Release no sweep takes them. It is for one goroutine.
type Hold struct {
	store  *Store
	hashes []string
	packs  bool     // small contents go into a pack, but for the first
	stored int      // how many contents it has stored
	file   *os.File // it; nil: not made yet
	end    int64    // of the pack
}

// Hold begins one. Release ends it.
func (s *Store) Hold() *Hold { return &Hold{store: s} }

// Release ends the hold. From then on a content stays while a row names it.
func (h *Hold) Release() {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	for _, hash := range h.hashes {
		if h.store.held[hash]--; h.store.held[hash] == 0 {
			delete(h.store.held, hash)
		}
	}
	h.hashes = nil
	if h.file != nil {
		delete(h.store.writing, h.file.Name())
		_ = h.file.Close() // it was written, and is verified when it is read
		h.file = nil
	}
}

// Need holds a content from before it is looked for, so that no sweep comes between.
func (h *Hold) Need(hash string) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	h.hashes = append(h.hashes, hash)
	h.store.held[hash]++
	if h.store.touched != nil {
		h.store.touched[hash] = true
	}
}

// small is the largest content that is read into memory to be hashed and written. The number is our
// own: most source files.
const small = 1 << 20

// Keep stores a content of about size bytes, and returns its hash and its length. The file is not
// synced. Keep can be used as a workspace.Snapshotter's Keep.
func (h *Hold) Keep(content io.ReadSeeker, size int64) (hash string, n int64, err error) {
	var data []byte
	if size <= small {
		if data, err = io.ReadAll(content); err != nil {
			return "", 0, err
		}
		content = bytes.NewReader(data)
	}
	if hash, n, err = readThrough(content); err != nil {
		return "", 0, err
	}
	h.Need(hash)
	if h.store.sound(hash, n) {
		return hash, n, nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	if h.stored++; h.packs && h.stored > loose && size <= small {
		return hash, n, h.pack(hash, data)
	}
	return h.store.add(h, content)
}

// added notes a content that has just been stored.
func (s *Store) added(hash string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += n
	s.grown = true
	s.whole[hash] = true
	delete(s.synced, s.path(hash)) // it is another file than one that was
}

// hashOf is how a content is called.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readThrough returns how a content is called that is not held in memory, and its length.
func readThrough(content io.Reader) (hash string, n int64, err error) {
	sum := sha256.New()
	n, err = io.Copy(sum, content)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

// KeepShown does what Keep does for contents of which a diff can be made, and only hashes larger ones.
func (h *Hold) KeepShown(content io.ReadSeeker, size int64) (hash string, n int64, err error) {
	if size <= maxShown {
		return h.Keep(content, size)
	}
	return readThrough(content)
}

// add writes a content that is not there, under the hash of what was read.
func (s *Store) add(h *Hold, content io.Reader) (hash string, n int64, err error) {
	temp := filepath.Join(s.dir, tempPrefix+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	hash, n, err = readThrough(io.TeeReader(content, f))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		h.Need(hash)
		err = s.place(temp, hash)
	}
	if err != nil {
		return "", 0, errors.Join(err, os.Remove(temp))
	}
	s.added(hash, n)
	return hash, n, nil
}

func (s *Store) place(temp, hash string) error {
	path := s.path(hash)
	err := os.Rename(temp, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		err = os.Rename(temp, path)
	}
	return err
}

func (s *Store) path(hash string) string { return filepath.Join(s.dir, hash[:2], hash) }

// hashForm is what a hash looks like. What is read from a row may be anything.
var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Has reports that something is kept under the hash. Whether it is whole is only known when it is read.
func (s *Store) Has(hash string) bool {
	if !hashForm.MatchString(hash) {
		return false
	}
	if _, ok := s.inPack(hash); ok {
		return true
	}
	_, err := os.Lstat(s.path(hash))
	return err == nil
}

// Whole reports that the content is kept and is what it should be.
func (s *Store) Whole(hash string) bool { return hashForm.MatchString(hash) && s.sound(hash, -1) }

// sound reports that a content is there and whole: what was not synced may be torn by a loss of power, so what this
// process has neither written nor read through is read. size is how long it should be; negative: that is not known.
func (s *Store) sound(hash string, size int64) bool {
	p, packed := s.inPack(hash)
	length := p.length
	if !packed {
		info, err := os.Lstat(s.path(hash))
		if err != nil {
			return false
		}
		length = info.Size()
	}
	if size >= 0 && length != size {
		return false
	}
	s.mu.Lock()
	known := s.whole[hash]
	s.mu.Unlock()
	if known {
		return true
	}
	if packed {
		data, err := s.load(hash)
		return err == nil && s.note(hash, hashOf(data) == hash)
	}
	f, err := os.Open(s.path(hash))
	if err != nil {
		return false
	}
	defer f.Close()
	read, _, err := readThrough(f)
	return err == nil && s.note(hash, read == hash)
}

// note records whether a content is complete, and returns that.
func (s *Store) note(hash string, whole bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole {
		s.whole[hash] = true
	} else {
		delete(s.whole, hash)
	}
	return whole
}

// Read returns a content. The error is ErrGone when it is not kept any more, or is not whole.
func (s *Store) Read(hash string) ([]byte, error) {
	if !hashForm.MatchString(hash) {
		return nil, ErrGone
	}
	data, err := s.load(hash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	if !s.note(hash, hashOf(data) == hash) {
		return nil, ErrGone
	}
	return data, nil
}

// Sync returns when all that the hold has kept is on the disk, together with the names by which it is found.
func (h *Hold) Sync() error {
	s := h.store
	paths, packs := s.unsynced(h.hashes)
	all := slices.AppendSeq(slices.Collect(maps.Keys(paths)), maps.Keys(packs))
	if err := syncAll(all); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.synced, paths)
	for pack, end := range packs {
		s.syncedTo[pack] = max(s.syncedTo[pack], end)
	}
	return nil
}

// unsynced returns what has to be synced for contents: files and directories, and packs, each with
// the end of the part that is needed.
func (s *Store) unsynced(hashes []string) (paths map[string]bool, packs map[string]int64) {
	paths, packs = map[string]bool{}, map[string]int64{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range hashes {
		if p, ok := s.packed[hash]; ok {
			if end, known := s.syncedTo[p.pack]; end < p.at+p.length || !known {
				packs[p.pack], paths[s.dir] = max(packs[p.pack], p.at+p.length), true
			}
			continue
		}
		path := s.path(hash)
		if dir := filepath.Dir(path); !s.synced[path] {
			paths[path], paths[dir] = true, true
			if !s.synced[dir] {
				paths[s.dir] = true
			}
		}
	}
	return paths, packs
}

// syncers is how many files are synced side by side: a file system writes what is asked for together at once.
const syncers = 8

func syncAll(paths []string) error {
	var syncing sync.WaitGroup
	failed := make([]error, syncers)
	for first := range min(syncers, len(paths)) {
		syncing.Go(func() {
			for i := first; i < len(paths) && failed[first] == nil; i += syncers {
				failed[first] = syncFile(paths[i])
			}
		})
	}
	syncing.Wait()
	return errors.Join(failed...)
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
