package sandbox

// What is made once for a policy and then serves every process that is started under it: namespaces with a file system of
// their own, a Landlock ruleset, the way out to the network. A process joins them in a few system calls.
//
// The file system is made of places, from the outside in: all is readable first, then each place takes its own spot, so
// that the inner one counts.

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A cell is what has been made for one policy, as its places were at that time.
type cell struct {
	namespaces []namespace
	ruleset    *os.File // nil: none
	port       int      // the proxy's; 0: there is none
	outlet     io.Closer
	users      int
	left       time.Time // by the last user
}

// A namespace is one that a process joins.
type namespace struct {
	file *os.File
	kind int
}

func (c *cell) close() {
	if c.outlet != nil {
		_ = c.outlet.Close()
	}
	for _, n := range c.namespaces {
		_ = n.file.Close()
	}
	if c.ruleset != nil {
		_ = c.ruleset.Close()
	}
}

// kinds are the namespaces of a cell in the order in which they are joined, with their names in /proc/self/ns.
var kinds = []struct {
	kind int
	name string
}{{unix.CLONE_NEWUSER, "user"}, {unix.CLONE_NEWNS, "mnt"}, {unix.CLONE_NEWIPC, "ipc"}, {unix.CLONE_NEWNET, "net"}}

// proxyPort is where a cell's proxy listens, on its own loopback.
const proxyPort = 3128

