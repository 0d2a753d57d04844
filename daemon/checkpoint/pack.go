// Packs: many small contents in one file. A call that removes thousands of files waits for each
// content, and making a file takes longer than anything else that is done with it.

package checkpoint

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const packPrefix = "pack-"

// packHeader is how many bytes stand before each content in a pack: its SHA-256, and its length.
const packHeader = sha256.Size + 8

// A packed is where a content lies in a pack.
type packed struct {
	pack   string // the path of the file
	at     int64
	length int64
}

// loose is how many contents of a hold get files of their own, which can be dropped one by one. The
// number is our own: most calls change fewer files.
const loose = 16

// HoldPacked begins a hold that stores small contents together, in a file of its own, once there are
// many.
func (s *Store) HoldPacked() *Hold { return &Hold{store: s, packs: true} }

// pack appends a content to the hold's file.
func (h *Hold) pack(hash string, data []byte) error {
	if h.file == nil {
		if err := h.newPack(filepath.Join(h.store.dir, packPrefix+rand.Text())); err != nil {
			return err
		}
	}
	entry, err := hex.DecodeString(hash)
	if err != nil {
		return err
	}
	entry = append(binary.BigEndian.AppendUint64(entry, uint64(len(data))), data...)
	if _, err := h.file.WriteAt(entry, h.end); err != nil { // what is half written is written over
		return errors.Join(err, h.file.Truncate(h.end))
	}
	h.store.mu.Lock()
	h.store.packed[hash] = packed{h.file.Name(), h.end + packHeader, int64(len(data))}
	h.store.mu.Unlock()
	h.end += int64(len(entry))
	h.store.added(hash, int64(len(data)))
	return nil
}

// newPack makes the hold's file. No sweep sees it before it is known to be written.
func (h *Hold) newPack(path string) (err error) {
	h.store.setWriting(path, true)
	if h.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		h.file = nil
		h.store.setWriting(path, false)
	}
	h.end = 0
	return err
}

func (s *Store) setWriting(path string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing[path] = is; !is {
		delete(s.writing, path)
	}
}

// openPacks finds the contents of all packs. A pack that was cut short has those before the cut.
func (s *Store) openPacks() error {
	packs, err := filepath.Glob(filepath.Join(s.dir, packPrefix+"*"))
	for _, path := range packs {
		f, wrong := os.Open(path)
		if wrong != nil {
			return wrong
		}
		info, wrong := f.Stat()
		if wrong == nil {
			readPack(f, info.Size(), func(hash string, at, length int64) { s.packed[hash] = packed{path, at, length} })
		}
		if wrong = errors.Join(wrong, f.Close()); wrong != nil {
			return wrong
		}
	}
	return err
}

// readPack calls visit with each content of a pack of so many bytes that is there as a whole.
func readPack(file io.ReaderAt, size int64, visit func(hash string, at, length int64)) {
	var header [packHeader]byte
	for at := int64(0); ; {
		if _, err := file.ReadAt(header[:], at); err != nil {
			return
		}
		length := int64(binary.BigEndian.Uint64(header[sha256.Size:]))
		at += packHeader
		if length < 0 || length > size-at {
			return
		}
		visit(hex.EncodeToString(header[:sha256.Size]), at, length)
		at += length
	}
}

// inPack returns where a content lies in a pack.
func (s *Store) inPack(hash string) (packed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.packed[hash]
	return p, ok
}

// load returns a content, whole or not, from wherever it lies. The error is fs.ErrNotExist if it is
// not there.
func (s *Store) load(hash string) ([]byte, error) {
	p, ok := s.inPack(hash)
	if !ok {
		return os.ReadFile(s.path(hash))
	}
	f, err := os.Open(p.pack)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, p.at, p.length))
}

// packUses returns when the newest of the needed contents of each pack was used.
func (s *Store) packUses(used map[string]time.Time) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	packs := map[string]time.Time{}
	for hash, p := range s.packed {
		if used[hash].After(packs[p.pack]) {
			packs[p.pack] = used[hash]
		}
	}
	return packs
}

// removePack removes a pack unless one of its contents was requested meanwhile.
func (s *Store) removePack(path string) (gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hashes []string
	for hash, p := range s.packed {
		if p.pack != path {
			continue
		}
		if s.held[hash] > 0 || s.touched[hash] {
			return false, nil
		}
		hashes = append(hashes, hash)
	}
	if s.writing[path] {
		return false, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, hash := range hashes {
		delete(s.packed, hash)
		delete(s.whole, hash)
	}
	delete(s.syncedTo, path)
	return true, nil
}

func isPack(name string) bool { return strings.HasPrefix(name, packPrefix) }
