package repo

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
)

// A state is what stood at a path.
type state struct {
	kind    kind
	mode    fs.FileMode
	data    []byte // of a regular file, or the target of a symbolic link
	stamp   stamp
	entries map[string]state
}

type kind uint8

const (
	absent kind = iota
	regular
	link
	directory
	other // not read: a larger file, a device
)

// maxEntries is how many entries of a directory are read, and budget how many bytes are recorded
// for a call; of the rest only the time of change is recorded. The numbers are our own: git has
// about 30 hooks, and a configuration is some kilobytes.
const (
	maxEntries = 200
	budget     = 16 << 20
)

// A recorder reads states.
type recorder struct{ left int } // bytes

// stateOf returns what is at path; for a directory, with its direct entries, except for git's
// examples of hooks.
func (r *recorder) stateOf(path string) state {
	s := r.single(path)
	if s.kind != directory {
		return s
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		s.kind = other
		return s
	}
	s.entries = map[string]state{}
	for _, e := range entries {
		if isSample(e.Name()) {
			continue
		}
		if len(s.entries) == maxEntries {
			r = &recorder{} // which reads no more
		}
		s.entries[e.Name()] = r.single(filepath.Join(path, e.Name()))
	}
	return s
}

func (r *recorder) single(path string) state {
	info, err := os.Lstat(path)
	if err != nil {
		return state{}
	}
	s := state{kind: other, mode: info.Mode(), stamp: stampOf(info)}
	switch {
	case info.IsDir():
		s.kind = directory
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		s.kind, s.data = link, []byte(target)
	case info.Mode().IsRegular() && info.Size() <= int64(r.left):
		if data, err := ReadSmall(path); err == nil {
			s.kind, s.data = regular, data
			r.left -= len(data)
		}
	}
	return s
}

// same reports whether two states are equal, as far as they were read: a file that was not read
// counts as changed if its time of change has.
func (s state) same(o state) bool {
	if s.kind == other || o.kind == other {
		return s.stamp == o.stamp
	}
	if s.kind != o.kind || s.mode != o.mode || !bytes.Equal(s.data, o.data) || len(s.entries) != len(o.entries) {
		return false
	}
	for name, entry := range s.entries {
		if entry.kind != directory && !entry.same(o.entries[name]) {
			return false
		}
	}
	return true
}

// file returns the content to restore; nil if there is none.
func (s state) file() *File {
	if s.kind != regular {
		return nil
	}
	return &File{Data: s.data, Mode: s.mode.Perm()}
}

// textOf returns the content of a link, so that a change of it is detected.
func textOf(path string) string {
	s := (&recorder{left: largest}).single(path)
	return string(rune('0'+s.kind)) + string(s.data)
}
