// An instance is made once for a policy and serves every process under it: namespaces with their
// own file system, and a Landlock ruleset. A process joins them in a few system calls.
//
// The file system is built from places, from the outside in: everything is readable first, then
// each place is mounted, so that the inner one counts.

package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// An instance is what has been made for one policy, with its places as they were at that time.
type instance struct {
	namespaces []namespace
	filter     filter       // of its processes
	network    *network     // in Full; nil: Fast
	layers     *os.File     // the mount namespace that its mounts were made from; nil: none
	ruleset    *os.File     // nil: none
	proxy      *proxy       // of its own, in Fast; nil: none
	points     []mountPoint // that were made for it
	once       bool         // no other process uses it
	users      int
	left       time.Time // when the last process left
}

// A namespace is one that a process joins.
type namespace struct {
	file *os.File
	kind int
}

func (c *instance) close() {
	for _, n := range c.namespaces {
		_ = n.file.Close()
	}
	if c.ruleset != nil {
		_ = c.ruleset.Close()
	}
}

// port returns the port of its own proxy; 0: none.
func (c *instance) port() int {
	if c.proxy == nil {
		return 0
	}
	return c.proxy.port
}

// joined returns the namespaces of a process in the instance, in the order of joining. users may be
// nil.
func (c *instance) joined(users *os.File) (all []namespace) {
	if users != nil {
		all = append(all, namespace{users, unix.CLONE_NEWUSER})
	}
	return append(append(all, c.namespaces...), c.network.namespace)
}

// fromTheOutside returns places in the order of mounting.
func fromTheOutside(places []Place) []Place {
	places = slices.Clone(places)
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")) })
	return places
}

// newUsers makes the user namespace that an unprivileged user needs for all others; it returns nil
// for root.
func newUsers() (*os.File, error) {
	if os.Geteuid() == 0 {
		return nil, nil
	}
	m := &maker{program: newProgram(), closed: map[*step]*step{}, flags: unix.CLONE_NEWUSER}
	m.about = "making a namespace of users"
	m.noHandlers()
	m.write("/proc/self/setgroups", "deny")
	m.write("/proc/self/uid_map", fmt.Sprintf("%d %[1]d 1", os.Geteuid()))
	m.write("/proc/self/gid_map", fmt.Sprintf("%d %[1]d 1", os.Getegid()))
	ns := m.namespace("user")
	if err := m.carryOut(); err != nil {
		return nil, err
	}
	return ns.file("users"), nil
}

// newNamespaces makes the namespaces of a policy, which belong to the user namespace users, from the
// mount namespace from; either may be nil. It adds to the ruleset r, which may be nil, what exists
// only inside.
func newNamespaces(p Policy, r, users, from *os.File) (made []namespace, err error) {
	m := newMaker(users)
	if from != nil {
		m.do(unix.SYS_SETNS, int(from.Fd()), unix.CLONE_NEWNS)
	}
	m.policy, m.ruleset, m.places = p, r, fromTheOutside(p.Places)
	m.do(unix.SYS_UNSHARE, unix.CLONE_NEWNS|unix.CLONE_NEWIPC)
	m.files()
	m.about = "opening the namespaces"
	mounts, ipc := m.namespace("mnt"), m.namespace("ipc")
	if err := m.carryOut(); err != nil {
		return nil, err
	}
	return []namespace{{mounts.file("mounts"), unix.CLONE_NEWNS}, {ipc.file("ipc"), unix.CLONE_NEWIPC}}, nil
}

// A maker writes the program that makes namespaces.
type maker struct {
	*program
	flags   uintptr // of the process that runs the program
	policy  Policy
	ruleset *os.File
	places  []Place
	opened  []*step         // descriptors to close at the end
	closed  map[*step]*step // those that a step of the program closes itself, if it is reached
	results []*step         // descriptors that are kept
	covers  []Place         // what now covers something else, so that mount points below it must be made
}

// newMaker begins a program by entering the user namespace users, which may be nil.
func newMaker(users *os.File) *maker {
	m := &maker{program: newProgram(), closed: map[*step]*step{}}
	m.about = "entering new namespaces"
	m.noHandlers()
	if users != nil {
		m.do(unix.SYS_SETNS, int(users.Fd()), unix.CLONE_NEWUSER)
	}
	return m
}

// carryOut runs the program in a process that shares the daemon's descriptor table: what it opens
// belongs to the daemon. After an error nothing is left open.
func (m *maker) carryOut() error {
	m.end()
	pid, err := m.run(m.flags | unix.CLONE_FILES)
	if pid != 0 {
		collectNow(pid)
	}
	m.closeAll(err != nil)
	return err
}

