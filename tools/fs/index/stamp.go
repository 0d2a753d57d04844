// Stamps, by which a file is known to be the one that was read.

package index

import (
	"time"

	"golang.org/x/sys/unix"
)

// An identity is what the kernel knows a file by.
type identity struct{ device, inode uint64 }

// A Stamp is what the kernel says of a file at one moment. Stamps of the same content compare equal.
// Different content has the same stamp only if a change came within settle of the last one, or
// through a mapping for writing that existed before; nothing is remembered of such files.
type Stamp struct {
	identity
	size, modified, changed int64 // bytes; nanoseconds
}

// StampOf returns the stamp in what stat has returned.
func StampOf(s *unix.Stat_t) Stamp {
	return Stamp{identity{uint64(s.Dev), s.Ino}, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}
}

// ModTime returns when the content was changed.
func (s Stamp) ModTime() time.Time { return time.Unix(0, s.modified) }

// settle is longer than the kernel's clock for files stands still, 10 ms, and longer than a write of
// one call takes, whose content comes after its time. Ours.
const settle = 500 * time.Millisecond

// settled reports whether whatever changes the file after now gives it another stamp.
func (s Stamp) settled(now time.Time, settle time.Duration) bool {
	return s.changed < now.Add(-settle).UnixNano()
}

// stampAt returns the stamp of an open file.
func stampAt(fd int) (Stamp, error) {
	var s unix.Stat_t
	err := unix.Fstat(fd, &s)
	return StampOf(&s), err
}
