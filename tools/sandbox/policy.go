package sandbox

// What a process may do, as plain data. Where it comes from is not known here.

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"path/filepath"
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
	// Session names the network that the process is in: processes of the same Session reach each other's servers, whatever else
	// their policies are. Empty: the policy has a network of its own.
	Session string
	// Optional lets the process run unconfined where nothing can confine it.
	Optional bool
	// UnixSockets lets a process connect to every Unix socket whose file it can see. In Full it reaches those of its own Session
	// without that; in Fast there are none without.
	UnixSockets bool
	Limits      Limits
	// Fresh are files that do not exist and that the process may make, in directories that it may not write. Where nothing can
	// be mounted on them otherwise they are made, empty, before the process starts, and removed when it has ended unless it
	// has opened or changed them.
	Fresh []string
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
	// Above is a folder, with LayerFolders in it, that gets what is written at Path: both are seen there, and what Path itself
	// holds stays as it is. Without namespaces nothing stands there; what may be written is Upper. Empty: there is no such folder.
	Above string
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
	Target    string // see Operation
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
	Connecting Operation = "connect" // an address, or the absolute path of a Unix socket
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

// The folders in the one that Place.Above names.
const (
	upperFolder = "upper" // what was written
	workFolder  = "work"  // the kernel's own
	viewFolder  = "view"  // empty; both are seen there by what is confined
)

// LayerFolders returns the folders that must be in the one that Place.Above names.
func LayerFolders() []string { return []string{upperFolder, workFolder, viewFolder} }

// Upper returns the folder that gets what is written at a place with Above.
func (p Place) Upper() string { return filepath.Join(p.Above, upperFolder) }

// source is where that is taken from which stands at the place.
func (p Place) source() string {
	if p.Above != "" {
		return filepath.Join(p.Above, viewFolder)
	}
	return cmp.Or(p.Source, p.Path)
}

// elsewhere is what stands at a place without namespaces: its source where it is, or the folder that may be written.
func (p Place) elsewhere() string {
	if p.Above != "" {
		return p.Upper()
	}
	return cmp.Or(p.Source, p.Path)
}

// replaced hides what stands where others should: nothing can be put in its place here, and it is not the process's to see.
func replaced(places []Place) (hidden []Place) {
	for _, place := range places {
		if place.Source != "" && place.Source != place.Path {
			hidden = append(hidden, Place{Path: place.Path, Access: Hidden})
		}
	}
	return hidden
}
