// Resolving a name to the real path that it leads to.

package workspace

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
)

// A Path is a resolved name.
type Path struct {
	Named  string // absolute and clean, with links unresolved
	Real   string // on the disk, links resolved; if it does not exist, its deepest existing parent resolved, and the rest
	Seen   string // Real under the name that calls use: it differs for files in the session's own directories for temporary files
	Exists bool
	// Mapped is set if the name leads to such a directory by the machine's name for it, which has
	// that meaning only for the session's calls.
	Mapped bool
	// Missing is how many components at the end of Real do not exist. 0: Real exists.
	Missing int
	mode    uint32   // type and permissions of what is at Real, as the kernel writes them; 0: it was not looked at
	links   []string // real paths of the links that the name led through
}

// IsDir reports whether Real is a directory, or a link to one, when Resolve looked at it.
func (p Path) IsDir() bool {
	if !p.Exists || p.mode != 0 {
		return p.mode&syscall.S_IFMT == syscall.S_IFDIR
	}
	info, err := os.Stat(p.Real)
	return err == nil && info.IsDir()
}

// Links returns the real paths of the links that the name led through. The caller may modify the
// slice.
func (p Path) Links() []string { return slices.Clone(p.links) }

// Shown returns Named for a message. Bytes that are not text, and line breaks, are escaped.
func (p Path) Shown() string { return shown(p.Named) }

func shown(name string) string {
	if isPlain(name) {
		return name
	}
	q := strconv.Quote(name)
	return q[1 : len(q)-1]
}

// Name returns Named as NameOf does.
func (p Path) Name() string { return NameOf(p.Named) }

// NameOf returns a path in a form that can be sent and sent back: the path itself, or "base64:" and
// its bytes if it is not text or has a line break. Resolve accepts both.
func NameOf(path string) string {
	if isPlain(path) {
		return path
	}
	return asBytes + base64.StdEncoding.EncodeToString([]byte(path))
}

// asBytes is the prefix of a name in base64.
const asBytes = "base64:"

func isPlain(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0
}

// maxLinks is how many links one name may lead through; Linux has the same limit.
const maxLinks = 40

// Resolve follows name, which is absolute or relative to dir (absolute), through every link; a
// dangling link leads to its target. A name that is not text has the prefix "base64:". ".." goes up
// from the target of a link, as in a shell. The result holds for this moment: View checks that what
// it opens is still what Resolve returned. It returns the faults invalid_input, link_loop,
// magic_link, permission_denied and name_too_long.
func (w *Workspace) Resolve(dir, name string) (Path, error) {
	name, err := absolute(dir, name)
	if err != nil {
		return Path{}, err
	}
	r, err := follow(w, name)
	if err != nil {
		return Path{}, err
	}
	p := w.path(r.named, r.at, Path{Exists: r.missing == 0, Missing: r.missing, links: r.passed})
	if p.Exists && p.Real == r.disk {
		p.mode = uint32(r.here.Mode)
	}
	return p, nil
}

// path completes p, whose name is named and which leads to the path that calls call at.
func (w *Workspace) path(named, at string, p Path) Path {
	p.Named, p.Real = named, w.Disk(at)
	p.Seen, p.Mapped = w.Seen(p.Real), p.Real != at
	return p
}

// ResolveEntry resolves the directory that name lies in, and appends the last part of name. The
// result is the directory entry itself, even if it is a link.
func (w *Workspace) ResolveEntry(dir, name string) (Path, error) {
	name, err := absolute(dir, name)
	if err != nil {
		return Path{}, err
	}
	if name = filepath.Clean(name); name == "/" {
		return w.Resolve(dir, name)
	}
	p, err := w.Resolve("/", filepath.Dir(name))
	if err != nil {
		return Path{}, err
	}
	p.mode = 0 // the directory's
	p = w.path(name, filepath.Join(p.at(), filepath.Base(name)), p)
	if _, err := os.Lstat(p.Real); err != nil {
		p.Exists = false
		p.Missing++
	}
	return p, nil
}

// Literal returns the path that name is, which is absolute or relative to dir, without following any
// link.
func (w *Workspace) Literal(dir, name string) (Path, error) {
	name, err := absolute(dir, name)
	if err != nil {
		return Path{}, err
	}
	name = filepath.Clean(name)
	p := w.path(name, name, Path{Exists: true})
	for at := p.Real; at != "/"; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		p.Exists = false
		p.Missing++
	}
	return p, nil
}

// at returns where the walk of the name has ended.
func (p Path) at() string {
	if p.Mapped {
		return p.Seen
	}
	return p.Real
}

// machine is the workspace whose names are all the machine's.
var machine = &Workspace{}