// kept keeps the descriptor that a step opens, unless the program fails.
func (m *maker) kept(s *step) *step {
	s.opens()
	m.results = append(m.results, s)
	return s
}

// namespace opens the process's namespace of that name in /proc/self/ns.
func (m *maker) namespace(name string) *step {
	return m.kept(m.do(unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC))
}

// file returns the descriptor that a step has opened.
func (s *step) file(name string) *os.File { return os.NewFile(s.result, name) }

// open opens a file, which is closed at the end.
func (m *maker) open(path string, flags int) *step {
	return m.opens(m.do(unix.SYS_OPENAT, unix.AT_FDCWD, path, flags|unix.O_CLOEXEC, 0o444))
}

// write writes to a file and closes it: a mount with a file open for writing cannot be made
// read-only.
func (m *maker) write(path, text string) {
	f := m.open(path, unix.O_WRONLY)
	m.do(unix.SYS_WRITE, f.at(), text, len(text))
	m.closed[f] = m.do(unix.SYS_CLOSE, f.at())
	m.closed[f].opens() // it is 0 once the descriptor is closed
}

// files builds the file system.
func (m *maker) files() {
	m.about = "making a file system of its own"
	m.do(unix.SYS_MOUNT, "", "/", "", unix.MS_REC|unix.MS_PRIVATE, 0)
	sources := make([]*step, len(m.places))
	for i, place := range m.places {
		if place.Access != Hidden {
			sources[i] = m.tree(place.source())
		}
	}
	nodes := m.nodes()
	m.setAttr(nil, "/", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, unix.AT_RECURSIVE)
	m.devices(nodes)
	for i, place := range m.places {
		m.place(place, sources[i])
	}
	m.about = "closing the file system"
	for _, place := range m.places {
		if place.Access == Hidden && isDir(cmp.Or(place.Source, place.Path)) && !m.covered(place) {
			m.setAttr(nil, place.Path, unix.MOUNT_ATTR_RDONLY, 0).spare() // another place may be mounted there too
		}
	}
}

// tree copies the mounts at path, so that they can be mounted elsewhere.
func (m *maker) tree(path string) *step {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	m.about = "taking " + path
	return m.copyOf(m.find(path), unix.AT_RECURSIVE)
}

// find opens path without following links, since another process could replace a part of it by a
// link.
func (m *maker) find(path string) *step {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	return m.opens(m.do(unix.SYS_OPENAT2, unix.AT_FDCWD, path, unsafe.Pointer(how), int(unsafe.Sizeof(*how))).hold(how))
}

func (m *maker) copyOf(found *step, flags int) *step {
	return m.opens(m.do(unix.SYS_OPEN_TREE, found.at(), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|flags))
}

// opens has the descriptor that a step returns closed at the end.
func (m *maker) opens(s *step) *step {
	s.opens()
	m.opened = append(m.opened, s)
	return s
}

// setAttr restricts a mount further: the one at path, or the tree that a step has copied.
func (m *maker) setAttr(at *step, path string, set uint64, flags int) *step {
	attr := &unix.MountAttr{Attr_set: set}
	var dir any = unix.AT_FDCWD
	if at != nil {
		dir, flags = at.at(), flags|unix.AT_EMPTY_PATH
	}
	return m.do(unix.SYS_MOUNT_SETATTR, dir, path, flags, unsafe.Pointer(attr), int(unsafe.Sizeof(*attr))).hold(attr)
}

