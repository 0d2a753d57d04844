// A View is the part of the workspace that one call sees: names are checked against its grant, and
// files are opened and checked.

package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
)

// A Grant is what one call may reach. A path that may be written may also be read.
type Grant struct {
	Call          string // identifies the call for an editor that changes a buffer; it has no other effect
	Dir           string // the working directory, absolute
	Reads, Writes []Grantee
	// Changes are the real paths that the call may change: those in Writes, the links on the way to
	// them, and what it may write without declaring it. They open nothing; TakeSnapshots records
	// them.
	Changes []Change
	// ReadDenied returns why a rule forbids reading the entry at a real path, or a directory above
	// it: a sentence with the rule, its file and line. It returns "" if no rule does. It overrides
	// Reads and Writes. It is called from several goroutines at once. If nil, no rule denies
	// reading.
	ReadDenied func(real string) string
}

// A Grantee is a real path that was judged and permitted.
type Grantee struct {
	Real string
	Tree bool // includes everything below it
	// Name, unless it is empty, is the name that led to Path when it was judged. Open, OpenDir, Look
	// and Tree take Path for it: what they open is what was judged, wherever the name leads by then.
	Name string
	Path Path
}

func holds(list []Grantee, real string) bool {
	return slices.ContainsFunc(list, func(g Grantee) bool { return g.Real == real || g.Tree && pathname.Within(g.Real, real) })
}

// A View is what one call sees of the workspace: the paths of its Grant, and the session's read
// state together with what the call itself has read. It is safe for concurrent use.
type View struct {
	ws    *Workspace
	grant Grant
	state *ReadState
	// buffers are the files that editors hold open for the session; nil: none.
	buffers *Buffers

	mu    sync.Mutex
	kept  *File // the file that Open has opened and that was closed since; nil: none
	read  map[string]State
	shown map[inode]bool // files with several names that Look has returned
}

// View returns the workspace as one call sees it. m is the session's read state; the view never
// changes it. Open, Look and Change use the buffers of m.
func (w *Workspace) View(g Grant, m *ReadState) *View {
	return &View{ws: w, grant: g, state: m, buffers: m.Buffers()}
}

// Changes returns the grant's Changes. The slice must not be modified.
func (v *View) Changes() []Change { return v.grant.Changes }

// Absolute returns a fault invalid_input for a relative name; the message has the absolute one.
func (v *View) Absolute(name string) error {
	name, err := decodeName(name)
	if err != nil || filepath.IsAbs(name) {
		return err
	}
	return fault.Invalidf("invalid_input", "The path must be absolute; in the working directory %q would be %s.", name, shown(filepath.Join(v.grant.Dir, name)))
}

// Blame returns err with field, a JSON pointer, set on a fault that has no field yet.
func Blame(err error, field string) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Field == "" {
		return f.At(field)
	}
	return err
}

// Roots returns the real paths of the workspace's roots.
func (v *View) Roots() []string { return v.ws.Roots() }

// MayWorkIn reports whether the directory at path lies in a root or in one of the session's
// directories for temporary files. path is a name that calls use, without links.
func (v *View) MayWorkIn(path string) bool {
	place := v.ws.Place(v.ws.Disk(path))
	return place == InRoot || place == Scratch
}

// Disk does what Workspace.Disk does.
func (v *View) Disk(path string) string { return v.ws.Disk(path) }

// Leads returns where name leads, under the name that calls use, without opening anything. If that
// cannot be found out, it returns name itself.
func (v *View) Leads(name string) string {
	p, err := v.ws.Resolve(v.grant.Dir, name)
	if err != nil {
		return name
	}
	return p.at()
}

// ReadState returns the read states that the call has added, by real path, for ReadState.Merge.
func (v *View) ReadState() map[string]State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.read)
}

// Record sets the call's read state of the file at the real path.
func (v *View) Record(real string, s State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if before, ok := v.lookup(real); ok {
		s = s.join(before)
	}
	if v.read == nil {
		v.read = map[string]State{}
	}
	v.read[real] = s
}

// lookup returns the call's read state of a file, or else the session's. v.mu is held.
func (v *View) lookup(real string) (State, bool) {
	if s, ok := v.read[real]; ok {
		return s, true
	}
	return v.state.Lookup(real)
}

func (v *View) known(real string) (State, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lookup(real)
}

// Open opens the regular file that name, absolute or relative to the working directory, resolves
// to. It never waits for another process and never opens anything but a regular file. For a file
// that an editor holds open it returns a copy of the editor's text, which may not be on the disk at
// all. It returns the faults file_not_found (Details: NotFound), is_directory, not_regular,
// permission_denied, rule_denied, undeclared, buffer_too_large, and those of Resolve.
func (v *View) Open(name string) (*File, error) {
	p, b, err := v.find(name)
	switch {
	case err != nil:
		return nil, err
	case b != nil:
		return b.file(p)
	}
	if f := v.again(p); f != nil {
		return f, nil
	}
	f, err := v.open(p, os.O_RDONLY)
	if err == nil {
		f.view = v
	}
	return f, err
}

// find resolves name, which the call may read, and returns its buffer, or nil if no editor holds the
// file open.
func (v *View) find(name string) (p Path, b *buffer, err error) {
	if p, err = v.readable(name); err == nil {
		b, err = v.buffer(p)
	}
	return p, b, err
}

