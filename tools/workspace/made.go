// What a call has made: files that were not there before it. It does not know who made them.

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

// A Beginning is what the places that a call may change were just before it began.
type Beginning struct {
	absent []string       // real paths of the grant's Changes at which nothing stood
	there  map[inode]bool // what stood at the others
	since  time.Time      // when it was looked at
}

// Bounds of what is noted of one call. Ours: each file is a row of the journal, and a call that makes more of them has copied
// or unpacked something.
const (
	maxMade   = 256
	maxPassed = 4096    // entries of new directories that are looked at
	maxHashed = 8 << 20 // bytes of content that are hashed; files beyond that are known by their facts
)

// clockTick is how far the times of files may lag behind the clock. Ours: kernels note times by their tick, at most 10 ms.
const clockTick = 10 * time.Millisecond

// Begin looks at the places that the call may change.
func (v *View) Begin() Beginning {
	b := Beginning{there: map[inode]bool{}, since: time.Now().Add(-clockTick)}
	for _, change := range v.grant.Changes {
		switch info, err := os.Lstat(change.Real); {
		case err == nil:
			b.there[inodeOf(info)] = true
		case os.IsNotExist(err):
			b.absent = append(b.absent, change.Real)
		}
	}
	return b
}

// Made records that the call knows the regular files which it has made, whole: those at a place where nothing stood when it
// began, or below a directory at such a place, and at the created real paths, at which nothing stood before it made something
// there. They have come into being since it began. It returns their real paths. Where the
// file system does not tell when a file came into being, what is there may have been moved there, and nothing is recorded.
// It notes at most maxMade files, and none that is barred or has several names.
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

// moved reports whether an entry stood elsewhere when the call began.
func (b Beginning) moved(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err != nil || b.there[inodeOf(info)]
}

func inodeOf(info fs.FileInfo) inode {
	s := StateOf(info)
	return inode{s.Device, s.Inode}
}

// note records the state of a file that was made since b. left is how many bytes may still be hashed.
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
	if !ok || facts.Nlink != 1 || b.there[inodeOf(f.Info)] || idOf(f.File).Born < b.since.UnixNano() {
		return false
	}
	if *left -= f.Info.Size(); *left < 0 {
		s := StateOf(f.Info)
		s.Whole = true
		v.Record(real, s)
		return true
	}
	c, err := v.contentOf(f)
	if err == nil {
		v.Record(real, c.after(Update{Data: c.Data, Whole: true}, f.Info))
	}
	return err == nil
}
