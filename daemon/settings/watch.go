// Files that are looked at again and read only when they are different. It does not know what stands in them.

package settings

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A reading is a file as it was found, and what it means. It is not changed once it is made, and as long as the file
// says the same, it is the same reading.
type reading[T any] struct {
	sum  string     // of the content, in hexadecimal; empty: there is no file, or it cannot be read
	err  *FileError // why the file as it stands does not count; nil: it does, or there is none
	good *T         // the file's meaning, or what it last was; nil: there is none
}

// A stamp is what the system tells of a file without opening it.
type stamp struct {
	errno            unix.Errno
	mode             uint32
	device, inode    uint64
	size             int64
	changed, written int64 // nanoseconds
}

// grain is how long after a change a file may change again without a new stamp. File systems count time in steps, of
// 10 ms and less here, but of 2 s on some sticks; whoever looks within it reads the content too.
const grain = 2 * time.Second

func look(file string) stamp {
	var st unix.Stat_t
	err := unix.Stat(file, &st)
	for errors.Is(err, unix.EINTR) {
		err = unix.Stat(file, &st)
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		return stamp{errno: errno}
	}
	return stamp{
		mode: uint32(st.Mode), device: uint64(st.Dev), inode: st.Ino, size: st.Size,
		changed: st.Ctim.Nano(), written: st.Mtim.Nano(),
	}
}

// absent reports that there is no such file.
func (s stamp) absent() bool { return s.errno == unix.ENOENT || s.errno == unix.ENOTDIR }

// same reports that both are of one file.
func (s stamp) same(o stamp) bool {
	return s.errno == 0 && o.errno == 0 && s.device == o.device && s.inode == o.inode
}

// settled reports that a later change will have another stamp.
func (s stamp) settled(now time.Time) bool {
	return s.errno != 0 || now.UnixNano()-max(s.changed, s.written) > int64(grain)
}

// A watched file knows how it was found last.
type watched[T any] struct {
	file  string
	parse func(data []byte) (*T, error) // the error is a *FileError
	clock func() time.Time

	mu      sync.Mutex
	stamp   stamp
	settled bool // stamp alone tells whether the file is different
	reading *reading[T]
}

// now gives the file as it is.
func (w *watched[T]) now() (*reading[T], stamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamp := look(w.file) // before the content, so that a change between the two is seen the next time
	if w.reading != nil && w.settled && stamp == w.stamp {
		return w.reading, stamp
	}
	w.stamp, w.settled = stamp, stamp.settled(w.clock())
	next := &reading[T]{}
	var data []byte
	var err error
	if !stamp.absent() {
		data, err = readFile(w.file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), stamp.absent():
	case err != nil:
		w.settled = false // what keeps a file from being read may pass without a trace on the file
		next.err = asFileError(w.file, "read", err)
	default:
		next.sum = sum(data)
	}
	w.take(next, data)
	return w.reading, stamp
}

// take makes next the reading unless it says the same as before.
func (w *watched[T]) take(next *reading[T], data []byte) {
	before := w.reading
	if before != nil && before.sum == next.sum && (next.sum != "" || sameError(before.err, next.err)) {
		return
	}
	if next.sum != "" {
		var err error
		if next.good, err = w.parse(data); err != nil {
			next.good, next.err = nil, asFileError(w.file, "read", err)
		}
	}
	if next.err != nil && before != nil {
		next.good = before.good
	}
	w.reading = next
}

func tooLarge(file string) *FileError {
	return &FileError{File: file, Why: fmt.Sprintf("it is larger than %d MiB", maxBytes>>20)}
}

func sameError(a, b *FileError) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// asFileError says of an error what could not be done with the file, unless it says enough itself.
func asFileError(file, done string, err error) *FileError {
	var known *FileError
	if errors.As(err, &known) {
		return known
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &FileError{File: file, Why: fmt.Sprintf("it cannot be %s: %v", done, err)}
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// readFile reads a regular file of bounded size. It opens nothing else, so that a pipe cannot hold it up.
func readFile(file string) ([]byte, error) {
	if s := look(file); s.errno == 0 && s.mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &FileError{File: file, Why: "it is not a regular file"}
	}
	return readOpened(file, func() (*os.File, error) {
		return os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	})
}

func readOpened(file string, open func() (*os.File, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &FileError{File: file, Why: "it is not a regular file"}
	}
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(f, maxBytes+1))
	if err == nil && n > maxBytes {
		err = tooLarge(file)
	}
	return data.Bytes(), err
}

// A watchedDir is a directory whose *.json files count, by name.
type watchedDir struct {
	dir   string
	clock func() time.Time

	mu      sync.Mutex
	stamp   stamp
	settled bool
	names   []string
	err     *FileError
}

// now gives the names as they are, and why they may not be all.
func (w *watchedDir) now() ([]string, *FileError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamp := look(w.dir)
	if w.settled && stamp == w.stamp {
		return w.names, w.err
	}
	w.stamp, w.settled = stamp, stamp.settled(w.clock())
	entries, err := os.ReadDir(w.dir)
	if err != nil && !stamp.absent() {
		w.settled = false
		if failed := asFileError(w.dir, "read", err); !sameError(failed, w.err) {
			w.err = failed
		}
		return w.names, w.err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	w.err = nil
	if !slices.Equal(names, w.names) {
		w.names = names
	}
	return w.names, nil
}
