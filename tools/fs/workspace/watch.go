// Notification of files that may have changed, gathered over a short time.

package workspace

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// watchedDirs is how many directories one Watch watches: the kernel's limit for a user is often
	// 8192.
	watchedDirs = 512
	// watchQuiet is how long changes are gathered before they are reported: a save is often several
	// events.
	watchQuiet = 100 * time.Millisecond
)

// A Watch reports which of its files may have changed: some time after the event, and each file
// once for all events of that time. It is safe for concurrent use. Its creator closes it.
type Watch struct {
	events *fsnotify.Watcher
	notify func(real []string)
	ended  sync.WaitGroup

	mu    sync.Mutex
	files map[string]bool // by real path
	dirs  map[string]bool
}

// NewWatch returns a Watch of no files. It calls tell on its own goroutine, with sorted real paths.
func NewWatch(tell func(real []string)) (*Watch, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watch{events: events, notify: tell, files: map[string]bool{}, dirs: map[string]bool{}}
	w.ended.Go(w.run)
	return w, nil
}

// Add watches the file at a real path, whether it exists or not. It returns false if its directory
// is gone, or if too many directories are watched already.
func (w *Watch) Add(real string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := filepath.Dir(real)
	if !w.dirs[dir] {
		if len(w.dirs) >= watchedDirs || w.events.Add(dir) != nil {
			return false
		}
		w.dirs[dir] = true
	}
	w.files[real] = true
	return true
}

// Close ends the Watch. tell is not called after it has returned. tell must not call Close.
func (w *Watch) Close() {
	_ = w.events.Close() // its only error is that it was closed before
	w.ended.Wait()
}

func (w *Watch) run() {
	changed := map[string]bool{}
	var due <-chan time.Time
	for {
		select {
		case event, open := <-w.events.Events:
			if !open {
				return
			}
			w.touched(event.Name, changed)
		case _, open := <-w.events.Errors: // some events were lost
			if !open {
				return
			}
			w.touched("", changed)
		case <-due:
			due = nil
			w.notify(slices.Sorted(maps.Keys(changed)))
			clear(changed)
		}
		if due == nil && len(changed) > 0 {
			due = time.After(watchQuiet)
		}
	}
}

// touched adds the files of an event at name: one file, all files of a directory that has gone, or
// all files if name is empty.
func (w *Watch) touched(name string, changed map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files[name] {
		changed[name] = true
		return
	}
	if name != "" && !w.dirs[name] {
		return
	}
	for file := range w.files {
		if name == "" || filepath.Dir(file) == name {
			changed[file] = true
		}
	}
	delete(w.dirs, name) // adding a file in it watches it again
}
