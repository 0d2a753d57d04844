// The doors that are not as they should be, and why. A row that is not needed is as wrong as one that is missing.

package escape_test

import (
	"slices"
	"strings"
)

// A row is what is said of some doors.
type row struct {
	doors []string
	ways  []string
	shut  bool   // they should be open, and are not
	root  bool   // as root alone
	where string // on which machines; empty: on all
	why   string
}

// names reports whether the row is about a door.
func (o row) names(door string) bool { return slices.Contains(o.doors, door) }

// speaksOf reports whether the row is about what a run may see.
func (o row) speaksOf(r run) bool {
	return slices.Contains(o.ways, r.way.name) && (!o.root || r.uid == 0)
}

// tier is how the row says for whom it holds.
func (o row) tier() string {
	said := strings.Join(o.ways, ", ")
	if o.root {
		said += " as root"
	}
	if o.where != "" {
		said += ", " + o.where
	}
	return said
}

const (
	permitted = "Landlock does not know this change, and builds need the system call for their own files."
	inside    = "Landlock knows no exceptions in a tree that may be written. Each result says so."
	uncounted = "The kernel does not count root's processes. Run the daemon as an ordinary user."
	names     = "A second name of a file is the file itself. One is made only outside of the sandbox: by a package manager that links from its store, or by a program that can write to both places."
)

var table = []row{
	{doors: []string{"fill the temporary directory"}, ways: []string{"full", "fast", "fallback"}, why: "The size of a file is limited, not that of a directory. A quota or a file system of its own limits that."},
	{doors: []string{"fill the root"}, ways: []string{"full", "fallback"}, why: "The same."},
	{doors: []string{"fill /dev/shm"}, ways: []string{"full"}, why: "It holds 64 MiB, as Docker's, and half of it counts as filled."},
	{doors: []string{"start more processes than any should", "start more threads than any should"}, ways: []string{"fast", "fallback"}, root: true, why: uncounted},
	{doors: []string{"start more processes than any should", "start more threads than any should"}, ways: []string{"full"}, root: true, where: "before Linux 6.14", why: uncounted + " Newer kernels let the numbers of a namespace be limited, which leaves up to 300 more than the limit says."},
	{doors: []string{"take more memory than any should that is shared"}, ways: []string{"full", "fast", "fallback"}, why: "The kernel's limit for a process counts what is its own alone. A cgroup around the daemon limits all of it."},
	{doors: []string{"personality without address randomisation"}, ways: []string{"full", "fast", "fallback"}, why: "Sanitizers and debuggers ask for it. It weakens nobody but the process itself."},
	{doors: []string{"read a hidden file by a hard link planted in the root"}, ways: []string{"full"}, why: names},
	{doors: []string{"read a hidden file by a hard link planted in the root"}, ways: []string{"fast", "fallback"}, where: "if the directory of the link holds nothing else that is hidden", why: names},
	{doors: []string{"write through a hard link planted in the root", "chmod through a hard link planted in the root", "write to a file of a cache by a hard link planted in the root"}, ways: []string{"full", "fallback"}, why: names},
	{doors: []string{"write to a file that a process left running passes"}, ways: []string{"full"}, why: "Calls of a session reach each other's sockets, and who has opened a file may pass it on. What an earlier call was allowed lasts as long as its processes."},
	{doors: []string{"hold a lock on a file outside"}, ways: []string{"full", "fallback"}, why: "Who may read a file may lock it. Others who lock it wait until the call has ended."},
	{doors: []string{"read from a named pipe of others"}, ways: []string{"full", "fallback"}, why: "A pipe is read as a file is, and what is read is gone for others. Nothing can be written into one."},
	{doors: []string{"open a device that lies outside of /dev"}, ways: []string{"fallback"}, where: "where one was made", why: "For reading: Landlock tells files apart by where they are."},
	{doors: []string{
		"chmod outside", "fchmod outside", "chmod outside through /proc/self/fd of an O_PATH descriptor", "chown outside", "lchown outside", "fchown outside",
		"chmod a file of a cache", "fchownat outside with AT_EMPTY_PATH", "utimensat outside", "futimens outside", "utimes outside", "touch outside to the present",
	}, ways: []string{"fallback"}, why: permitted},
	{doors: []string{"fchmodat2 outside"}, ways: []string{"fallback"}, where: "from Linux 6.6 on", why: permitted},
	{doors: []string{"utime outside", "futimesat outside"}, ways: []string{"fallback"}, where: "on amd64", why: permitted},
	{doors: []string{
		"unlink .gitmodules", "exchange a prepared directory with .idea", "rename .git away", "rename .git/hooks away",
	}, ways: []string{"fallback"}, why: inside},
	{doors: []string{"read /proc/PID/cmdline of a process outside", "list /proc/PID/fd of a process outside"}, ways: []string{"fallback"}, why: "Without namespaces there is one /proc for all. What the processes hold in memory, in their environment and in their files stays shut."},
	{doors: []string{"read /proc/kpageflags"}, ways: []string{"fallback"}, root: true, where: "if the kernel has it", why: "Landlock cannot take one file out of /proc, where files come and go. It shows flags of memory pages, and nothing of what is in them."},
	{doors: []string{"trace a child of its own", "read the memory of a child of its own"}, ways: []string{"fast", "fallback"}, shut: true, why: "Without a process namespace others' processes are in sight, which may be the user's own. Sanitizers that look for leaks, strace and gdb need full."},
	{doors: []string{"connect to a Unix socket of its own"}, ways: []string{"fallback"}, shut: true, why: "Nobody watches there where a connection leads, and a path may lead to the socket of any service."},
	{doors: []string{"read /proc/self/status"}, ways: []string{"fast"}, shut: true, why: "Landlock's rules are made before the process has a number, and /proc as a whole would show those of all processes. Commands that name it or are of no use without it, such as ps, get full."},
}
