// Package walk walks a directory tree as git and ripgrep would, with ignore files and repositories.
// It does not know what is searched for, nor which names a tool hides for reasons of its own:
// Choose decides that.
package walk

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/tools/fs/index"
)

// Options are what to walk and what to do with it.
type Options struct {
	// Dir is the root's real path. Ignore files of its parents count up to the top of its
	// repository. They are read whatever Choose returns for them: they only leave files out, and
	// their content is not shown.
	Dir string
	// Top is the highest parent whose ignore files count if Dir lies in no repository; none counts
	// if Dir is not below it.
	Top string
	// Bound is the real path of a directory above which no ignore files count; empty: no bound.
	Bound string
	// Environ is where git finds the user's configuration: HOME, XDG_CONFIG_HOME.
	Environ []string
	// Choose is called for every directory, and returns what decides about its entries before the
	// ignore files are applied. dir is its path below the root, with a slash at the end; empty: the
	// root. It must be safe for concurrent use. If nil, every entry is taken.
	Choose func(dir string) Chooser
	// Visit is called for every entry that is taken and is not a directory. It must be safe for
	// concurrent use.
	Visit func(*File)
	// Git selects git's behaviour: of the ignore files in the tree only .gitignore counts.
	Git bool
	// Index remembers the entries of directories, and spares reading those that have not changed
	// since. It may be nil.
	Index *index.Index
	// Beat is called once a second with the number of visited entries, from one goroutine. It may
	// be nil.
	Beat func(visited int64)
}

// A Chooser decides about the entries of one directory, by their name and type bits. It is called by
// one goroutine.
type Chooser func(name string, kind fs.FileMode) Choice

// ByPath returns a Choose for decisions about paths below the root, whichever directory they are in.
func ByPath(choose func(path string, kind fs.FileMode) Choice) func(dir string) Chooser {
	return func(dir string) Chooser {
		return func(name string, kind fs.FileMode) Choice { return choose(dir+name, kind) }
	}
}

// A Choice is the decision about an entry.
type Choice uint8

const (
	// Take takes the entry, unless ignore files leave it out.
	Take Choice = iota
	// Force takes the entry whatever ignore files have.
	Force
	// Leave leaves the entry out, uncounted.
	Leave
	// Deny leaves the entry out because a rule denies reading it, and counts it. The entry is never
	// opened.
	Deny
)

// A Tally is what a walk left out and what it could not read.
type Tally struct {
	// What ignore files left out. A directory counts as one: its content is unknown.
	IgnoredFiles, IgnoredDirs int64
	// Ignored are some of the directories left out, below the root, sorted.
	Ignored []string
	// What Choose denied. A directory counts as one.
	DeniedFiles, DeniedDirs int64
	// Faults are what could not be read: directories, and ignore files, whose rules then did not
	// count. There are at most maxFaults; Unread counts all.
	Faults []Fault
	Unread int64
}

// A Fault is something that could not be read.
type Fault struct {
	Path string // below the root; absolute for an ignore file above it
	Err  error
}

const (
	maxFaults  = 50   // kept for the result; more are of no use
	maxIgnored = 3    // named in a result
	chunk      = 64   // files in one task, so that workers share a large directory
	readAtOnce = 4096 // directory entries; limits the memory for a huge directory
)

// Files walks the tree below root. It never follows a link, and continues after errors. When ctx
// ends, it returns soon, with its tally so far and the context's cause.
func Files(ctx context.Context, root *os.Root, o Options) (Tally, error) {
	w := &walker{o: o, ended: ctx.Err}
	w.wake.L = &w.mu
	start := w.outset()
	dir, err := openRoot(root)
	if err != nil {
		w.fault(".", err)
		return w.tally, context.Cause(ctx)
	}
	w.push(task{dir: dir, level: start})
	dir.drop()
	stop := context.AfterFunc(ctx, w.close)
	defer stop()
	if o.Beat != nil {
		defer w.beat()()
	}
	w.run(runtime.GOMAXPROCS(0), w.do)
	return w.tally, context.Cause(ctx)
}

// Single visits the one file name in root, as Files would. Ignore files do not apply: the file was
// named.
func Single(root *os.Root, name string, visit func(*File)) error {
	d, err := openRoot(root)
	if err != nil {
		return err
	}
	defer d.drop()
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	visit(&File{Type: info.Mode().Type(), name: name, dir: d})
	return nil
}

// A walker is one walk.
type walker struct {
	tasks
	ended  func() error // the context's Err
	o      Options
	user   Rules  // of the user's own ignore file
	prefix string // the beginning of full paths

	visited atomic.Int64

	counts sync.Mutex
	tally  Tally
}

// beat starts the goroutine that calls Beat; the returned function ends it.
func (w *walker) beat() (stop func()) {
	var ended sync.WaitGroup
	done := make(chan struct{})
	ended.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				w.o.Beat(w.visited.Load())
			}
		}
	})
	return func() { close(done); ended.Wait() }
}

func (w *walker) do(t task) {
	defer t.dir.drop()
	switch {
	case t.files != nil:
		w.visit(t.files)
	case t.name == "":
		w.read(t.dir, t.level)
	default:
		d := t.dir.child(t.name)
		defer d.drop()
		w.read(d, t.level)
	}
}

func (w *walker) visit(files []File) {
	for i := range files {
		if w.ended() != nil || w.stopped() {
			return
		}
		w.o.Visit(&files[i])
	}
	w.visited.Add(int64(len(files)))
}

