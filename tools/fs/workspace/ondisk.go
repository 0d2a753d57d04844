// The file of a buffer on the disk.

package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// onDisk is a file at one moment, as far as it is compared with a buffer.
type onDisk struct {
	there  bool
	state  State     // with the hash of its content, unless it is too large
	text   string    // hash of its content as text; empty: it is not text
	looked time.Time // zero: never
}

func (d onDisk) seen() bool { return !d.looked.IsZero() }

// same reports whether both are of the same content, or both files are missing.
func (d onDisk) same(o onDisk) bool {
	return d.there == o.there && (!d.there || d.state.Same(o.state))
}

// holds reports whether the file has the text with that hash, in any encoding.
func (d onDisk) holds(hash string) bool {
	return d.there && hash != "" && (d.state.Hash == hash || d.text == hash)
}

// fresh is how long after a file's last change another change may leave its times equal. Kernels
// record times by their clock tick, up to 10 ms, and network file systems are coarser.
const fresh = 2 * time.Second

// largestText is the largest file, in bytes, that can hold the text of a buffer: UTF-16 needs at
// most twice as much.
const largestText = 2*MaxBuffer + 2

// hold reports whether an editor has unsaved text of the file at the real path, under any of its
// names.
func (b *Buffers) hold(real string) bool {
	f := b.at(real)
	if info, err := os.Lstat(real); f == nil && err == nil {
		f = b.ofFile(StateOf(info).inode())
	}
	return f != nil && f.differs(look(f.Real, f))
}

// look returns the present state of the file at a real path. It reuses what f, which may be nil,
// has recorded.
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

// shownInfo is the metadata of a file whose content is a buffer's text. It has neither owner nor
// inode: those belong to the file on the disk.
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

// Mode returns the mode of a regular file.
func (i shownInfo) Mode() fs.FileMode { return 0o644 }

// ModTime returns Buffer.Modified.
func (i shownInfo) ModTime() time.Time { return i.modified }

// IsDir returns false.
func (i shownInfo) IsDir() bool { return false }

// Sys returns nil.
func (i shownInfo) Sys() any { return nil }
