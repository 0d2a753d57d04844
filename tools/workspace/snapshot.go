// What stands at a path at one moment, and how to look at it without following or opening anything that is not meant.
// It does not know what images are for, nor where contents are kept.

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

// An SnapshotKind says what stands at a path.
type SnapshotKind string

// The kinds. Unkept: something is there whose content is not kept; Image.Why says why.
const (
	Absent    SnapshotKind = "absent"
	Regular   SnapshotKind = "regular"
	Link      SnapshotKind = "link"
	Directory SnapshotKind = "directory"
	Unkept    SnapshotKind = "unkept"
)

// An Snapshot is what stands at a path at one moment. Its JSON form is what journals keep.
type Snapshot struct {
	Kind   SnapshotKind `json:"kind"`
	Mode   fs.FileMode  `json:"mode,omitempty"`   // permissions, with setuid, setgid and sticky
	Size   int64        `json:"size,omitempty"`   // bytes, of a file
	Hash   string       `json:"hash,omitempty"`   // SHA-256 of the content, hexadecimal; of a regular file
	Target []byte       `json:"target,omitempty"` // of a link, as it is written there
	ID     FileID       `json:"id,omitzero"`      // which file it is, whatever its names; of a regular file
	Names  int          `json:"names,omitempty"`  // how many it has
	Why    string       `json:"why,omitempty"`    // of what is unkept, as a clause
	Stamp  int64        `json:"stamp,omitempty"`  // of what is unkept: when it was last changed
}

// A FileID tells files apart, also one that was given the inode of another that is gone. It is zero where the file system
// does not tell when a file came into being: names of the same file are then not known to be that.
type FileID struct {
	Device uint64 `json:"dev"`
	Inode  uint64 `json:"ino"`
	Born   int64  `json:"born"` // nanoseconds since 1970
}

// Known reports that the ID says something.
func (id FileID) Known() bool { return id != FileID{} }

// Same reports that both are of the same content, mode and target. Which inode holds it does not count. Of what is unkept
// it is only known whether it was changed.
func (i Snapshot) Same(o Snapshot) bool {
	return i.Kind == o.Kind && i.Mode == o.Mode && i.Hash == o.Hash && bytes.Equal(i.Target, o.Target) && i.Stamp == o.Stamp && i.Size == o.Size
}

// modeBits are the bits of a mode that an image holds.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// A Snapshotter says how images are taken.
type Snapshotter struct {
	// Keep takes a content of about size bytes and gives its SHA-256, in hexadecimal, and how many bytes it had. Its error
	// ends everything. Nil: contents are hashed and kept nowhere.
	Keep func(content io.ReadSeeker, size int64) (hash string, n int64, err error)
	// Refuse says, as a clause, why the content of the file at a real path is not to be kept; empty: it may be. Nil: all
	// may.
	Refuse func(real string) string
	// Entries and Bytes are how much Expose takes at most of all directories together.
	Entries int
	Bytes   int64
	// Each: Bytes are those of each file, not of all together.
	Each bool
}

// Snapshot returns what stands at a real path. Links are not followed, neither there nor on the way. What may not be kept, by
// the snapshotter or by a rule that bars reading it, is Unkept and not opened. The error is the snapshotter's.
func (v *View) Snapshot(c Snapshotter, real string) (Snapshot, error) {
	l := &snapshotWalk{view: v, snapshotter: c, left: c.Bytes}
	defer l.close()
	return l.snapshot(real)
}

// A snapshotWalk takes images one after the other. It holds the directory of the latest open.
type snapshotWalk struct {
	view        *View
	snapshotter Snapshotter
	left        int64 // bytes that may still be taken; 0: no limit was given
	// guessed: the path is none that somebody says will be changed.
	guessed bool
	parent  string
	dir     *os.Root
}

// maxGuessed is the largest file, in bytes, that is taken only because it may be meant. Ours: above what people write, and
// below what compilers do.
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

// open makes the directory of real the lens's.
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
			return unkept("it cannot be looked at: %v", cause(err)), nil
		}
		return Snapshot{Kind: Directory, Mode: info.Mode() & modeBits}, nil
	}
	if err := l.open(real); err != nil {
		way := resolver{named: real, at: "/", links: maxLinks}
		if lost := way.follow(real); len(way.passed) > 0 || lost == nil && way.missing > 0 {
			return Snapshot{Kind: Absent}, nil // a link on the way leads to something else, be it of that name
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
		return stamped(unkept("it is neither a file nor a directory nor a link"), info), nil
	}
	return l.regular(real, base, info)
}

// unreached is the image of what cannot be looked at.
func unreached(err error) Snapshot {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Snapshot{Kind: Absent}
	case errors.Is(err, errMoved), errors.Is(err, syscall.ELOOP):
		return unkept("something on the way to it has been put in the place of something else")
	}
	return unkept("it cannot be looked at: %v", cause(err))
}

// stamped adds what tells whether an unkept file is changed.
func stamped(i Snapshot, info fs.FileInfo) Snapshot {
	i.Size, i.Stamp = info.Size(), StateOf(info).Ctime.UnixNano()
	return i
}

// regular takes the image of a regular file, whose facts were just looked at.
func (l *snapshotWalk) regular(real, base string, looked fs.FileInfo) (Snapshot, error) {
	if why := l.refused(real); why != "" {
		return stamped(unkept("%s", why), looked), nil
	}
	f, err := l.dir.OpenFile(base, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
	if err != nil {
		return stamped(unreached(err), looked), nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(info, looked) {
		return stamped(unkept("it was exchanged while it was looked at"), looked), nil
	}
	if info.Size() == 0 && isMadeUp(f) {
		return stamped(unkept("it is made up by the kernel while it is read"), info), nil
	}
	if l.left > 0 && info.Size() > l.left {
		return stamped(unkept("it has %d bytes, and %d are %s", info.Size(), l.left, l.bound()), info), nil
	}
	if l.guessed && info.Size() > maxGuessed {
		return stamped(unkept("it has more than %d MiB, and the call does not say that it changes it", maxGuessed>>20), info), nil
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
		return stamped(unkept("it cannot be read: %v", cause(source.err)), info), nil
	}
	if l.left > 0 && !l.snapshotter.Each {
		l.left = max(l.left-i.Size, 1)
	}
	return i, err
}

// bound returns, as a clause, what the bytes that may still be taken are.
func (l *snapshotWalk) bound() string {
	if l.snapshotter.Each {
		return "the most that is kept of one file"
	}
	return "left of what is kept for one call"
}

// sound notes what goes wrong while a file is read, to tell it from what goes wrong where it is kept.
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
	if barred := l.view.grant.ReadDenied; barred != nil && barred(real) != "" {
		return "a rule is about reading it"
	}
	return ""
}

func hashOnly(content io.ReadSeeker, _ int64) (string, int64, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, content)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

// born returns a FileID, if the time of birth is known.
func born(device, inode uint64, at time.Time) FileID {
	if at.IsZero() || at.UnixNano() == 0 {
		return FileID{}
	}
	return FileID{Device: device, Inode: inode, Born: at.UnixNano()}
}
