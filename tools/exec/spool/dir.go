// Package spool stores the output of calls: each call's two channels in one raw file that any
// program can read, with a small index beside it that maps bytes to channels. Readers of an output
// read the file by position, at their own speed. The package does not know processes or clients.
package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// defaultLimit is how many bytes one output may take on disk, index included: 1 GiB.
const defaultLimit = 1 << 30

// ErrLimit, ErrFull and ErrGone are why an Output accepts no more. None is the fault of the command
// that printed. A limit other than the call's own is a [*LimitError].
var (
	ErrLimit = errors.New("the output limit of the call is reached")
	ErrFull  = errors.New("the disk that holds the output is full")
	ErrGone  = errors.New("the directory in which outputs are kept was deleted or moved away")
)

// The suffixes of an output's raw file and of its index.
const (
	rawSuffix   = ".out"
	indexSuffix = ".runs"
)

// A Dir is the folder with one session's outputs. It keeps no file open.
type Dir struct {
	*folder
	limit int64 // of one output, index included
}

// Open opens a folder that belongs to no store, and creates it if needed, readable only by its owner.
// An output in it takes at most 1 GiB, and all together have no limit.
func Open(dir string) (*Dir, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("output folder %q is not an absolute path", dir)
	}
	s := &Store{
		path: filepath.Dir(dir), bounds: Bounds{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		usedBy: map[string]int64{}, owners: map[string]string{}, folders: map[string]*folder{},
	}
	return s.Dir(filepath.Base(dir), "")
}

// Path returns the folder's absolute path.
func (d *Dir) Path() string { return d.path }

// Limited returns the same folder, for outputs of at most that many bytes, index included.
func (d *Dir) Limited(bytes int64) *Dir { return &Dir{d.folder, bytes} }

// Create returns a new output called name. Nothing is written before the first byte. If a non-empty
// output of that name exists by then, writing fails, so no output ever shows another's bytes.
func (d *Dir) Create(name string) (*Output, error) {
	base, err := d.base(name)
	if err != nil {
		return nil, err
	}
	d.grows(base, true)
	return &Output{base: base, limit: d.limit, folder: d.folder}, nil
}

// Find returns the output called name from the disk: one that has ended, or whose daemon has died.
// An error that is fs.ErrNotExist means that there is none; an output without any bytes leaves
// none.
func (d *Dir) Find(name string) (*Output, error) {
	base, err := d.base(name)
	if err != nil {
		return nil, err
	}
	return recoverOutput(base)
}

// Spill stores the whole text under name and returns the path of the file.
func (d *Dir) Spill(name, text string) (path string, err error) {
	base, err := d.base(name)
	if err != nil {
		return "", err
	}
	path = base + ".txt"
	n, err := d.take(int64(len(text)))
	if err == nil {
		err = writeFile(path, text)
	}
	if err != nil {
		d.free(n)
		return "", err
	}
	return path, nil
}

// writeFile makes a file with the whole text, or none.
func writeFile(path, text string) error {
	f, err := createExclusive(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // a partial result must not stand under the name of a complete one
	}
	return classify(err)
}

// base returns the path of name without a suffix.
func (d *Dir) base(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("output name %q is not a plain file name", name)
	}
	return filepath.Join(d.path, name), nil
}

// createExclusive makes a file that only its owner can read. It makes the folder again if that was
// removed, even together with its parent. It makes nothing further up, so that a state directory
// that was moved away can be moved back.
func createExclusive(path string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(path)
		_ = os.Mkdir(filepath.Dir(dir), 0o700) // if this or the next call fails, the file cannot be made
		_ = os.Mkdir(dir, 0o700)
		f, err = os.OpenFile(path, flags, 0o600)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return f, classify(err)
}

// classify converts the system's errors for a full disk to ErrFull.
func classify(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
