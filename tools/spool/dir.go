// Package spool keeps what calls print: each call's two outputs in one raw file that any program can read, with a
// small index beside it of which bytes came on which channel. It knows no processes and no clients; who follows an
// output reads it by position, at his own pace, from the file.
package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// defaultLimit is how many bytes one output may take on disk, index included: 1 GiB.
const defaultLimit = 1 << 30

// ErrLimit, ErrFull and ErrGone are why an Output takes no more. None is the fault of the command that printed. A limit
// that is not the call's own is a [*LimitError].
var (
	ErrLimit = errors.New("the output limit of the call is reached")
	ErrFull  = errors.New("the disk that holds the output is full")
	ErrGone  = errors.New("the directory in which outputs are kept was deleted or moved away")
)

// The endings of an output's raw file and of its index.
const (
	rawSuffix   = ".out"
	indexSuffix = ".runs"
)

// A Dir is the folder that holds one session's outputs. It keeps no file open.
type Dir struct {
	*folder
	limit int64 // of one output, index included
}

// Open makes the folder, readable by its owner only, if it is not there yet. An output in it takes at most 1 GiB.
func Open(dir string) (*Dir, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("output folder %q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, classify(err)
	}
	return &Dir{&folder{path: filepath.Clean(dir)}, defaultLimit}, nil
}

// Path is the folder's absolute path.
func (d *Dir) Path() string { return d.path }

// Limited is the same folder, for outputs of at most so many bytes, index included.
func (d *Dir) Limited(bytes int64) *Dir { return &Dir{d.folder, bytes} }

// Create begins the output called name. Nothing is written before the first byte comes; an output of that name that
// holds something already is then an error, so no output ever shows another's bytes.
func (d *Dir) Create(name string) (*Output, error) {
	base, err := d.base(name)
	if err != nil {
		return nil, err
	}
	d.grows(base, true)
	return &Output{base: base, limit: d.limit, folder: d.folder}, nil
}

// Find returns the output called name as it is on disk: one that has ended, or whose daemon has died. An error that is
// fs.ErrNotExist says that there is none, which is also what remains of an output that never had a byte.
func (d *Dir) Find(name string) (*Output, error) {
	base, err := d.base(name)
	if err != nil {
		return nil, err
	}
	return recoverOutput(base)
}

// Spill keeps text whole under name and gives the path of the file.
func (d *Dir) Spill(name, text string) (path string, err error) {
	base, err := d.base(name)
	if err != nil {
		return "", err
	}
	path = base + ".txt"
	if n, err := d.take(int64(len(text))); err != nil {
		d.free(n)
		return "", err
	}
	f, err := createExclusive(path)
	if err != nil {
		d.free(int64(len(text)))
		return "", err
	}
	if _, err = f.WriteString(text); err == nil {
		err = f.Close()
	} else {
		_ = f.Close()
	}
	if err != nil {
		_ = os.Remove(path) // half a result under the name of a whole one would be a lie
		d.free(int64(len(text)))
		return "", classify(err)
	}
	return path, nil
}

// base is the path of name without an ending.
func (d *Dir) base(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("output name %q is not a plain file name", name)
	}
	return filepath.Join(d.path, name), nil
}

// createExclusive makes a file that nobody else can read. The folder is made again if it was removed, also together
// with the one that holds it; further up nothing is made, so that a state directory that was moved away can be moved
// back.
func createExclusive(path string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(path)
		_ = os.Mkdir(filepath.Dir(dir), 0o700) // if this or the next fails, there is still no file
		_ = os.Mkdir(dir, 0o700)
		f, err = os.OpenFile(path, flags, 0o600)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return f, classify(err)
}

// classify turns the system's words for a full disk into ErrFull.
func classify(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
