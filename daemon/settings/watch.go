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
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A reading is a file as it was found, and what it means. It is not changed once it is made, and as long as the file
// has the same content, it is the same reading.
type reading[T any] struct {
	sum  string     // of the content, in hexadecimal; empty: there is no file, or it cannot be read
	err  *FileError // why the file as it stands does not count; nil: it does, or there is none
	good *T         // the file's meaning, or what it last was; nil: there is none
}

// A stamp is what stat returns of a file.
type stamp struct {
	errno            unix.Errno
	mode             uint32
	device, inode    uint64
	size             int64
	changed, written int64 // nanoseconds
}

// grain is how long after a change a file may change again without a new stamp. File systems count time in steps, of
// 10 ms and less here, but of 2 s on some sticks; a look within it reads the content too.
const grain = 2 * time.Second

func stampOf(file string) stamp {
	var st unix.Stat_t
	err := unix.Stat(file, &st)
	for errors.Is(err, unix.EINTR) {
		err = unix.Stat(file, &st)
	}
	if errno, is := errors.AsType[unix.Errno](err); is {
		return stamp{errno: errno}
	}
	return stamp{
		mode: uint32(st.Mode), device: uint64(st.Dev), inode: st.Ino, size: st.Size,
		changed: st.Ctim.Nano(), written: st.Mtim.Nano(),
	}
}

// absent reports whether there is no such file.
func (s stamp) absent() bool { return s.errno == unix.ENOENT || s.errno == unix.ENOTDIR }

// same reports whether both are of one file.
func (s stamp) same(o stamp) bool {
	return s.errno == 0 && o.errno == 0 && s.device == o.device && s.inode == o.inode
}

// settled reports whether a later change will have another stamp.
func (s stamp) settled(now time.Time) bool {
	return s.errno != 0 || now.UnixNano()-max(s.changed, s.written) > int64(grain)
}

// A watched file is a file with the state in which it was last found.
type watched[T any] struct {
	file  string
	read  func(file string) ([]byte, error)
	parse func(data []byte) (*T, error) // the error is a *FileError
	clock func() time.Time

	mu      sync.Mutex
	stamp   stamp
	settled bool // the stamp is enough to see whether the file is different
	reading *reading[T]
}

// now returns the file as it is.
func (w *watched[T]) now() (*reading[T], stamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamp := stampOf(w.file) // before the content, so that a change between the two is seen the next time
	if w.reading != nil && w.settled && stamp == w.stamp {
		return w.reading, stamp
	}
	w.stamp, w.settled = stamp, stamp.settled(w.clock())
	next := &reading[T]{}
	var data []byte
	var err error
	if !stamp.absent() {
		data, err = w.read(w.file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), stamp.absent():
	case err != nil:
		w.settled = false // what keeps a file from being read may pass without a trace on the file
		next.err = asFileError(w.file, "read", err)
	default:
		next.sum = sum(data)
	}
	w.update(next, data)
	return w.reading, stamp
}

// update makes next the reading unless it is the same as before.
func (w *watched[T]) update(next *reading[T], data []byte) {
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

// asFileError returns the error as a *FileError with what could not be done with the file.
func asFileError(file, done string, err error) *FileError {
	if known, is := errors.AsType[*FileError](err); is {
		return known
	}
	if path, is := errors.AsType[*fs.PathError](err); is {
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
	if s := stampOf(file); s.errno == 0 && s.mode&unix.S_IFMT != unix.S_IFREG {
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

// readDir returns the names of a directory's *.json files in order, with a NUL behind each.
func readDir(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	var names []byte
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name()+"\x00"...)
		}
	}
	return names, err
}

// parseNames returns the names that readDir has listed.
func parseNames(data []byte) (*[]string, error) {
	names := strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 })
	return &names, nil
}