// place mounts one place.
func (m *maker) place(place Place, source *step) {
	m.about = "placing " + place.Path
	if place.Access == Hidden {
		m.hide(place)
		return
	}
	if source == nil {
		return // nothing exists there
	}
	set := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if place.Access == Read {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	m.setAttr(source, "", set, unix.AT_RECURSIVE)
	m.reach(place.Path, isDir(place.source()))
	m.put(source, place.Path)
	if place.source() != place.Path {
		m.covers = append(m.covers, place)
	}
	if place.Above != "" && place.Access == Write {
		m.permit(place.Path)
	}
}

// put mounts a tree at path without following links.
func (m *maker) put(tree *step, path string) {
	m.do(unix.SYS_MOVE_MOUNT, tree.at(), "", m.find(path).at(), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// reach makes the mount point at path, if something covers what was there.
func (m *maker) reach(path string, dir bool) {
	at := innermost(m.covers, path).Path
	if at == "" {
		return
	}
	parts := strings.Split(strings.TrimPrefix(path, at+"/"), "/")
	for i, part := range parts {
		at += "/" + part
		switch last := i == len(parts)-1; {
		case last && dir:
			m.do(unix.SYS_MKDIRAT, unix.AT_FDCWD, at, pointMode).spare()
		case last:
			m.opens(m.do(unix.SYS_OPENAT, unix.AT_FDCWD, at, unix.O_RDONLY|unix.O_CREAT|unix.O_CLOEXEC, pointMode)).spare()
		default:
			m.do(unix.SYS_MKDIRAT, unix.AT_FDCWD, at, 0o755).spare()
		}
	}
}

// hide covers path with something that cannot be read: a directory with an empty file system, in
// which inner places can still be reached by name, and a file with one without permissions.
func (m *maker) hide(place Place) {
	path := place.Path
	info, err := os.Lstat(cmp.Or(place.Source, path))
	if err != nil || info.Mode()&os.ModeSymlink != 0 || m.covered(place) {
		return // nothing exists there, or the link's target is hidden itself
	}
	m.reach(path, info.IsDir())
	if !info.IsDir() {
		m.put(m.copyOf(m.find("/dev/.nothing"), 0), path)
		return
	}
	mode := "0"
	if slices.ContainsFunc(m.places, func(p Place) bool { return p.Access != Hidden && p.Path != path && pathname.Within(path, p.Path) }) {
		mode = "0111"
	}
	m.put(m.mounted(m.filesystem("tmpfs", "size", "64k", "nr_inodes", "256", "mode", mode)), path)
	m.covers = append(m.covers, place)
}

// filesystem begins a file system of a kind, with options by name and value.
func (m *maker) filesystem(kind string, options ...string) *step {
	const setString = 1 // FSCONFIG_SET_STRING of linux/mount.h
	fs := m.opens(m.do(unix.SYS_FSOPEN, kind, unix.FSOPEN_CLOEXEC))
	for option := range slices.Chunk(options, 2) {
		m.do(unix.SYS_FSCONFIG, fs.at(), setString, option[0], option[1], 0)
	}
	return fs
}

// mounted makes a mount of a file system, which can be attached anywhere.
func (m *maker) mounted(fs *step) *step {
	const create = 6 // FSCONFIG_CMD_CREATE of linux/mount.h
	m.do(unix.SYS_FSCONFIG, fs.at(), create, 0, 0, 0)
	return m.opens(m.do(unix.SYS_FSMOUNT, fs.at(), unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV))
}

// nodes copies the devices that every process needs.
func (m *maker) nodes() map[string]*step {
	nodes := map[string]*step{}
	for _, path := range devices {
		if s := m.tree(path); s != nil {
			nodes[path] = s
		}
	}
	return nodes
}

// devices makes a /dev with only those, and with its own terminals and shared memory.
func (m *maker) devices(nodes map[string]*step) {
	m.about = "making devices"
	m.do(unix.SYS_MOUNT, "tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=64k,mode=755")
	for _, path := range devices {
		if node := nodes[path]; node != nil {
			m.open(path, unix.O_RDONLY|unix.O_CREAT)
			m.put(node, path)
		}
	}
	m.do(unix.SYS_MKNODAT, unix.AT_FDCWD, "/dev/.nothing", unix.S_IFREG, 0)
	for name, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		m.do(unix.SYS_SYMLINKAT, to, unix.AT_FDCWD, "/dev/"+name)
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		m.do(unix.SYS_MKDIRAT, unix.AT_FDCWD, dir, 0o755)
	}
	m.do(unix.SYS_MOUNT, "devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620").spare()
	m.do(unix.SYS_MOUNT, "tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m,mode=1777") // the size that Docker uses
	m.setAttr(nil, "/dev", unix.MOUNT_ATTR_RDONLY, 0)
	m.permit("/dev/pts")
	m.permit("/dev/shm")
	m.covers = append(m.covers, Place{Path: "/dev"})
}

// permit allows writing below a directory in the ruleset.
func (m *maker) permit(dir string) {
	if m.ruleset == nil {
		return
	}
	attr := &struct {
		access uint64
		parent uintptr // the kernel uses the low half, which comes first
	}{unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REFER, ^uintptr(0)}
	m.do(unix.SYS_OPENAT, unix.AT_FDCWD, dir, unix.O_PATH|unix.O_CLOEXEC).spare().store = &attr.parent
	m.do(unix.SYS_LANDLOCK_ADD_RULE, int(m.ruleset.Fd()), unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(attr), 0).hold(attr).spare()
	m.do(unix.SYS_CLOSE, &attr.parent).spare()
}

// closeAll closes what the program has opened, including what was to be kept if it has failed.
func (m *maker) closeAll(failed bool) {
	if failed {
		m.opened = append(m.opened, m.results...)
	}
	for _, s := range m.opened {
		if fd, closed := int(s.result), m.closed[s]; fd >= 0 && (closed == nil || closed.result != 0) {
			_ = unix.Close(fd)
		}
	}
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