// follow walks an absolute name to its end, with the names of w's calls.
func follow(w *Workspace, name string) (resolver, error) {
	r := resolver{world: w, named: filepath.Clean(name), at: "/"}
	err := r.follow(name)
	return r, err
}

// absolute returns name, which may be relative to dir and in base64, as an absolute path.
func absolute(dir, name string) (string, error) {
	name, err := decodeName(name)
	if err == nil && !filepath.IsAbs(name) {
		name = dir + "/" + name
	}
	return name, err
}

func decodeName(name string) (string, error) {
	if coded, ok := strings.CutPrefix(name, asBytes); ok {
		raw, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return "", fault.Invalidf("invalid_input", "What follows \"base64:\" in the path is not base64: %v. Send the bytes of the path in standard base64.", err)
		}
		name = string(raw)
	}
	switch {
	case name == "":
		return "", fault.Invalidf("invalid_input", "The path is empty. Send the path of a file.")
	case strings.ContainsRune(name, 0):
		return "", fault.Invalidf("invalid_input", "The path %q holds a NUL byte, which no file name can.", name)
	}
	return name, nil
}

// A resolver is the walk of one name. at is the path so far, without links and under the name that
// calls use. Its last missing components do not exist.
type resolver struct {
	world   *Workspace // whose names are used
	named   string
	at      string
	missing int
	passed  []string // real paths of the links so far
	// here is what is at the path disk, the last that was looked at and is not a link.
	here syscall.Stat_t
	disk string
}

// lstat is os.Lstat without what it allocates.
func lstat(path string, into *syscall.Stat_t) error {
	for {
		if err := syscall.Lstat(path, into); err != syscall.EINTR {
			return err
		}
	}
}

// below returns the path of an entry of a clean directory.
func below(dir, entry string) string {
	if dir == "/" {
		return dir + entry
	}
	return dir + "/" + entry
}

func (r *resolver) follow(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if err := r.step(part); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) step(part string) error {
	switch part {
	case "", ".":
		return nil
	case "..":
		r.at = filepath.Dir(r.at)
		r.missing = max(r.missing-1, 0)
		return nil
	}
	parent, next := r.at, below(r.at, part)
	r.at = next
	if r.missing > 0 {
		r.missing++
		return nil
	}
	disk := r.world.Disk(next)
	var info syscall.Stat_t
	err := lstat(disk, &info)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.missing++
		return nil
	case err != nil:
		return r.refused(err)
	}
	dir := filepath.Dir(disk)
	if real := r.spelled(dir, part, &info); real != part {
		r.at, disk = below(parent, real), below(dir, real)
	}
	if info.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		return r.link(parent, disk)
	}
	r.here, r.disk = info, disk
	return nil
}

// spelled returns part as its directory spells it.
func (r *resolver) spelled(dir, part string, info *syscall.Stat_t) string {
	var in directory
	switch {
	case r.world.locks == nil:
	case dir == "/": // it is never empty, so it stays as it is
		in.memory = &r.world.locks.cases
	case r.disk == dir:
		in = r.world.locks.directory(&r.here)
	}
	return spelled(dir, part, info, in)
}

// link continues at the target of the link at the real path, which calls see in the directory
// parent.
func (r *resolver) link(parent, path string) error {
	r.passed = append(r.passed, path)
	if len(r.passed) > maxLinks {
		return fault.Invalidf("link_loop", "%s leads through more than %d symbolic links; they probably form a loop. Name the file itself.", shown(r.named), maxLinks)
	}
	if isMagic(parent) {
		return fault.Deniedf("magic_link", "%s leads through %s, a kernel link to an open file or to another process's view of the file system. Name the file itself.", shown(r.named), shown(path))
	}
	target, err := os.Readlink(path)
	if err != nil {
		return r.refused(err)
	}
	r.at = parent
	if filepath.IsAbs(target) {
		r.at = "/"
	}
	return r.follow(target)
}

func (r *resolver) refused(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fault.Failedf("permission_denied", "%s cannot be looked up: a directory on the way to it may not be searched by the daemon's user.", shown(r.named))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault.Invalidf("name_too_long", "%s is longer than the file system allows (mostly 255 bytes a component, 4,095 in all).", shown(r.named))
	}
	return ioError(Path{Named: r.named}, "cannot be looked up", err)
}

// ioError returns the fault for an error that has no name of its own; what is what failed.
func ioError(p Path, what string, err error) error {
	return fault.Failedf("io_error", "%s %s: %v.", p.Shown(), what, Cause(err))
}

// Cause returns an error without the name of a file, for messages that have it already.
func Cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
