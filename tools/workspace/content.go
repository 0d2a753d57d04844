// A file as a whole in memory, and whether it is still what the session has read. It does not know what is to change.

package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/cespare/xxhash/v2"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/workspace/text"
)

// maxContent is the largest file, in bytes, that is changed as a whole in memory. Ours: far above any source file, and
// small enough that some edits at once leave a machine alive.
const maxContent = 64 << 20

// A Content is a file as it was at one moment, whole, and what the session knew of it.
type Content struct {
	Path  Path
	Data  []byte // must not be modified; nil when the file does not exist
	State State  // facts and hash of Data; Seen and Whole are empty
	Links int    // names that the file has
	read  State
	known bool
	// beside says why it cannot be changed, since an editor holds the file open; nil: none does, or not so.
	beside error
}

// Read returns the state in which the session knew the file before, if it did.
func (c *Content) Read() (State, bool) { return c.read, c.known }

// Current is nil when the file does not exist, or was read in this session and has not changed since. Otherwise it is a
// fault: not_read or stale_file, or the buffer_open that Change would give. The content decides: equal content is unchanged, whatever the times say.
func (c *Content) Current() error {
	switch {
	case !c.Path.Exists:
		return nil
	case c.beside != nil:
		return c.beside
	case !c.known:
		return fault.Invalidf("not_read", "%s exists and has not been read in this session. Read it first, then send this call again.", c.Path.Shown())
	case !c.read.Same(c.State):
		return fault.Invalidf("stale_file", "%s has changed since it was read: it had %s then and has %d now, and its content is another. Read it again before changing it.",
			c.Path.Shown(), text.Count(c.read.Size, "byte"), c.State.Size)
	}
	return nil
}

// OtherNames returns why a change of this content must be asked about, when the file has several hard links; else it is
// empty. Where the other names lie cannot be found out, so a link that somebody has planted in a root looks like any
// other: it can be read, and is changed only by a call that could ask first.
func (c *Content) OtherNames() string {
	if c.Links < 2 {
		return ""
	}
	return fmt.Sprintf("%s has %d hard links: the change also shows under its other names, which may lie anywhere.", c.Path.Shown(), c.Links)
}

// Missing returns the fault file_not_found for a content that Look found absent.
func (v *View) Missing(c *Content) error { return v.notFound(c.Path) }

// Look reads the file that name comes to, whole, as Change would. A file that does not exist is no error. It returns
// faults: file_too_large, and those of Open.
func (v *View) Look(name string) (*Content, error) {
	p, err := v.reach(name, v.grant.Reads, v.grant.Writes)
	if err != nil {
		return nil, err
	}
	if b, err := v.buffer(p); err != nil {
		return nil, err
	} else if b != nil {
		return v.contentOfBuffer(b, p), nil
	}
	if !p.Exists {
		return v.absent(p), nil
	}
	f, err := v.open(p, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := v.contentOf(f)
	if err == nil && c.Links > 1 {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.shown[c.inode()] = true
	}
	return c, err
}

// An inode is a file, whatever its names are.
type inode struct{ device, number uint64 }

func (c *Content) inode() inode { return inode{c.State.Device, c.State.Inode} }

// askable is a fault when the file has names that nobody could have been asked about, since they were not there, or not
// this file's, when Look gave it.
func (v *View) askable(c *Content) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.Links < 2 || v.shown[c.inode()] {
		return nil
	}
	return fault.Invalidf("stale_file", "%s has %d hard links, which it had not when the call was checked: a change would also show under names that may lie anywhere, and nobody was asked about that. Nothing was written; send the call again.",
		c.Path.Shown(), c.Links)
}

func (v *View) absent(p Path) *Content {
	c := &Content{Path: p}
	c.read, c.known = v.known(p.Real)
	return c
}

// contentOf reads f from its beginning.
func (v *View) contentOf(f *File) (*Content, error) {
	if f.Kernel {
		return nil, fault.Invalidf("not_regular", "%s is made up by the kernel while it is read; it cannot be replaced. Use Bash to write to it.", f.Path.Shown())
	}
	data, info, err := readWhole(f)
	if err != nil {
		return nil, err
	}
	c := v.absent(f.Path)
	c.Data, c.State, c.Links = data, StateOf(info), 1
	c.State.Hash = Hash(data)
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		c.Links = int(sys.Nlink)
	}
	c.beside = v.besideEditor(c)
	return c, nil
}

// readWhole returns the content and the facts from just before it was read.
func readWhole(f *File) ([]byte, os.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fault.Failedf("io_error", "%s cannot be read: %v.", f.Path.Shown(), cause(err))
	}
	tooLarge := fault.Invalidf("file_too_large", "%s is larger than %d MiB, the most that is changed at once. Use Bash (sed, for example) to change it.", f.Path.Shown(), maxContent>>20)
	if info.Size() > maxContent { // before anything is taken for it: a sparse file can claim any size
		return nil, nil, tooLarge
	}
	data := make([]byte, 0, info.Size()+1) // one more, so that the end is met without growing
	for {
		n, err := f.ReadAt(data[len(data):cap(data)], int64(len(data)))
		data = data[:len(data)+n]
		switch {
		case len(data) > maxContent:
			return nil, nil, tooLarge
		case errors.Is(err, io.EOF):
			return data, info, nil
		case err != nil:
			return nil, nil, fault.Failedf("io_error", "%s cannot be read: %v.", f.Path.Shown(), cause(err))
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// A Hasher computes the hash of a content that is read in pieces. It is XXH64: it tells contents apart at the speed of
// memory, and is no defence against somebody who may write the file anyway.
type Hasher struct{ sum xxhash.Digest }

// NewHasher returns a hasher of nothing yet.
func NewHasher() *Hasher {
	h := &Hasher{}
	h.sum.Reset()
	return h
}

// Add takes the next piece.
func (h *Hasher) Add(piece []byte) { _, _ = h.sum.Write(piece) } // a digest takes everything

// Sum returns the hash of what was added, as hexadecimal text.
func (h *Hasher) Sum() string { return hexadecimal(h.sum.Sum64()) }

// Hash returns the hash of a whole content, as Hasher does.
func Hash(data []byte) string { return hexadecimal(xxhash.Sum64(data)) }

func hexadecimal(sum uint64) string { return strconv.FormatUint(sum, 16) }
