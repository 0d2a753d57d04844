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
	data    []byte // of a regular file, or where a symbolic link leads
	stamp   stamp  // of what is not read
	entries map[string]state
}

type kind uint8

const (
	absent kind = iota
	regular
	link
	directory
	other // what is not read: a larger file, a device
)

// maxEntries is how many entries of a directory are recorded. Ours: git knows about 30 hooks, and has an example of half of them.
const maxEntries = 200

// stateOf returns what is at path, for a directory with the entries directly in it, apart from git's examples of hooks.
func stateOf(path string) state {
	s := single(path)
	if s.kind != directory {
		return s
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) > maxEntries {
		s.kind = other
		return s
	}
	s.stamp, s.entries = stamp{}, map[string]state{}
	for _, e := range entries {
		if isSample(e.Name()) {
			continue
		}
		s.entries[e.Name()] = single(filepath.Join(path, e.Name()))
	}
	return s
}

func single(path string) state {
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
		s.kind, s.data, s.stamp = link, []byte(target), stamp{}
	case info.Mode().IsRegular():
		if data, err := ReadSmall(path); err == nil {
			s.kind, s.data, s.stamp = regular, data, stamp{}
		}
	}
	return s
}

// same reports whether two states are equal, as far as they are known: what is not read counts as changed when its time of
// change has moved on.
func (s state) same(o state) bool {
	if s.kind != o.kind || s.stamp != o.stamp || s.mode != o.mode || !bytes.Equal(s.data, o.data) || len(s.entries) != len(o.entries) {
		return false
	}
	for name, entry := range s.entries {
		if entry.kind != directory && !entry.same(o.entries[name]) {
			return false
		}
	}
	return true
}

// irregular reports whether a directory holds something besides regular files.
func (s state) irregular() bool {
	for _, entry := range s.entries {
		if entry.kind != regular {
			return true
		}
	}
	return false
}

// file returns the content to be put back; nil if there is none.
func (s state) file() *File {
	if s.kind != regular {
		return nil
	}
	return &File{Data: s.data, Mode: s.mode.Perm()}
}

// textOf returns what a link says, so that a change of it is seen.
func textOf(path string) string {
	s := single(path)
	return string(rune('0'+s.kind)) + string(s.data)
}
