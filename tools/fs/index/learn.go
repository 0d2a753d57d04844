// Reading of files in the background, after a search that had to read them itself.

package index

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Largest is the largest file whose trigrams are remembered, in bytes.
const Largest = 8 << 20

// mostPaths is how many files one search may name for reading.
const mostPaths = 100_000

// Unknown are the files that a search has met and of which nothing is remembered. It is not safe
// for concurrent use.
type Unknown struct{ paths []string }

// Add adds a file, by its path below the root of the search.
func (u *Unknown) Add(path string, s Stamp) {
	if s.size <= Largest && len(u.paths) < mostPaths {
		u.paths = append(u.paths, path)
	}
}

// pauses is how many times Settle lie between a build that could remember nothing and the next one at
// least, so that such files cost little.
const pauses = 10

// Learn has the files below root read in the background, by one thread of low priority, if none is
// reading already. root can be closed at once. It may leave out any of the files: the next search
// that meets them names them again.
func (x *Index) Learn(root *os.Root, files *Unknown) {
	if x == nil || len(files.paths) == 0 || x.set.full() || time.Now().UnixNano()-x.rested.Load() < int64(pauses*x.set.Settle) {
		return
	}
	if !x.building.CompareAndSwap(false, true) {
		return
	}
	x.set.mu.Lock()
	defer x.set.mu.Unlock()
	own, err := root.OpenRoot(".")
	if err != nil || x.set.closed {
		x.building.Store(false)
		return
	}
	x.set.builders.Go(func() {
		defer own.Close()
		defer x.building.Store(false)
		if x.learn(x.set.ctx, own, files.paths) == 0 {
			x.rested.Store(time.Now().UnixNano())
		}
	})
}

// learn reads the files and returns how many of them are remembered. What the search has met is
// settled once it begins.
func (x *Index) learn(ctx context.Context, root *os.Root, paths []string) (kept int) {
	runtime.LockOSThread() // for good: the thread ends with its priority
	lowPriority()
	select {
	case <-ctx.Done():
		return 0
	case <-time.After(x.set.Settle * 11 / 10):
	}
	began := time.Now()
	mapped, err := mappedForWriting()
	if err != nil {
		return 0
	}
	b := builder{index: x, root: root, began: began, mapped: mapped}
	for _, path := range paths {
		if ctx.Err() != nil || x.set.full() {
			break
		}
		if b.file(path) {
			kept++
		}
	}
	return kept
}

// A builder reads files one after another. What changes a file after began gives it a stamp that is
// not settled: a write does, and so does the first write to each page of a mapping. Those that were
// mapped before are left out.
type builder struct {
	index  *Index
	root   *os.Root
	began  time.Time
	mapped map[uint64]bool // by inode
	counter
	text []byte
}

// file reads one file, whatever it is by now: what is remembered belongs to what was opened. It
// reports whether the file is remembered.
func (b *builder) file(path string) bool {
	f, err := b.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	fd := int(f.Fd())
	before, err := stampAt(fd)
	if err != nil || !before.settled(b.began, b.index.set.Settle) || before.size > Largest || b.mapped[before.inode] || !stampsTell(fd) {
		return false
	}
	if int64(cap(b.text)) <= before.size {
		b.text = make([]byte, before.size+before.size/4+1)
	}
	n, err := io.ReadFull(f, b.text[:before.size+1])
	if ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); !ended || int64(n) != before.size {
		return false
	}
	if after, err := stampAt(fd); err != nil || after != before {
		return false
	}
	made := b.counter.text(b.text[:n])
	return b.index.keep(&record{stamp: before, text: made, bytes: int64(8 * len(made.filter))})
}
