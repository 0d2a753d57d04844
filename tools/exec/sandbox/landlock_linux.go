// Landlock rulesets, made from policies. A process restricts itself with one; the daemon never
// does.

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

const (
	readFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readTree = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// ofFiles are the rights that a rule for anything but a directory can have.
	ofFiles = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// ruleNetPort is LANDLOCK_RULE_NET_PORT of linux/landlock.h.
	ruleNetPort = 2
	notWriting  = readTree | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	device      = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rightsOf returns the file system rights of a version of the interface, as the kernel's
// documentation lists them (Documentation/userspace-api/landlock.rst); the first has 13.
func rightsOf(abi int) uint64 {
	rights := uint64(1)<<13 - 1
	for version, right := range map[int]uint64{2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV} {
		if abi >= version {
			rights |= right
		}
	}
	return rights
}

// landlockABI returns the version of the kernel's interface; 0: none.
var landlockABI = sync.OnceValue(func() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
})

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// A rulesetAttr is what a ruleset denies unless a rule allows it: struct landlock_ruleset_attr of
// linux/landlock.h.
type rulesetAttr struct{ files, ports, scopes uint64 }

// A ruleset is one that is being made.
type ruleset struct {
	fd      *os.File
	handled uint64
	hidden  map[identity]bool // files that are hidden under all of their names
	err     error             // of the first rule that could not be added; no other is added after it
}

// An identity identifies a file, whatever its name.
type identity struct{ device, inode uint64 }

func identityOf(info *unix.Stat_t) identity { return identity{info.Dev, info.Ino} }

// restriction makes the ruleset of a policy for Fast. port is the proxy's; 0: none.
func restriction(p Policy, port int) (*os.File, error) {
	abi := landlockABI()
	if abi == 0 {
		return nil, unix.ENOSYS
	}
	attr := rulesetAttr{files: rightsOf(abi)}
	if abi >= 4 {
		attr.ports = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	return newRuleset(p, attr, func(r *ruleset) {
		r.fill(p)
		if port != 0 && abi >= 4 {
			r.connect(port)
		}
	})
}

// supplement makes the ruleset of a policy for Full. It confines signals and abstract sockets, and
// denies writing to special files, such as named pipes, outside writable places: a read-only file
// system does not prevent that. It returns nil if the kernel does not support it. Before version 2
// a ruleset would prevent moving files between directories.
func supplement(p Policy) (*os.File, error) {
	if landlockABI() < 2 {
		return nil, nil
	}
	attr := rulesetAttr{files: unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REFER}
	return newRuleset(p, attr, func(r *ruleset) {
		for _, path := range devices {
			r.grant(path, r.handled)
		}
		for _, place := range p.Places {
			if place.Access == Write && place.Above == "" { // an overlay does not exist yet
				r.grant(place.source(), r.handled)
			}
		}
	})
}

// newRuleset makes a ruleset to which fill adds the rules.
func newRuleset(p Policy, attr rulesetAttr, fill func(*ruleset)) (*os.File, error) {
	if landlockABI() >= 6 {
		attr.scopes = unix.LANDLOCK_SCOPE_SIGNAL
		if !p.UnixSockets {
			attr.scopes |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("making a Landlock ruleset: %w", errno)
	}
	r := &ruleset{fd: os.NewFile(fd, "ruleset"), handled: attr.files, hidden: map[identity]bool{}}
	if fill(r); r.err != nil {
		_ = r.fd.Close()
		return nil, r.err
	}
	return r.fd, nil
}

func (r *ruleset) fill(p Policy) {
	r.hide(p.Places)
	around := slices.Concat(p.Places, replaced(p.Places))
	for _, tree := range readable(p) {
		if real, err := filepath.EvalSymlinks(tree); err == nil { // otherwise there is no such tree
			r.grantAround(real, readTree, around)
		}
	}
	r.grant("/dev", unix.LANDLOCK_ACCESS_FS_READ_DIR)
	for _, name := range devices {
		r.grant(name, device)
	}
	for _, place := range p.Places {
		if place.Access != Hidden {
			r.grantAround(place.elsewhere(), readTree, p.Places)
		}
		if place.Access == Write {
			r.grant(place.elsewhere(), r.handled&^notWriting)
		}
	}
}

// hide records the files that no rule may name: a rule belongs to the file, and so applies to its
// other names too.
func (r *ruleset) hide(places []Place) {
	for _, place := range places {
		var info unix.Stat_t
		if place.Access == Hidden && unix.Lstat(place.Path, &info) == nil && info.Mode&unix.S_IFMT != unix.S_IFDIR {
			r.hidden[identityOf(&info)] = true
		}
	}
}

// readable returns the trees that can be read whatever the places are: the system's and, unless the
// policy is strict, everything but devices.
func readable(p Policy) []string {
	if p.Strict {
		return SystemTrees
	}
	entries, _ := os.ReadDir("/") // an unlisted entry gets no rights
	trees := []string{}
	for _, entry := range entries {
		if entry.Name() != "dev" && entry.Type()&os.ModeSymlink == 0 {
			trees = append(trees, "/"+entry.Name())
		}
	}
	return trees
}

func (r *ruleset) connect(port int) {
	attr := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.fd.Fd(), ruleNetPort, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 && r.err == nil {
		r.err = fmt.Errorf("adding a Landlock rule for port %d: %w", port, errno)
	}
}

// most is how many entries of one directory get rights one by one, at most.
const most = 10_000

// grantAround grants rights to a tree, except for what is hidden below it. Landlock has no
// exceptions: where something is hidden, the entries beside it get the rights one by one, and new
// entries get none.
func (r *ruleset) grantAround(path string, rights uint64, places []Place) {
	for _, hidden := range places {
		if hidden.Access != Hidden || !pathname.Within(path, hidden.Path) {
			continue
		}
		if _, err := os.Lstat(hidden.Path); err != nil {
			continue
		}
		if hidden.Path != path {
			r.grantEntries(path, rights, places)
		}
		return
	}
	r.grant(path, rights)
}

func (r *ruleset) grantEntries(dir string, rights uint64, places []Place) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > most {
		return // an unlisted entry gets no rights
	}
	if listable(dir, places) {
		r.grant(dir, rights&unix.LANDLOCK_ACCESS_FS_READ_DIR)
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 { // the target of a link has its own rights
			r.grantAround(filepath.Join(dir, entry.Name()), rights, places)
		}
	}
}

// listable reports whether a directory with something hidden below it may be listed. The right
// would extend to everything below. So a directory that holds a hidden one may not be listed,
// unless it is part of a readable place.
func listable(dir string, places []Place) bool {
	return slices.ContainsFunc(places, func(p Place) bool { return p.Access != Hidden && pathname.Within(p.elsewhere(), dir) }) ||
		!slices.ContainsFunc(places, func(p Place) bool { return p.Access == Hidden && pathname.Within(dir, p.Path) && isDir(p.Path) })
}

// grant adds one rule. A missing path needs none, and neither does a link, whose target has its
// own.
func (r *ruleset) grant(path string, rights uint64) {
	if r.err != nil {
		return
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		r.err = fmt.Errorf("looking at %s: %w", path, err)
		return
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	attr := struct {
		access uint64
		parent int32
	}{rights & r.handled, int32(fd)}
	if attr.access == 0 || r.hidden[identityOf(&info)] {
		return
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.fd.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 && !errors.Is(errno, unix.EINVAL) {
		r.err = fmt.Errorf("adding a Landlock rule for %s: %w", path, errno)
	}
}
