// Package memstore keeps the files of the tool Memory: a folder for each principal and workspace, that
// nothing leads out of. It does not know what a call is, nor which names a call may use.
package memstore

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

const (
	// Limit is how many bytes a folder may hold. Each file and each directory counts as entrySize more, so
	// that it also limits their number.
	Limit     = 10 << 20
	entrySize = 1 << 10
	// Root is the name of the folder in paths.
	Root = "/memories"
)

var (
	// ErrFull is the error of a change after which a folder would hold more than Limit.
	ErrFull = errors.New("the memory is full")
	// ErrLink is the error for a path with a symbolic link in it. Memory makes none and follows none.
	ErrLink = errors.New("there is a symbolic link on the path")
)

// A Touch is a file or directory of a folder that a call reads or changes.
type Touch struct {
	Path  string // clean; Root or below it
	Write bool
}

// A Set is the folders below one directory. It is safe for concurrent use by one process.
type Set struct {
	dir string
	mu  sync.RWMutex // held by every access, so that none sees half of a change
}

// NewSet returns the folders below dir, which is made when the first of them is used.
func NewSet(dir string) *Set { return &Set{dir: dir} }

// Of returns the folder of a principal in a workspace, given by the real path of its first root.
func (s *Set) Of(principal, root string) Store { return Store{s, principal, root} }

// A Store is one folder. The zero Store has none: reading and changing it fail.
type Store struct {
	set             *Set
	principal, root string
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Dir returns the path of the folder. Its last name begins with that of the workspace, for people who look for it.
func (s Store) Dir() string {
	sum := sha256.Sum256([]byte(s.principal + "\x00" + s.root))
	name := strings.Trim(unfit.ReplaceAllString(path.Base(s.root), "_"), ".")
	return filepath.Join(s.set.dir, name[:min(len(name), 64)]+"-"+hex.EncodeToString(sum[:8]))
}

// Read calls f with the files, while nothing changes them.
func (s Store) Read(f func(*Files) error) error {
	if s.set == nil {
		return fs.ErrNotExist
	}
	s.set.mu.RLock()
	defer s.set.mu.RUnlock()
	return s.open(f)
}

// Change calls f with the files, while nothing else uses them.
func (s Store) Change(f func(*Files) error) error {
	if s.set == nil {
		return fs.ErrNotExist
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	return s.open(f)
}

func (s Store) open(f func(*Files) error) error {
	dir := s.Dir()
	if err := makeFolder(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it holds nothing back
	return f(&Files{root})
}

// makeFolder makes the folder of that path, if it is not there.
func makeFolder(dir string) error {
	inside := filepath.Join(dir, Root)
	if _, err := os.Lstat(inside); err == nil {
		return nil
	}
	err := os.MkdirAll(inside, 0o700)
	for _, made := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		err = errors.Join(err, syncPath(made))
	}
	return err
}

// Files are what a folder holds. Paths are clean, and are Root or lie below it. A path with a symbolic link in it is refused
// with ErrLink. Files must not be used after the function that got it has returned.
type Files struct{ root *os.Root }

// Lstat describes a file or directory.
func (f *Files) Lstat(name string) (info fs.FileInfo, err error) {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if info, err = f.root.Lstat(name[1:i]); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, ErrLink
		}
	}
	return info, nil
}

// ReadDir returns the entries of a directory, by name.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	if _, err := f.Lstat(name); err != nil {
		return nil, err
	}
	return fs.ReadDir(f.root.FS(), name[1:])
}

// ReadFile returns what a file holds.
func (f *Files) ReadFile(name string) ([]byte, error) {
	if _, err := f.Lstat(name); err != nil {
		return nil, err
	}
	return f.root.ReadFile(name[1:])
}

// Below returns the paths of all files and directories below a path, which may not exist.
func (f *Files) Below(name string) (names []string) {
	_ = f.walk(name, func(path string, _ fs.FileInfo) {
		if path != name {
			names = append(names, path)
		}
	})
	return names
}

// walk calls visit for a path and for all that is below it.
func (f *Files) walk(name string, visit func(path string, info fs.FileInfo)) error {
	if _, err := f.Lstat(name); err != nil {
		return err
	}
	return fs.WalkDir(f.root.FS(), name[1:], func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			visit("/"+path, info)
		}
		return err
	})
}

// Write makes name a file with that content, in one step: after a crash it has the old content or the new one. Missing
// directories above it are made.
func (f *Files) Write(name string, content []byte) error {
	if err := f.fits(name, int64(len(content))); err != nil {
		return err
	}
	if err := f.makeParent(name); err != nil {
		return err
	}
	temporary := "new-" + rand.Text()
	if err := f.removeLeftovers(); err != nil {
		return err
	}
	if err := f.writeSynced(temporary, content); err != nil {
		return errors.Join(err, f.root.RemoveAll(temporary))
	}
	if err := f.root.Rename(temporary, name[1:]); err != nil {
		return errors.Join(err, f.root.RemoveAll(temporary))
	}
	return f.syncDir(path.Dir(name))
}

// removeLeftovers removes what a daemon has left that was killed while it wrote.
func (f *Files) removeLeftovers() error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "new-") {
			err = errors.Join(err, f.root.RemoveAll(e.Name()))
		}
	}
	return err
}

func (f *Files) writeSynced(name string, content []byte) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func (f *Files) syncDir(name string) error {
	dir, err := f.root.Open(name[1:])
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// syncPath writes a directory to the disk.
func syncPath(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// makeParent makes the directories above a path.
func (f *Files) makeParent(name string) error {
	if _, err := f.Lstat(path.Dir(name)); err == nil || errors.Is(err, ErrLink) {
		return err
	}
	err := f.root.MkdirAll(path.Dir(name)[1:], 0o700)
	for dir := path.Dir(name); err == nil && dir != Root; dir = path.Dir(dir) {
		err = f.syncDir(path.Dir(dir))
	}
	return err
}

// fits returns ErrFull if the folder has no room for a file of that size at name, and the directories above it.
func (f *Files) fits(name string, size int64) error {
	total := size + entrySize
	missing := path.Dir(name)
	for ; missing != Root && missing != "/"; missing = path.Dir(missing) {
		if _, err := f.Lstat(missing); err == nil {
			break
		}
		total += entrySize
	}
	err := f.walk(Root, func(path string, info fs.FileInfo) {
		if path == name {
			return
		}
		total += entrySize
		if info.Mode().IsRegular() {
			total += info.Size()
		}
	})
	if err == nil && total > Limit {
		return fmt.Errorf("%w: it would hold %d bytes, and may hold %d", ErrFull, total, Limit)
	}
	return err
}

// Remove removes a file, or a directory with all that is in it.
func (f *Files) Remove(name string) error {
	if _, err := f.Lstat(name); err != nil {
		return err
	}
	return errors.Join(f.root.RemoveAll(name[1:]), f.syncDir(path.Dir(name)))
}

// Rename moves a file or directory to another path, where nothing is. Missing directories above that are made.
func (f *Files) Rename(from, to string) error {
	if _, err := f.Lstat(from); err != nil {
		return err
	}
	if err := f.fits(to, -entrySize); err != nil { // only directories are added
		return err
	}
	if err := f.makeParent(to); err != nil {
		return err
	}
	err := f.root.Rename(from[1:], to[1:])
	return errors.Join(err, f.syncDir(path.Dir(from)), f.syncDir(path.Dir(to)))
}
