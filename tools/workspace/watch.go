// Telling that files may have changed, soon and together. It does not know what is in them, nor who changed them.

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
	// watchedDirs is how many directories one Watch looks at: the kernel's own limit for a user is often 8192.
	watchedDirs = 512
	// watchQuiet is how long changes are gathered before they are told: a save is often several events.
	watchQuiet = 100 * time.Millisecond
)

// A Watch tells which of its files may have changed: some time after the event, each file once for all events of that
// time. It is safe for concurrent use. Whoever made it closes it.
type Watch struct {
	events *fsnotify.Watcher
	notify func(real []string)
	ended  sync.WaitGroup

	mu    sync.Mutex
	files map[string]bool // by real path
	dirs  map[string]bool
}

// NewWatch watches nothing yet. tell is called on the Watch's own goroutine, with real paths in their order.
func NewWatch(tell func(real []string)) (*Watch, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watch{events: events, notify: tell, files: map[string]bool{}, dirs: map[string]bool{}}
	w.ended.Go(w.run)
	return w, nil
}

// Add watches the file at a real path, whether it exists or not. False: its directory cannot be watched, since it is
// gone or too many are watched already.
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

// Close ends the Watch. Nothing is told after it has returned; it must not be called by tell.
func (w *Watch) Close() {
	_ = w.events.Close() // it says only that it was closed before
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

// touched notes what an event at name is about: a file, all files of a directory that has gone, or, if it is empty, any.
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
	delete(w.dirs, name) // it is watched again when a file in it is added again
}