// newNamespaces makes the namespaces of a policy, and the proxy's socket in them if there is to be one. It adds to the ruleset,
// which may be nil, what exists only inside.
func newNamespaces(p Policy, r *os.File) (made []namespace, proxy net.Listener, err error) {
	m := &maker{program: newProgram(), policy: p, ruleset: r, places: slices.Clone(p.Places), closed: map[*step]*step{}}
	slices.SortStableFunc(m.places, func(a, b Place) int { return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")) })
	flags := m.enter()
	m.files()
	m.loopback()
	if p.Network.proxied() {
		m.listen()
	}
	m.handOver(flags)
	m.end()
	// The child shares the daemon's table of descriptors: what it opens is the daemon's.
	pid, err := m.run(flags | unix.CLONE_FILES)
	if pid != 0 {
		collectNow(pid)
	}
	m.closeAll(err != nil)
	if err != nil {
		return nil, nil, err
	}
	for i, fd := range m.handed {
		made = append(made, namespace{os.NewFile(uintptr(fd.result), "namespace"), m.kinds[i]})
	}
	if m.socket != nil {
		f := os.NewFile(m.socket.result, "proxy")
		defer f.Close()
		proxy, err = net.FileListener(f)
	}
	return made, proxy, err
}

// A maker writes the program that makes a cell's namespaces.
type maker struct {
	*program
	policy  Policy
	ruleset *os.File
	places  []Place
	opened  []*step         // descriptors to close at the end
	closed  map[*step]*step // those that a step of the program closes itself, if it gets there
	handed  []*step         // descriptors of the namespaces
	kinds   []int
	socket  *step
	covers  []string // what now stands on something else, so that what is below has to be made
}

// enter gives the flags of the new namespaces; a user that is not root needs one for users too.
func (m *maker) enter() (flags uintptr) {
	flags = unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET
	m.about = "entering new namespaces"
	m.noHandlers()
	if os.Geteuid() == 0 {
		return flags
	}
	m.write("/proc/self/setgroups", "deny")
	m.write("/proc/self/uid_map", fmt.Sprintf("%d %[1]d 1", os.Geteuid()))
	m.write("/proc/self/gid_map", fmt.Sprintf("%d %[1]d 1", os.Getegid()))
	return flags | unix.CLONE_NEWUSER
}

// open opens a file and sees to its being closed.
func (m *maker) open(path string, flags int) *step {
	return m.opens(m.do(unix.SYS_OPENAT, unix.AT_FDCWD, path, flags|unix.O_CLOEXEC, 0o444))
}

// write writes to a file and closes it: what holds a file that is open for writing cannot be made read-only.
func (m *maker) write(path, text string) {
	f := m.open(path, unix.O_WRONLY)
	m.do(unix.SYS_WRITE, f.at(), text, len(text))
	m.closed[f] = m.do(unix.SYS_CLOSE, f.at())
	m.closed[f].result = ^uintptr(0)
	m.closed[f].at()
}

// files makes the file system.
func (m *maker) files() {
	m.about = "making a file system of its own"
	m.do(unix.SYS_MOUNT, "", "/", "", unix.MS_REC|unix.MS_PRIVATE, 0)
	sources := make([]*step, len(m.places))
	for i, place := range m.places {
		if place.Access != Hidden {
			sources[i] = m.tree(cmp.Or(place.Source, place.Path))
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
		if place.Access == Hidden && isDir(place.Path) {
			m.setAttr(nil, place.Path, unix.MOUNT_ATTR_RDONLY, 0).spare() // another place may stand there too
		}
	}
}

// tree takes a copy of what is mounted at path, which can be put elsewhere.
func (m *maker) tree(path string) *step {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	m.about = "taking " + path
	return m.copyOf(m.find(path), unix.AT_RECURSIVE)
}

// find opens what is at path, in which no link is followed: who may write there could lead it elsewhere meanwhile.
func (m *maker) find(path string) *step {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	return m.opens(m.do(unix.SYS_OPENAT2, unix.AT_FDCWD, path, unsafe.Pointer(how), int(unsafe.Sizeof(*how))).hold(how))
}

func (m *maker) copyOf(found *step, flags int) *step {
	return m.opens(m.do(unix.SYS_OPEN_TREE, found.at(), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|flags))
}

// opens sees to the closing of the descriptor that a step gives.
func (m *maker) opens(s *step) *step {
	s.result = ^uintptr(0)
	s.at()
	m.opened = append(m.opened, s)
	return s
}

// setAttr gives a mount more restrictions: the one at the path, or the tree that a step has taken.
func (m *maker) setAttr(at *step, path string, set uint64, flags int) *step {
	attr := &unix.MountAttr{Attr_set: set}
	var dir any = unix.AT_FDCWD
	if at != nil {
		dir, flags = at.at(), flags|unix.AT_EMPTY_PATH
	}
	return m.do(unix.SYS_MOUNT_SETATTR, dir, path, flags, unsafe.Pointer(attr), int(unsafe.Sizeof(*attr))).hold(attr)
}

// place puts one place where it belongs.
func (m *maker) place(place Place, source *step) {
	m.about = "placing " + place.Path
	if place.Access == Hidden {
		m.hide(place.Path)
		return
	}
	if source == nil {
		return // nothing is there
	}
	set := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if place.Access == Read {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	m.setAttr(source, "", set, unix.AT_RECURSIVE)
	m.reach(place.Path, isDir(cmp.Or(place.Source, place.Path)))
	m.put(source, place.Path)
	if place.Source != "" {
		m.covers = append(m.covers, place.Path)
	}
}

// put mounts a tree at path, in which no link is followed.
func (m *maker) put(tree *step, path string) {
	m.do(unix.SYS_MOVE_MOUNT, tree.at(), "", m.find(path).at(), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// reach makes the place where path is to stand, if something covers what was there.
func (m *maker) reach(path string, dir bool) {
	cover := ""
	for _, c := range m.covers {
		if path != c && within(path, c) && len(c) > len(cover) {
			cover = c
		}
	}
	if cover == "" {
		return
	}
	parts := strings.Split(strings.TrimPrefix(path, cover+"/"), "/")
	for i, part := range parts {
		cover += "/" + part
		if i == len(parts)-1 && !dir {
			m.open(cover, unix.O_RDONLY|unix.O_CREAT).spare()
			return
		}
		m.do(unix.SYS_MKDIRAT, unix.AT_FDCWD, cover, 0o755).spare()
	}
}

// hide puts something on path that cannot be read: on a directory an empty file system of its own, in which inner places can
// still be reached by name, on a file one of no rights.
func (m *maker) hide(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return // nothing is there, or what it leads to is hidden itself
	}
	m.reach(path, info.IsDir())
	if !info.IsDir() {
		m.put(m.inner("/dev/.nothing"), path)
		return
	}
	mode := "0"
	if slices.ContainsFunc(m.places, func(p Place) bool { return p.Access != Hidden && p.Path != path && within(p.Path, path) }) {
		mode = "0111"
	}
	m.put(m.memory("size", "64k", "nr_inodes", "256", "mode", mode), path)
	m.covers = append(m.covers, path)
}

// memory makes a file system in memory, with options by name and value.
func (m *maker) memory(options ...string) *step {
	const setString, create = 1, 6 // FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE of linux/mount.h
	fs := m.opens(m.do(unix.SYS_FSOPEN, "tmpfs", unix.FSOPEN_CLOEXEC))
	for option := range slices.Chunk(options, 2) {
		m.do(unix.SYS_FSCONFIG, fs.at(), setString, option[0], option[1], 0)
	}
	m.do(unix.SYS_FSCONFIG, fs.at(), create, 0, 0, 0)
	return m.opens(m.do(unix.SYS_FSMOUNT, fs.at(), unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV))
}

// inner is tree for what exists only inside, so that nobody can look for it beforehand.
func (m *maker) inner(path string) *step { return m.copyOf(m.find(path), 0) }

// nodes takes the devices that everybody needs.
func (m *maker) nodes() map[string]*step {
	nodes := map[string]*step{}
	for _, path := range devices {
		if s := m.tree(path); s != nil {
			nodes[path] = s
		}
	}
	return nodes
}

// devices makes a /dev with those alone, and terminals and shared memory of its own.
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
	m.do(unix.SYS_MOUNT, "tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m,mode=1777") // as Docker has it
	m.setAttr(nil, "/dev", unix.MOUNT_ATTR_RDONLY, 0)
	m.permit("/dev/pts")
	m.permit("/dev/shm")
	m.covers = append(m.covers, "/dev")
}

// permit lets the ruleset's process write below a directory.
func (m *maker) permit(dir string) {
	if m.ruleset == nil {
		return
	}
	attr := &struct {
		access uint64
		parent uintptr // the kernel takes its low half, which comes first
	}{unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REFER, ^uintptr(0)}
	m.do(unix.SYS_OPENAT, unix.AT_FDCWD, dir, unix.O_PATH|unix.O_CLOEXEC).spare().store = &attr.parent
	m.do(unix.SYS_LANDLOCK_ADD_RULE, int(m.ruleset.Fd()), unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(attr), 0).hold(attr).spare()
	m.do(unix.SYS_CLOSE, &attr.parent).spare()
}

// loopback brings the network's own loopback up.
func (m *maker) loopback() {
	m.about = "bringing the loopback up"
	request := &[40]byte{'l', 'o', 16: unix.IFF_UP}
	s := m.opens(m.do(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	m.do(unix.SYS_IOCTL, s.at(), unix.SIOCSIFFLAGS, unsafe.Pointer(request)).hold(request)
}

// listen makes the proxy's socket.
func (m *maker) listen() {
	m.about = "making the proxy's socket"
	address := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: proxyPort>>8 | proxyPort&0xff<<8, Addr: [4]byte{127, 0, 0, 1}}
	m.socket = m.do(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	m.socket.result = ^uintptr(0)
	m.do(unix.SYS_BIND, m.socket.at(), unsafe.Pointer(address), int(unsafe.Sizeof(*address))).hold(address)
	m.do(unix.SYS_LISTEN, m.socket.at(), 128)
}

// handOver opens the namespaces themselves.
func (m *maker) handOver(flags uintptr) {
	m.about = "handing the namespaces over"
	for _, k := range kinds {
		if flags&uintptr(k.kind) != 0 {
			s := m.do(unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/"+k.name, unix.O_RDONLY|unix.O_CLOEXEC)
			s.result = ^uintptr(0)
			s.at()
			m.handed, m.kinds = append(m.handed, s), append(m.kinds, k.kind)
		}
	}
}

// closeAll closes what the program has opened, also what was to be handed over if it is not.
func (m *maker) closeAll(also bool) {
	if also {
		m.opened = append(m.opened, m.handed...)
		if m.socket != nil {
			m.opened = append(m.opened, m.socket)
		}
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
