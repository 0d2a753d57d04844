package sandbox

import (
	"os"
	"path/filepath"
)

// SetAside renames what stands at a protected path, within its directory, and writes a regular file
// with the content before in its place unless before is nil. It returns the denial that reports it.
// Unlike on Linux it follows symbolic links in directories, and does the two steps one after the
// other.
func SetAside(path string, before *Content) (Denial, error) {
	aside := filepath.Join(filepath.Dir(path), asideName(path))
	if err := os.Rename(path, aside); err != nil {
		return Denial{}, err
	}
	if before != nil {
		if err := os.WriteFile(path, before.Data, before.Mode.Perm()); err != nil {
			return Denial{}, err
		}
	}
	return Denial{Operation: Writing, Target: path, Count: 1, MovedTo: aside, PutBack: before != nil}, nil
}