// readable returns where name leads, which the call may read.
func (v *View) readable(name string) (Path, error) {
	if i := slices.IndexFunc(v.grant.Reads, func(g Grantee) bool { return g.Name != "" && g.Name == name }); i >= 0 {
		return v.granted(v.grant.Reads[i].Path, v.grant.Reads)
	}
	return v.reach(name, v.grant.Reads, v.grant.Writes)
}

// reach resolves name and checks it against the lists of the grant.
func (v *View) reach(name string, lists ...[]Grantee) (Path, error) {
	p, err := v.ws.Resolve(v.grant.Dir, name)
	if err != nil {
		return p, err
	}
	return v.granted(p, lists...)
}

// granted checks p against the lists of the grant.
func (v *View) granted(p Path, lists ...[]Grantee) (Path, error) {
	if v.ws.Place(p.Real) == Hidden {
		return p, fault.Deniedf("hidden_path", "%s belongs to the daemon itself and is never opened for a tool.", p.Shown())
	}
	if why := p.whyReadDenied(v.grant.ReadDenied); why != "" {
		return p, ruleDenied(p, why)
	}
	for _, list := range lists {
		if holds(list, p.Real) {
			return p, nil
		}
	}
	return p, undeclared(p)
}

func undeclared(p Path) error {
	return fault.Deniedf("undeclared", "%s is now %s, which is not what was permitted for this call. A file or directory on the way to it has changed; send the call again.", p.Shown(), shown(p.Real))
}

// exchanged returns the fault for a path that resolved to something permitted and opened as
// something else.
func exchanged(p Path) error {
	return fault.Deniedf("undeclared", "A directory on the way to %s was replaced while this call was working, so it was not opened. Send the call again.", p.Shown())
}

// open opens p with flag, and checks that it is a regular file and still the one that p names.
func (v *View) open(p Path, flag int) (*File, error) {
	if !p.Exists {
		return nil, v.notFound(p)
	}
	// The entry is examined before it is opened, since opening some devices has effects; what was a
	// regular file when the name was resolved is examined again only when it is open.
	if p.mode&syscall.S_IFMT != syscall.S_IFREG {
		if info, err := os.Lstat(p.Real); err == nil && !info.Mode().IsRegular() {
			return nil, notRegular(p, info)
		}
	}
	f, err := v.ws.openReal(p.Real, flag|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY)
	if err != nil {
		return nil, v.refused(p, whetherMoved(p.Real, err))
	}
	opened, err := inspect(f, p)
	if err != nil {
		f.Close()
		return nil, err
	}
	return opened, nil
}

// openBelow opens the real path relative to the root that holds it. The error is errMoved if a
// directory on the way was replaced.
func (w *Workspace) openBelow(real string, flag int) (*os.File, error) {
	root, rel, err := w.rootOf(real)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(rel, flag, 0)
	if err == nil && !liesAt(f, real) {
		return nil, errors.Join(errMoved, f.Close())
	}
	return f, err
}

// rootOf opens the root or the directory for temporary files that holds real, or "/", and returns
// real relative to it.
func (w *Workspace) rootOf(real string) (*os.Root, string, error) {
	dir := cmp.Or(pathname.Deepest(w.anchors, real), "/")
	rel, err := filepath.Rel(dir, real)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(dir)
	return root, rel, err
}

// inspect checks that f, which was opened at the real path of p, is a regular file.
func inspect(f *os.File, p Path) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, ioError(p, "was opened, but its metadata cannot be read", err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(p, info)
	}
	return &File{File: f, Path: p, Info: info, Kernel: info.Size() == 0 && isMadeUp(f)}, nil
}

// withDescriptor calls use with f's descriptor. Unlike f.Fd it leaves f non-blocking.
func withDescriptor(f *os.File, use func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var used error
	if err := raw.Control(func(fd uintptr) { used = use(int(fd)) }); err != nil {
		return err
	}
	return used
}

func notRegular(p Path, info fs.FileInfo) error {
	kind := "a special file"
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fault.Invalidf("is_directory", "%s is a directory. Use LS to list it, or name a file in it.", p.Shown())
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeSymlink != 0:
		return exchanged(p) // it was not a link when it was resolved
	}
	return fault.Invalidf("not_regular", "%s is %s, not a regular file; it could block or never end, so it is not opened.", p.Shown(), kind)
}

// refused returns the fault for a failed open.
func (v *View) refused(p Path, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return v.notFound(p)
	case errors.Is(err, syscall.ELOOP), errors.Is(err, errMoved):
		return exchanged(p)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.Failedf("permission_denied", "%s may not be opened by the daemon's user (%v).", p.Shown(), Cause(err))
	case errors.Is(err, syscall.ENXIO):
		return fault.Invalidf("not_regular", "%s is a socket or a device without a driver, not a regular file.", p.Shown())
	}
	return ioError(p, "cannot be opened", err)
}

// IsLink reports whether the last part of name is a symbolic link.
func (v *View) IsLink(name string) bool {
	p, err := v.ws.ResolveEntry(v.grant.Dir, name)
	if err != nil {
		return false
	}
	info, err := os.Lstat(p.Real)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
