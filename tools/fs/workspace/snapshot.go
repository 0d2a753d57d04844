// Snapshots of what stands at a path, taken without following links or opening special files.

package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A SnapshotKind is the kind of entry at a path.
type SnapshotKind string

// The kinds. Unkept: there is an entry whose content is not kept; Snapshot.Why is the reason.
const (
	Absent    SnapshotKind = "absent"
	Regular   SnapshotKind = "regular"
	Link      SnapshotKind = "link"
	Directory SnapshotKind = "directory"
	Unkept    SnapshotKind = "unkept"
)

// A Snapshot is what stands at a path at one moment. Journals store its JSON form.
type Snapshot struct {
	Kind   SnapshotKind `json:"kind"`
	Mode   fs.FileMode  `json:"mode,omitempty"`   // permissions, with setuid, setgid and sticky
	Size   int64        `json:"size,omitempty"`   // bytes, of a file
	Hash   string       `json:"hash,omitempty"`   // SHA-256 of the content, hexadecimal; of a regular file
	Target []byte       `json:"target,omitempty"` // of a link, as it is stored there
	ID     FileID       `json:"id,omitzero"`      // which file it is, whatever its names; of a regular file
	Names  int          `json:"names,omitempty"`  // how many names it has
	Why    string       `json:"why,omitempty"`    // of an unkept entry, as a clause
	Stamp  int64        `json:"stamp,omitempty"`  // of an unkept entry: when it was last changed
}

// A FileID identifies a file, also when an inode is reused after a file was removed. It is zero
// where the file system has no time of birth: names of the same file are then not recognised.
type FileID struct {
	Device uint64 `json:"dev"`
	Inode  uint64 `json:"ino"`
	Born   int64  `json:"born"` // nanoseconds since 1970
}

// Known reports whether the ID is set.
func (id FileID) Known() bool { return id != FileID{} }

// Same reports whether both have the same content, mode and target, in whatever inode. For an
// unkept entry it reports only whether it was changed.
func (i Snapshot) Same(o Snapshot) bool {
	return i.Kind == o.Kind && i.Mode == o.Mode && i.Hash == o.Hash && bytes.Equal(i.Target, o.Target) && i.Stamp == o.Stamp && i.Size == o.Size
}

// modeBits are the bits of a mode that a snapshot holds.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// A Snapshotter is how snapshots are taken.
type Snapshotter struct {
	// Keep stores a content of about size bytes and returns its SHA-256, in hexadecimal, and its
	// length in bytes. Its error ends the whole operation. If nil, contents are hashed and not
	// stored.
	Keep func(content io.ReadSeeker, size int64) (hash string, n int64, err error)
	// Refuse returns, as a clause, why the content of the file at a real path must not be kept, or
	// "" if it may be. If nil, all may be.
	Refuse func(real string) string
	// Entries and Bytes are how much TakeSnapshots keeps at most of all directories together.
	Entries int
	Bytes   int64
	// Skip reports whether an entry below one of SnapshotSet.New is left out. If nil, none is.
	Skip func(real string, isDir bool) bool
	// Each makes Bytes the limit of each file, instead of all files together.
	Each bool
}

// Snapshot returns what stands at a real path. It does not follow links, neither there nor on the
// way. A file that must not be kept, because of the Snapshotter or a rule that denies reading it,
// is Unkept and not opened. The error is the Snapshotter's.
func (v *View) Snapshot(c Snapshotter, real string) (Snapshot, error) {
	l := &snapshotWalk{view: v, snapshotter: c, left: c.Bytes}
	defer l.close()
	return l.snapshot(real)
}

// A snapshotWalk takes snapshots one after the other. It keeps the directory of the latest one
// open.
type snapshotWalk struct {
	view        *View
	snapshotter Snapshotter
	left        int64 // bytes that may still be kept; 0: no limit
	// guessed is set if the call does not declare that it changes the path.
	guessed bool
	parent  string
	dir     *os.Root
}

// maxGuessed is the largest file, in bytes, that is kept although the call does not declare that it
// changes it. The number is our own: above what people write, and below what compilers write.
const maxGuessed = 4 << 20

func (l *snapshotWalk) close() {
	if l.dir != nil {
		l.dir.Close()
		l.dir = nil
	}
}

func unkept(format string, args ...any) Snapshot {
	return Snapshot{Kind: Unkept, Why: fmt.Sprintf(format, args...)}
}

// open opens the directory of real, unless it is open already.
func (l *snapshotWalk) open(real string) error {
	parent := filepath.Dir(real)
	if l.dir != nil && l.parent == parent {
		return nil
	}
	l.close()
	dir, err := l.view.ws.openRoot(parent)
	if err != nil {
		return err
	}
	l.parent, l.dir = parent, dir
	return nil
}

