package sandbox

// Landlock: rulesets made from policies. A process puts one on itself; the daemon never does.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/pathname"
)

const (
	readFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readTree = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// ofFiles are the rights that a rule for something else than a directory can give.
	ofFiles = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// ruleNetPort is LANDLOCK_RULE_NET_PORT of linux/landlock.h.
	ruleNetPort = 2
	notWriting  = readTree | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	device      = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rightsOf are the file system rights that each version of the interface knows, as the kernel's documentation lists them
// (Documentation/userspace-api/landlock.rst); the first has 13.
func rightsOf(abi int) uint64 {
	rights := uint64(1)<<13 - 1
	for version, right := range map[int]uint64{2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV} {
		if abi >= version {
			rights |= right
		}
	}
	return rights
}

// landlockABI is the version of the kernel's interface; 0: there is none.
var landlockABI = sync.OnceValue(func() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
})

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// A claim is what a ruleset takes away but for its rules: struct landlock_ruleset_attr of linux/landlock.h.
type claim struct{ files, ports, scopes uint64 }

// A ruleset is being made.
type ruleset struct {
	fd      *os.File
	handled uint64
	hidden  map[identity]bool // files that are hidden, under whatever name
}

// An identity tells a file from all others, whatever its name.
type identity struct{ device, inode uint64 }

// restriction makes the ruleset of a policy for Fast, where port is the proxy's; 0: there is none.
func restriction(p Policy, port int) (*os.File, error) {
	abi := landlockABI()
	if abi == 0 {
		return nil, unix.ENOSYS
	}
	attr := claim{files: rightsOf(abi)}
	if abi >= 4 {
		attr.ports = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.scopes = scopes(p)
	}
	r, err := newRuleset(attr)
	if err != nil {
		return nil, err
	}
	if err := r.fill(p, port); err != nil {
		_ = r.fd.Close()
		return nil, err
	}
	return r.fd, nil
}

// supplement is the ruleset of a policy for Full: it keeps signals and abstract sockets inside, and nothing is written to that
// is no file, such as a named pipe, where nothing may be written: that a file system is read-only does not keep from those.
// nil: the kernel has no such thing. Before version 2 no file could be moved to another directory under it.
func supplement(p Policy) (*os.File, error) {
	abi := landlockABI()
	if abi < 2 {
		return nil, nil
	}
	attr := claim{files: unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REFER}
	if abi >= 6 {
		attr.scopes = scopes(p)
	}
	r, err := newRuleset(attr)
	if err != nil {
		return nil, err
	}
	paths := slices.Clone(devices)
	for _, place := range p.Places {
		if place.Access == Write && place.Above == "" { // an overlay is not there yet
			paths = append(paths, place.source())
		}
	}
	for _, path := range paths {
		if err := r.grant(path, r.handled); err != nil {
			_ = r.fd.Close()
			return nil, err
		}
	}
	return r.fd, nil
}

func scopes(p Policy) uint64 {
	if p.UnixSockets {
		return unix.LANDLOCK_SCOPE_SIGNAL
	}
	return unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
}

func newRuleset(attr claim) (*ruleset, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("making a Landlock ruleset: %w", errno)
	}
	return &ruleset{os.NewFile(fd, "ruleset"), attr.files, map[identity]bool{}}, nil
}

func (r *ruleset) fill(p Policy, port int) error {
	r.hide(p.Places)
	around := slices.Concat(p.Places, replaced(p.Places))
	for _, tree := range readable(p) {
		real, err := filepath.EvalSymlinks(tree)
		if err != nil {
			continue // there is no such tree
		}
		if err := r.grantAround(real, readTree, around); err != nil {
			return err
		}
	}
	if err := r.grant("/dev", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	for _, name := range devices {
		if err := r.grant(name, device); err != nil {
			return err
		}
	}
	for _, place := range p.Places {
		path := place.elsewhere()
		if place.Access == Hidden {
			continue
		}
		if err := r.grantAround(path, readTree, p.Places); err != nil {
			return err
		}
		if place.Access == Write {
			if err := r.grant(path, r.handled&^notWriting); err != nil {
				return err
			}
		}
	}
	return r.connect(port)
}

// hide notes the files that no rule may name: a rule is the file's, and holds for its other names too.
func (r *ruleset) hide(places []Place) {
	for _, place := range places {
		var info unix.Stat_t
		if place.Access == Hidden && unix.Lstat(place.Path, &info) == nil && info.Mode&unix.S_IFMT != unix.S_IFDIR {
			r.hidden[identity{info.Dev, info.Ino}] = true
		}
	}
}

// readable are the trees that can be read whatever the places say: the system's, and where a policy is not strict all but
// devices.
func readable(p Policy) []string {
	if p.Strict {
		return SystemTrees
	}
	entries, _ := os.ReadDir("/") // what cannot be listed is given no rights
	trees := []string{}
	for _, entry := range entries {
		if entry.Name() != "dev" && entry.Type()&os.ModeSymlink == 0 {
			trees = append(trees, "/"+entry.Name())
		}
	}
	return trees
}

func (r *ruleset) connect(port int) error {
	if port == 0 || landlockABI() < 4 {
		return nil
	}
	attr := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.fd.Fd(), ruleNetPort, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("adding a Landlock rule for port %d: %w", port, errno)
	}
	return nil
}

// most is how many entries of one directory are given rights one by one, at most.
const most = 10_000

// grantAround returns rights to a tree, but not to what is hidden below it. Landlock knows no exceptions: where there is
// one, the entries beside it are given the rights one by one, and new ones have none.
func (r *ruleset) grantAround(path string, rights uint64, places []Place) error {
	for _, hidden := range places {
		if hidden.Access != Hidden || !pathname.Within(path, hidden.Path) {
			continue
		}
		if _, err := os.Lstat(hidden.Path); err != nil {
			continue
		}
		if hidden.Path == path {
			return nil
		}
		return r.grantEntries(path, rights, places)
	}
	return r.grant(path, rights)
}

func (r *ruleset) grantEntries(dir string, rights uint64, places []Place) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > most {
		return nil // what cannot be listed is given no rights
	}
	if listable(dir, places) {
		if err := r.grant(dir, rights&unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			continue // where it leads has its own rights
		}
		if err := r.grantAround(filepath.Join(dir, entry.Name()), rights, places); err != nil {
			return err
		}
	}
	return nil
}

// listable reports whether a directory with something hidden below it may be listed. With it goes all that is below: so one that
// holds a hidden directory may not, unless it is part of a place that is to be read.
func listable(dir string, places []Place) bool {
	return slices.ContainsFunc(places, func(p Place) bool { return p.Access != Hidden && pathname.Within(p.elsewhere(), dir) }) ||
		!slices.ContainsFunc(places, func(p Place) bool { return p.Access == Hidden && pathname.Within(dir, p.Path) && isDir(p.Path) })
}

// grant adds one rule. What is not there needs none, nor what a link leads to: that has its own.
func (r *ruleset) grant(path string, rights uint64) error {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	if r.hidden[identity{info.Dev, info.Ino}] {
		return nil
	}
	attr := struct {
		access uint64
		parent int32
	}{rights & r.handled, int32(fd)}
	if attr.access == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.fd.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 && !errors.Is(errno, unix.EINVAL) {
		return fmt.Errorf("adding a Landlock rule for %s: %w", path, errno)
	}
	return nil
}
