package sandbox

// What a process may do, as plain data. Where it comes from is not known here.

import (
	"fmt"
	"io"
	"net"
	"strings"
)

// A Tier says how far a process is confined.
type Tier string

const (
	// None confines nothing: a process may do what the daemon's user may.
	None Tier = "NONE"
	// Fast is Landlock and seccomp: for what only reads, and the fallback where namespaces are not to be had.
	Fast Tier = "FAST"
	// Full is namespaces with a file system of their own, Landlock and seccomp.
	Full Tier = "FULL"
)

// A Policy says what a process may do. The zero value confines nothing.
//
// Full lets everything be read that is not Hidden, and nothing written that is not Write. Fast lets nothing be read but
// the Places, the system's trees and a few devices.
type Policy struct {
	Tier Tier // the one that is wanted; empty: None
	// Strict is for what only reads: in Fast not even times and modes of its own files can be changed.
	Strict  bool
	Places  []Place
	Network Network
	// Optional lets the process run unconfined where nothing can confine it.
	Optional bool
	// UnixSockets lets sockets of the Unix family be made: every socket file that the process can see is within reach then.
	UnixSockets bool
	Limits      Limits
	// Absent are protected paths at which nothing stands: what a call brings into being there is taken away when the
	// process has ended.
	Absent []string
}

// A Place is a file or a tree and what may be done with it. Of several that hold a path the innermost counts.
type Place struct {
	Path   string // absolute, without links
	Access Access
	// Source is what stands there instead; empty: Path itself. Without namespaces it stays where it is.
	Source string
}

// SystemTrees are what every confined program may read: programs, libraries, their settings, and facts about the machine
// that name no process.
var SystemTrees = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/nix/store", "/gnu/store", "/run/current-system",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems",
	"/proc/cmdline", "/proc/swaps", "/proc/partitions", "/proc/diskstats", "/proc/devices", "/proc/modules", "/proc/vmstat", "/proc/cgroups",
	"/proc/pressure", "/proc/sys", "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup",
}

// Access is what may be done at a place.
type Access uint8

// The kinds of access.
const (
	Hidden Access = iota
	Read
	Write
)

// Network is what can be reached. The zero value is nothing but the call's own loopback.
type Network struct {
	// Allowed and Denied are host patterns for the daemon's own proxy; without Allowed there is no proxy.
	Allowed, Denied []string
}

func (n Network) proxied() bool { return len(n.Allowed) > 0 }

// Limits are resource limits of each process; 0: none. Processes counts all of the user's.
type Limits struct {
	Processes, OpenFiles uint64
	Memory, FileSize     uint64 // bytes
}

// A Denial is something that a process was not let do.
type Denial struct {
	Operation Operation
	Target    string // a path, an address or the name of a family of sockets
	Count     int    // how often; the same is told once
	// MovedTo is where that stands now which was made at a protected path; empty: nothing was made.
	MovedTo string
	PutBack bool // what stood at that path before is there again
	Stays   bool // what was made at a protected path is still there, since it could not be moved
}

// An Operation is what was denied.
type Operation string

// The operations that are told.
const (
	Writing    Operation = "write"   // a path: making, changing, moving or removing what stands there
	Connecting Operation = "connect" // an address
	Socketing  Operation = "socket"  // a family of sockets
)

// An Outlet serves a sandbox's way out to the network: connections that come in on the listener may go where the Network
// says. It serves until what it gives is closed, and closes the listener.
type Outlet func(Network, net.Listener) io.Closer

// A Confinement says how a process is confined.
type Confinement struct {
	Tier       Tier
	NotCovered []string // what the policy asks for and the tier does not do here, a sentence each
}

// An UnavailableError says that a process was not started because it could not be confined.
type UnavailableError struct{ Reasons []string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("processes cannot be confined on this machine (%s); run the daemon where Landlock or user namespaces are allowed, "+
		`or set "sandbox": {"required": false} to run them unconfined`, strings.Join(e.Reasons, "; "))
}

// within says that path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}
