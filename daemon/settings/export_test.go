package settings

import (
	"os"
	"time"
)

// OpenAt is Open for a store to which it is always the same time.
func OpenAt(sources Sources, now time.Time) *Store {
	return open(sources, func() time.Time { return now })
}

// WithRule is what Remember writes, without the files.
var WithRule = withRule

// Replace puts data in place of what a file holds, as Remember does, and calls between behind reading it.
func Replace(file, data string, between func()) error {
	at, err := openLocation("", file)
	if err != nil {
		return err
	}
	defer at.close()
	old, err := at.read()
	if err != nil {
		return err
	}
	between()
	return at.write(old, []byte(data), os.FileMode(0o600))
}

// Keys are the names of all keys.
func Keys() (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// AllNoticed reports whether, since the latest Load for a scope, the kernel notes when something comes where nothing was.
func (s *Store) AllNoticed(scope Scope) bool { return s.scoped(scope).generation != 0 }

// Generation returns another number if something may have come since.
func (s *Store) Generation() uint64 { return s.absence.generation() }
