// The database's file: made, opened, put out of the way.

package journal

import (
	"cmp"
	"os"
	"path/filepath"
	"time"
)

// begin opens the database, marks it as open, synced, and from then on leaves
// the syncing to the syncer. A new database gets the epoch first, unless it is empty.
func begin(path, first string) (db *database, epoch string, err error) {
	if db, err = openDatabase(path); err != nil {
		return nil, "", err
	}
	if epoch, err = db.openEpoch(first); err == nil {
		err = db.run("pragma synchronous = normal")
	}
	if err != nil {
		_ = db.close() // err has the reason
		return nil, "", err
	}
	return db, epoch, nil
}

// makeFile sets the modes before SQLite opens the database: SQLite gives its other files the mode
// of the database.
func makeFile(dir string) (path string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := finishSalvage(dir); err != nil {
		return "", err
	}
	path = filepath.Join(dir, fileName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	return path, cmp.Or(f.Chmod(0o600), f.Close())
}

// SetAside renames the database in dir, so that the next Open starts a new
// one, and returns its new path. No store may have it open.
func SetAside(dir string) (string, error) {
	path, aside := asideOf(dir)
	err := ignoreMissing(os.Rename(path+"-wal", aside+"-wal"))
	if err == nil {
		err = ignoreMissing(os.Remove(filepath.Join(dir, suspectName)))
	}
	if err != nil {
		return "", err
	}
	return aside, os.Rename(path, aside)
}

// asideOf returns the path of the database in dir, and the one that it gets when it is put out of the way.
func asideOf(dir string) (path, aside string) {
	path = filepath.Join(dir, fileName)
	return path, path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000Z")
}
