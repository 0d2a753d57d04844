// The names in git's index, as gitformat-index(5) describes it.

package repo

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// largestIndex is how much of an index is read, in bytes. The number is our own: a million files.
const largestIndex = 128 << 20

// Tracked returns the names in the index of the repository, relative to its working tree, with
// slashes. It returns nil if the index does not exist or cannot be read: it is not trusted.
func (r Repository) Tracked() map[string]bool {
	f, err := os.OpenFile(filepath.Join(r.Dir, "index"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestIndex {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, largestIndex))
	if err != nil {
		return nil
	}
	return IndexNames(data)
}

// The layout of an index: sizes in bytes, with SHA-1.
const (
	indexHeader = 12
	entryHeader = 62     // up to the name, without extended flags
	entryFlags  = 60     // where its flags are
	isExtended  = 0x4000 // two more bytes of flags follow
)

// IndexNames returns the names in an index, up to what is not in the form of versions 2 to 4.
func IndexNames(data []byte) map[string]bool {
	if len(data) < indexHeader || !bytes.HasPrefix(data, []byte("DIRC")) {
		return nil
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil
	}
	names, last := map[string]bool{}, ""
	for data = data[indexHeader:]; count > 0 && len(data) > entryHeader; count-- {
		start := entryHeader
		if binary.BigEndian.Uint16(data[entryFlags:])&isExtended != 0 {
			start += 2
		}
		kept, more := 0, 0
		if version == 4 {
			if more, kept = prefixLength(data[min(start, len(data)):], len(last)); more == 0 {
				return names
			}
		}
		rest := data[min(start+more, len(data)):]
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return names
		}
		last = last[:kept] + string(rest[:end])
		names[last] = true
		size := start + more + end + 1
		if version < 4 {
			size = (start + end + 8) &^ 7 // one to eight bytes of zero
		}
		data = data[min(size, len(data)):]
	}
	return names
}

// prefixLength decodes how much of the last name, of length bytes, the next one keeps. read is how
// many bytes that took; 0: it is not valid.
func prefixLength(data []byte, length int) (read, kept int) {
	cut := 0
	for i, b := range data[:min(len(data), 5)] {
		if i > 0 {
			cut++
		}
		cut = cut<<7 | int(b&0x7f)
		if b&0x80 == 0 {
			if cut > length {
				return 0, 0
			}
			return i + 1, length - cut
		}
	}
	return 0, 0
}
