// From a name to the path that it really is. It does not know what may be reached.

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

// A Path is what a name came to.
type Path struct {
	Named  string // absolute and cleaned, links as they were named
	Real   string // on the disk, links resolved; of what does not exist: its deepest existing parent resolved, and the rest
	Seen   string // Real by the name that calls know: another one for what lies in a directory for temporary files of the session
	Exists bool
	// Mapped: the name leads to such a directory by the name of the machine's, which only the session's calls know it by.
	Mapped bool
	// Missing is how many components at the end of Real do not exist. 0: it exists.
	Missing int
	links   []string // real paths of the links that the name led through
}

// Links returns the real paths of the links that the name led through. It belongs to the caller.
func (p Path) Links() []string { return slices.Clone(p.links) }

// Shown returns Named for a message: what is no text, or would break a line, is escaped.
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

// NameOf returns a path in a form that can be sent and given back: itself, or "base64:" and its bytes when it is no text
// or would break a line. Resolve takes either.
func NameOf(path string) string {
	if isPlain(path) {
		return path
	}
	return asBytes + base64.StdEncoding.EncodeToString([]byte(path))
}

// asBytes begins a name that is given by its bytes.
const asBytes = "base64:"

func isPlain(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0
}

// maxLinks is how many links one name may lead through; Linux has the same limit.
const maxLinks = 40

// Resolve follows name, which is absolute or relative to dir (absolute), through every link, a dangling one to its
// target. "base64:" in front gives the bytes of a name that is not text. ".." goes up from where a link led to, as in a
// shell. The answer is a judgement of this moment: View checks that what it opens is still what Resolve named.
// It returns faults: invalid_input, link_loop, magic_link, permission_denied, name_too_long.
func (w *Workspace) Resolve(dir, name string) (Path, error) {
	name, err := decodeName(name)
	if err != nil {
		return Path{}, err
	}
	if !filepath.IsAbs(name) {
		name = dir + "/" + name
	}
	r, err := follow(w, name)
	if err != nil {
		return Path{}, err
	}
	return w.path(r.named, r.at, Path{Exists: r.missing == 0, Missing: r.missing, links: r.passed}), nil
}

// path completes p, which was named so and led to a path that calls know as at.
func (w *Workspace) path(named, at string, p Path) Path {
	p.Named, p.Real = named, w.Disk(at)
	p.Seen, p.Mapped = w.Seen(p.Real), p.Real != at
	return p
}

// ResolveEntry returns what Resolve does for the directory that name lies in, with the last part of name behind it: the entry
// itself, and not what a link in its place leads to.
func (w *Workspace) ResolveEntry(dir, name string) (Path, error) {
	name, err := decodeName(name)
	if err != nil {
		return Path{}, err
	}
	if !filepath.IsAbs(name) {
		name = dir + "/" + name
	}
	name = filepath.Clean(name)
	if name == "/" {
		return w.Resolve(dir, name)
	}
	p, err := w.Resolve("/", filepath.Dir(name))
	if err != nil {
		return Path{}, err
	}
	p = w.path(name, filepath.Join(p.at(), filepath.Base(name)), p)
	if _, err := os.Lstat(p.Real); err != nil {
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

// follow walks an absolute name to its end, as the calls of w know names; nil: as the machine does.
func follow(w *Workspace, name string) (resolver, error) {
	r := resolver{world: w, named: filepath.Clean(name), at: "/", links: maxLinks}
	err := r.follow(name)
	return r, err
}

func decodeName(name string) (string, error) {
	if coded, ok := strings.CutPrefix(name, asBytes); ok {
		raw, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return "", fault.Invalidf("invalid_input", "What follows \"base64:\" in the path is not base64: %v. Give the bytes of the path in standard base64.", err)
		}
		name = string(raw)
	}
	switch {
	case name == "":
		return "", fault.Invalidf("invalid_input", "The path is empty. Give the path of a file.")
	case strings.ContainsRune(name, 0):
		return "", fault.Invalidf("invalid_input", "The path %q holds a NUL byte, which no file name can.", name)
	}
	return name, nil
}

// A resolver walks one name. at is the path so far, without links and as calls know it, whose last missing components do
// not exist.
type resolver struct {
	world   *Workspace // whose calls are meant; nil: names are the machine's
	named   string
	at      string
	missing int
	links   int      // how many it may lead through
	passed  []string // real paths of the links so far
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
	parent, next := r.at, filepath.Join(r.at, part)
	r.at = next
	if r.missing > 0 {
		r.missing++
		return nil
	}
	disk := r.disk(next)
	info, err := os.Lstat(disk)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.missing++
		return nil
	case err != nil:
		return r.refused(err)
	}
	real := spelled(filepath.Dir(disk), part, info)
	r.at = filepath.Join(parent, real)
	if info.Mode()&fs.ModeSymlink != 0 {
		return r.link(parent, filepath.Join(filepath.Dir(disk), real))
	}
	return nil
}

// disk returns where on the disk a path lies.
func (r *resolver) disk(path string) string {
	if r.world == nil {
		return path
	}
	return r.world.Disk(path)
}

// link goes on at the target of the link at the real path, which calls know as lying in parent.
func (r *resolver) link(parent, path string) error {
	r.passed = append(r.passed, path)
	if len(r.passed) > r.links {
		return fault.Invalidf("link_loop", "%s leads through more than %d symbolic links; they probably form a loop. Name the file itself.", shown(r.named), maxLinks)
	}
	if isMagic(parent) {
		return fault.Deniedf("magic_link", "%s leads through %s, a link that the kernel makes to an open file or to another process's view. Name the file itself.", shown(r.named), shown(path))
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
	return fault.Failedf("io_error", "%s cannot be looked up: %v.", shown(r.named), cause(err))
}

// cause strips a path error of the name, which the message gives already.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