// read reads one directory: files are visited, and directories pushed on the stack. l is its
// parent's level. A directory whose entries are remembered is opened only if they are needed.
func (w *walker) read(d *openDir, l *level) {
	known := d.remembered(w.o.Index)
	if known != nil && l != nil && !slices.ContainsFunc(special[:], known.Has) {
		w.sort(d, l, known.Entries)
		return
	}
	if err := d.open(); err != nil {
		w.fault(d.path(), err)
		return
	}
	abs := strings.TrimSuffix(w.o.Dir+"/"+d.below, "/")
	if known != nil {
		w.sort(d, w.level(l, d.fd, abs, len(w.prefix)+len(d.below), known.Has), known.Entries)
		return
	}
	reading := d.reading(w.o.Index)
	l = w.level(l, d.fd, abs, len(w.prefix)+len(d.below), anyName)
	for w.ended() == nil && !w.stopped() {
		entries, err := d.entries(readAtOnce)
		reading.Add(entries)
		w.sort(d, l, entries)
		if errors.Is(err, io.EOF) {
			reading.Keep()
			return
		}
		if err != nil {
			w.fault(d.path(), err)
			return
		}
	}
}

// anyName stands for the entries of a directory that are not known.
func anyName(string) bool { return true }

// sort decides about the entries of one directory. Directories and all but a few files become tasks
// for any free worker.
func (w *walker) sort(d *openDir, l *level, entries []index.Entry) {
	buffer := fileBuffers.Get().(*[]File)
	files := (*buffer)[:0]
	defer func() {
		clear(files) // it must not keep directories in memory
		*buffer = files
		fileBuffers.Put(buffer)
	}()
	var dirs []task
	var left Tally
	choose := w.chooser(d.below, l)
	for _, e := range entries {
		switch choice := choose(e.Name, e.Type); {
		case choice != Take:
			left.leave(choice, d.below, e)
		case e.Type.IsDir():
			dirs = append(dirs, task{dir: d, name: e.Name, level: l})
		default:
			files = append(files, File{Type: e.Type, name: e.Name, dir: d})
		}
	}
	w.add(left)
	if len(files)+len(dirs) == 0 {
		return
	}
	if err := d.open(); err != nil {
		w.fault(d.path(), err)
		return
	}
	rest := files
	for ; len(rest) > chunk; rest = rest[chunk:] {
		dirs = append(dirs, task{dir: d, files: slices.Clone(rest[:chunk])})
	}
	w.push(dirs...)
	w.visit(rest)
}

// fileBuffers hold the files of one directory, and are reused from directory to directory.
var fileBuffers = sync.Pool{New: func() any { return new([]File) }}

// add counts what was left out in one directory.
func (w *walker) add(left Tally) {
	if left.empty() {
		return
	}
	w.counts.Lock()
	defer w.counts.Unlock()
	w.tally.Add(left)
}

// ignoredChoice is an additional result of a chooser: an ignore file leaves the entry out.
const ignoredChoice Choice = 255

// chooser returns what decides about the entries of a directory, with the ignore files that apply to
// it: l.
func (w *walker) chooser(below string, l *level) Chooser {
	first := 0
	if w.o.Git {
		first = gitSource
	}
	choose := func(string, fs.FileMode) Choice { return Take }
	if w.o.Choose != nil {
		choose = w.o.Choose(below)
	}
	full := w.prefix + below
	return func(name string, kind fs.FileMode) Choice {
		switch choice := choose(name, kind); {
		case choice == Force:
			return Take
		case choice == Take && !l.silent && l.ignored(full+name, kind.IsDir(), first):
			return ignoredChoice
		default:
			return choice
		}
	}
}

// leave counts an entry that was not taken.
func (t *Tally) leave(choice Choice, below string, e index.Entry) {
	isDir := e.Type.IsDir()
	switch {
	case choice == Deny && isDir:
		t.DeniedDirs++
	case choice == Deny:
		t.DeniedFiles++
	case choice == ignoredChoice && isDir:
		t.IgnoredDirs++
		t.name(below + e.Name)
	case choice == ignoredChoice:
		t.IgnoredFiles++
	}
}

// name keeps the first few directories by name, in whatever order they come.
func (t *Tally) name(path string) {
	at, _ := slices.BinarySearch(t.Ignored, path)
	t.Ignored = slices.Insert(t.Ignored, at, path)
	t.Ignored = t.Ignored[:min(maxIgnored, len(t.Ignored))]
}

// empty reports whether nothing was left out.
func (t *Tally) empty() bool {
	return t.IgnoredFiles == 0 && t.IgnoredDirs == 0 && t.DeniedFiles == 0 && t.DeniedDirs == 0
}

// Add adds what another tally of the same tree has left out.
func (t *Tally) Add(left Tally) {
	t.IgnoredFiles += left.IgnoredFiles
	t.IgnoredDirs += left.IgnoredDirs
	t.DeniedFiles += left.DeniedFiles
	t.DeniedDirs += left.DeniedDirs
	for _, path := range left.Ignored {
		t.name(path)
	}
}

// fault records what could not be read. If path is empty, the error's own is used. A file that has
// vanished meanwhile does not count.
func (w *walker) fault(path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
		if path == "" {
			path = at.Path
		}
	}
	w.counts.Lock()
	defer w.counts.Unlock()
	if w.tally.Unread++; len(w.tally.Faults) < maxFaults {
		w.tally.Faults = append(w.tally.Faults, Fault{Path: path, Err: err})
	}
}
