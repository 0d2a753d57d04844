// An open file, which a view keeps from one opening in a call to the next, with its content if it is small.

package workspace

import (
	"io"
	"io/fs"
	"os"
	"time"
)

// A File is an open regular file. The caller closes it.
type File struct {
	*os.File
	Path Path
	Info fs.FileInfo // from when the file was opened
	// Kernel is set if the content is generated when it is read (procfs, sysfs). Its size is then
	// meaningless, and it may have no end.
	Kernel bool
	view   *View // which keeps it when it is closed; nil: none does
	// read is what Keep was called with.
	read []byte
}

// Keep keeps the content, which was read to its end, for the next Open of the view. content must not
// be modified any more.
func (f *File) Keep(content []byte) {
	if time.Since(StateOf(f.Info).Ctime) > fresh { // else a change may leave the times as they are
		f.read = content
	}
}

// Kept returns the content that was kept when the call opened the file before, if the file has not
// changed since; nil: it has to be read.
func (f *File) Kept() []byte { return f.read }

// Close closes the file. The view that has opened it may keep the descriptor until Release, for the
// next Open.
func (f *File) Close() error {
	if v := f.view; v != nil && f.File != nil && !f.Kernel {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.kept == nil {
			kept := *f
			v.kept, f.File = &kept, nil
			return nil
		}
	}
	return f.File.Close()
}

// Release closes the file that the view keeps. It is called when the call ends, and before it waits
// for long. v may be nil.
func (v *View) Release() {
	if v == nil {
		return
	}
	v.mu.Lock()
	f := v.kept
	v.kept = nil
	v.mu.Unlock()
	if f != nil {
		_ = f.File.Close() // it was only read
	}
}

// again returns the file that the view keeps, as if it was opened just now; nil: it keeps none for
// p, or another file is there by now.
func (v *View) again(p Path) *File {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.kept
	if f == nil || f.Path.Real != p.Real {
		return nil
	}
	v.kept = nil
	info, err := os.Lstat(p.Real)
	if err == nil && os.SameFile(info, f.Info) {
		if f.read == nil || !StateOf(info).sameFacts(StateOf(f.Info)) {
			f.read = nil
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			f.Path, f.Info = p, info
			return f
		}
	}
	_ = f.File.Close() // it was only read
	return nil
}
