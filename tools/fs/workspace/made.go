// Files that a call has created.

package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// A Beginning is the state of the places that a call may change, just before the call.
type Beginning struct {
	absent []string       // real paths of the grant's Changes that did not exist
	there  map[inode]bool // the files that existed at the others
	since  time.Time      // when the state was taken
}

// Limits of one call. The numbers are our own: each file is a row of the journal, and a call that
// makes more files has copied or unpacked something.
const (
	maxMade   = 256
	maxPassed = 4096    // entries of new directories that are examined
	maxHashed = 8 << 20 // bytes of content that are hashed; further files are known by their metadata
)

// clockTick is how far the times of files may lag behind the clock. Kernels record times by their
// tick, at most 10 ms.
const clockTick = 10 * time.Millisecond

// Begin returns the present state of the places that the call may change.
func (v *View) Begin() Beginning {
	b := Beginning{there: map[inode]bool{}, since: time.Now().Add(-clockTick)}
	for _, change := range v.grant.Changes {
		switch info, err := os.Lstat(change.Real); {
		case err == nil:
			b.there[StateOf(info).inode()] = true
		case os.IsNotExist(err):
			b.absent = append(b.absent, change.Real)
		}
	}
	return b
}

// Made records that the call has seen the whole of each regular file that it has made, and returns
// their real paths. A file was made by the call if its place, or a directory above it, did not
// exist at the beginning, or if it is below one of the created real paths. Its time of birth must
// be after the beginning. Where the file system has no time of birth, the file may have been moved
// there, and nothing is recorded. Made records at most maxMade files, and none that a rule denies
// reading or that has several names.
func (v *View) Made(ctx context.Context, b Beginning, created []string) (made []string) {
	passed, left := 0, int64(maxHashed)
	for _, real := range slices.Concat(b.absent, created) {
		_ = filepath.WalkDir(real, func(path string, entry fs.DirEntry, err error) error {
			switch passed++; {
			case ctx.Err() != nil || len(made) >= maxMade || passed > maxPassed:
				return fs.SkipAll
			case err == nil && entry.IsDir() && b.moved(entry):
				return fs.SkipDir
			case err != nil || !entry.Type().IsRegular() || slices.Contains(made, path):
			case v.note(path, b, &left):
				made = append(made, path)
			}
			return nil
		})
	}
	return made
}

// moved reports whether an entry was at another place when the call began.
func (b Beginning) moved(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err != nil || b.there[StateOf(info).inode()]
}

// note records the state of a file that was made since b. left is how many bytes may still be
// hashed.
func (v *View) note(real string, b Beginning, left *int64) bool {
	p := Path{Named: real, Real: real, Seen: real, Exists: true}
	if v.ws.Place(real) == Hidden || p.whyReadDenied(v.grant.ReadDenied) != "" {
		return false
	}
	f, err := v.open(p, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	facts, ok := f.Info.Sys().(*syscall.Stat_t)
	if !ok || facts.Nlink != 1 || b.there[StateOf(f.Info).inode()] || idOf(f.File).Born < b.since.UnixNano() {
		return false
	}
	s := StateOf(f.Info)
	s.Whole = true
	if *left -= f.Info.Size(); *left >= 0 {
		c, err := v.contentOf(f)
		if err != nil {
			return false
		}
		s = c.after(Update{Data: c.Data, Whole: true}, f.Info)
	}
	v.Record(real, s)
	return true
}
