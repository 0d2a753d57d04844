// The reserve: a file that holds room on the disk until the ends of what has begun need it.

package journal

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// reserveMargin is what must be free beside the reserve before it is taken
// again, in bytes: without it the next append would meet a full disk.
const reserveMargin = 1 << 20

// reserve is guarded by the mutex of its database, but held may be read without. Without a size there is
// none, and nothing is refused for want of it.
type reserve struct {
	path string
	size int64
	held atomic.Bool
}

// ensure reports whether the room is kept, and tries to take it if it is not.
func (r *reserve) ensure() bool {
	if r.held.Load() || r.size == 0 {
		return true
	}
	if free, err := freeRoom(r.path); err == nil && free < r.size+reserveMargin {
		return false // to try would take what little there is from others for a moment
	}
	r.held.Store(r.take() == nil)
	return r.held.Load()
}

// take makes the file and allocates real blocks for it.
func (r *reserve) take() error {
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := allocate(f, r.size); err != nil {
		_ = f.Truncate(0) // a part of it may have been given
		return err
	}
	return nil
}

// find takes over the room that an earlier store has left, or takes it again.
func (r *reserve) find() {
	var stat unix.Stat_t
	if err := unix.Stat(r.path, &stat); err == nil && stat.Blocks*512 >= r.size {
		r.held.Store(true)
		return
	}
	r.ensure()
}

// release frees the room, and reports whether there was any.
func (r *reserve) release() bool {
	if !r.held.Swap(false) {
		return false
	}
	return os.Truncate(r.path, 0) == nil
}