func (l *snapshotWalk) snapshot(real string) (Snapshot, error) {
	if l.view.ws.Place(real) == Hidden {
		return unkept("it belongs to the daemon itself"), nil
	}
	if real == "/" {
		info, err := os.Lstat(real)
		if err != nil {
			return unkept("it cannot be looked at: %v", Cause(err)), nil
		}
		return Snapshot{Kind: Directory, Mode: info.Mode() & modeBits}, nil
	}
	if err := l.open(real); err != nil {
		way, lost := follow(machine, real)
		if len(way.passed) > 0 || lost == nil && way.missing > 0 {
			return Snapshot{Kind: Absent}, nil // a link on the way leads elsewhere
		}
		return unreached(err), nil
	}
	base := filepath.Base(real)
	info, err := l.dir.Lstat(base)
	if err != nil {
		return unreached(err), nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return Snapshot{Kind: Directory, Mode: mode & modeBits}, nil
	case mode&fs.ModeSymlink != 0:
		target, err := l.dir.Readlink(base)
		if err != nil {
			return unreached(err), nil
		}
		return Snapshot{Kind: Link, Target: []byte(target)}, nil
	case !mode.IsRegular():
		return stamped(info, "it is not a file, a directory or a link"), nil
	}
	return l.regular(real, base, info)
}

// unreached returns the snapshot of an entry that cannot be examined.
func unreached(err error) Snapshot {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Snapshot{Kind: Absent}
	case errors.Is(err, errMoved), errors.Is(err, syscall.ELOOP):
		return unkept("a directory on the way to it was replaced")
	}
	return unkept("it cannot be looked at: %v", Cause(err))
}

// stamped returns the snapshot of an unkept file, with the time by which a change is detected.
func stamped(info fs.FileInfo, format string, args ...any) Snapshot {
	i := unkept(format, args...)
	i.Size, i.Stamp = info.Size(), StateOf(info).Ctime.UnixNano()
	return i
}

// regular takes the snapshot of a regular file, whose metadata was just read.
func (l *snapshotWalk) regular(real, base string, looked fs.FileInfo) (Snapshot, error) {
	if why := l.refused(real); why != "" {
		return stamped(looked, "%s", why), nil
	}
	f, err := l.dir.OpenFile(base, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	if err != nil {
		i := unreached(err)
		if i.Kind == Unkept {
			i = stamped(looked, "%s", i.Why)
		}
		return i, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(info, looked) {
		return stamped(looked, "it was replaced while it was read"), nil
	}
	if info.Size() == 0 && isMadeUp(f) {
		return stamped(info, "it is generated by the kernel when it is read"), nil
	}
	if l.left > 0 && info.Size() > l.left {
		bound := "left of what is kept for one call"
		if l.snapshotter.Each {
			bound = "the most that is kept of one file"
		}
		return stamped(info, "it has %d bytes, and %d are %s", info.Size(), l.left, bound), nil
	}
	if l.guessed && info.Size() > maxGuessed {
		return stamped(info, "it has more than %d MiB, and the call does not declare that it changes it", maxGuessed>>20), nil
	}
	i := Snapshot{Kind: Regular, Mode: info.Mode() & modeBits, ID: idOf(f)}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		i.Names = int(sys.Nlink)
	}
	keep := l.snapshotter.Keep
	if keep == nil {
		keep = hashOnly
	}
	source := &sound{file: f}
	i.Hash, i.Size, err = keep(source, info.Size())
	if source.err != nil {
		return stamped(info, "it cannot be read: %v", Cause(source.err)), nil
	}
	if l.left > 0 && !l.snapshotter.Each {
		l.left = max(l.left-i.Size, 1)
	}
	return i, err
}

// sound records errors of reading a file, to distinguish them from errors of storing it.
type sound struct {
	file *os.File
	err  error
}

func (s *sound) Seek(offset int64, whence int) (int64, error) { return s.file.Seek(offset, whence) }

func (s *sound) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// refused returns why the content of a file is not kept.
func (l *snapshotWalk) refused(real string) string {
	if l.snapshotter.Refuse != nil {
		if why := l.snapshotter.Refuse(real); why != "" {
			return why
		}
	}
	if denied := l.view.grant.ReadDenied; denied != nil && denied(real) != "" {
		return "a rule denies reading it"
	}
	return ""
}

func hashOnly(content io.ReadSeeker, _ int64) (string, int64, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, content)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

// born returns a FileID if the time of birth is known.
func born(device, inode uint64, at time.Time) FileID {
	if at.IsZero() || at.UnixNano() == 0 {
		return FileID{}
	}
	return FileID{Device: device, Inode: inode, Born: at.UnixNano()}
}
