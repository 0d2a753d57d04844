// What the file of a buffer is on the disk. It does not know what the buffer holds.

package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// onDisk is a file at one moment, as far as it can be compared with a buffer.
type onDisk struct {
	there  bool
	state  State     // with the hash of its content, if that is not too large
	text   string    // hash of its content as text; empty: it is none
	looked time.Time // zero: nobody has looked
}

func (d onDisk) seen() bool { return !d.looked.IsZero() }

// same reports that both are of one content, or that there is no file in either.
func (d onDisk) same(o onDisk) bool {
	return d.there == o.there && (!d.there || d.state.Same(o.state))
}

// holds reports that the file has the text of that hash, in whatever encoding.
func (d onDisk) holds(hash string) bool {
	return d.there && hash != "" && (d.state.Hash == hash || d.text == hash)
}

// fresh is how long after a file's last change its times may not tell a further change apart. Ours: kernels note times by
// their clock tick, up to 10 ms, and file systems of other machines are coarser.
const fresh = 2 * time.Second

// largestText is the largest file, in bytes, that can hold the text of a buffer: UTF-16 takes at most twice as much.
const largestText = 2*MaxBuffer + 2

// hold reports that an editor has text of the file at the real path, by whatever name of it, that is not on the disk.
func (b *Buffers) hold(real string) bool {
	f := b.at(real)
	if info, err := os.Lstat(real); f == nil && err == nil {
		s := StateOf(info)
		f = b.ofFile(inode{s.Device, s.Inode})
	}
	return f != nil && f.differs(look(f.Real, f))
}

// look returns how the file at a real path is now. What f, which may be nil, knows of it is not found out again.
func look(real string, f *buffer) onDisk {
	info, err := os.Lstat(real)
	if err != nil {
		return onDisk{looked: time.Now()}
	}
	disk := onDisk{there: true, state: StateOf(info), looked: time.Now()}
	if f != nil {
		for _, known := range []onDisk{f.base, f.told} {
			if known.there && known.state.Hash != "" && known.state.sameFacts(disk.state) && known.looked.Sub(known.state.Ctime) > fresh {
				return known
			}
		}
	}
	if !info.Mode().IsRegular() || info.Size() > largestText {
		return disk
	}
	file, err := os.OpenFile(real, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return disk
	}
	defer file.Close()
	data, opened, err := readWhole(&File{File: file, Path: Path{Named: real, Real: real}})
	if err != nil || !opened.Mode().IsRegular() {
		return disk
	}
	disk.state = StateOf(opened)
	disk.state.Hash, disk.text = Hash(data), textHash(data)
	return disk
}

// shownInfo are the facts of a file that is a buffer's text. It has neither owner nor inode: those are the disk's.
type shownInfo struct {
	name     string
	size     int64
	modified time.Time
}

func (f *buffer) info() fs.FileInfo {
	return shownInfo{name: filepath.Base(f.Real), size: int64(len(f.Text)), modified: f.Modified}
}

// Name returns the base name.
func (i shownInfo) Name() string { return i.name }

// Size returns the text's length in bytes.
func (i shownInfo) Size() int64 { return i.size }

// Mode is a regular file's.
func (i shownInfo) Mode() fs.FileMode { return 0o644 }

// ModTime returns Buffer.Modified.
func (i shownInfo) ModTime() time.Time { return i.modified }

// IsDir is false.
func (i shownInfo) IsDir() bool { return false }

// Sys returns nothing.
func (i shownInfo) Sys() any { return nil }
