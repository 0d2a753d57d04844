// Policies: what a process may do, as plain data.

package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// A Tier is how far a process is confined.
type Tier string

const (
	// None confines nothing: a process may do whatever the daemon's user may.
	None Tier = "NONE"
	// Fast is Landlock and seccomp: for calls that only read, and the fallback where namespaces are
	// unavailable.
	Fast Tier = "FAST"
	// Full is namespaces with their own file system, Landlock and seccomp.
	Full Tier = "FULL"
)

// A Policy is what a process may do. The zero value confines nothing.
//
// Full lets a process read everything that is not Hidden, and write only what is Write. Fast lets
// it read only the Places, the system's trees and a few devices.
type Policy struct {
	Tier Tier // the requested one; empty: None
	// Strict is for calls that only read: in Fast, even times and modes of its own files cannot be
	// changed.
	Strict  bool
	Places  []Place
	Network Network
	// Session identifies the network of the process: processes of the same Session reach each
	// other's servers, whatever their policies are. Empty: the policy has its own network.
	Session string
	// Optional lets the process run unconfined where confinement is unavailable.
	Optional bool
	// UnixSockets lets a process connect to every Unix socket whose file it can see. Without it, a
	// process in Full reaches only the sockets of its own Session, and in Fast none.
	UnixSockets bool
	Limits      Limits
	// Fresh are files that do not exist and that the process may make, in directories that it may
	// not write. If nothing can be mounted on them otherwise, they are made, empty, before the
	// process starts, and removed after its end unless it has opened or changed them.
	Fresh []string
	// Absent are protected paths that do not exist: what a process makes there is renamed after its
	// end.
	Absent []string

	terminal string // the process whose terminal is the only one in its file system; empty: it has none
}

// A Place is a file or a tree with the access to it. The innermost place that holds a path counts.
type Place struct {
	Path   string // absolute, without links
	Access Access
	// Source is what is mounted there; empty: Path itself. Without namespaces the source stays
	// where it is.
	Source string
	// Above is a folder with LayerFolders in it. Everything that is written at Path goes there, and
	// the process sees both; Path itself stays unchanged. Without namespaces nothing is mounted,
	// and the process may write to Upper. Empty: no overlay.
	Above string
}

// SystemTrees are what every confined program may read: programs, libraries, their settings, and
// facts about the machine that do not concern processes.
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

// Network is what can be reached. The zero value is only the call's own loopback.
type Network struct {
	// Allowed and Denied are host patterns for the daemon's own proxy; if Allowed is empty there is
	// no proxy.
	Allowed, Denied []string
}

func (n Network) proxied() bool { return len(n.Allowed) > 0 }

// Limits are resource limits of each process; 0: none. Processes counts all of the user's.
type Limits struct {
	Processes, OpenFiles uint64
	Memory, FileSize     uint64 // bytes
}

// A Denial is something that a process was not allowed to do.
type Denial struct {
	Operation Operation
	Target    string // see Operation
	Count     int    // how often; equal denials are reported once
	// Answer is what the user has answered about a host; empty: the user was not asked.
	Answer Answer
	// MovedTo is the new path of what was made at a protected path; empty: nothing was made.
	MovedTo string
	PutBack bool // the previous entry at that path is restored
	Stays   bool // what was made at a protected path is still there, since it could not be moved
	// Keys are the settings of git that what is at the path now lacks, compared with what was moved;
	// nil: all of it was moved.
	Keys []string
}

// IsAside reports whether something was left at a protected path, and moved aside if that was
// possible.
func (d Denial) IsAside() bool { return d.MovedTo != "" || d.Stays }

// An Operation is what was denied.
type Operation string

// The reported operations.
const (
	Writing    Operation = "write"   // a path: making, changing, moving or removing the entry
	Connecting Operation = "connect" // an address, or the absolute path of a Unix socket
	Socketing  Operation = "socket"  // a family of sockets
)

// An Outlet serves a sandbox's way out to the network: connections that arrive on the listener may
// go where their Client may. It serves until its result is closed, which also closes the listener.
type Outlet func(net.Listener, Clients) io.Closer

// Clients returns the client that a connection to a way out belongs to, by its remote address. In Fast there is one
// way out for each Policy, any process of the machine reaches it, and user, the name that the
// process has given itself, is all that tells trees apart. false: the connection is no client's.
type Clients func(remote, user string) (Client, bool)

// A Client is the tree that uses a way out.
type Client struct {
	Network Network
	Ask     func(context.Context, Host) Answer // see Command.Ask; nil: nothing is asked
	Denied  func(Denial)                       // records a denial of the tree
}

// A Host is one that a process wants to connect to.
type Host struct {
	Name    string // in the form in which hosts are compared
	Port    uint16
	Program string // what the process calls itself, unchecked; empty: not known
}

// String returns the host with its port.
func (h Host) String() string { return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))) }

// An Answer is what a question about a host has come to.
type Answer string

// The answers. The zero Answer means that the user was not asked, and the host stays closed.
const (
	Permitted    Answer = "permitted"
	NotPermitted Answer = "not_permitted"
	Unanswered   Answer = "unanswered" // in time; a later attempt may find it answered
)

// A Confinement is how a process is confined.
type Confinement struct {
	Tier       Tier
	NotCovered []string // what the policy requires and the tier does not enforce here, a sentence each
}

// An UnavailableError means that a process was not started because it could not be confined.
type UnavailableError struct{ Reasons []string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("processes cannot be confined on this machine (%s); run the daemon where Landlock or user namespaces are allowed, "+
		`or set "sandbox": {"required": false} to run them unconfined`, strings.Join(e.Reasons, "; "))
}

// The folders in Place.Above.
const (
	upperFolder = "upper" // what was written
	workFolder  = "work"  // the kernel's own
	viewFolder  = "view"  // empty; confined processes see the overlay here
)

// LayerFolders returns the folders that must exist in Place.Above.
func LayerFolders() []string { return []string{upperFolder, workFolder, viewFolder} }

// Upper returns the folder that receives what is written at a place with Above.
func (p Place) Upper() string { return filepath.Join(p.Above, upperFolder) }

// source returns the path that is mounted at the place.
func (p Place) source() string { return p.folder(viewFolder) }

// elsewhere returns what a place is without namespaces: its source where it is, or the folder that
// may be written.
func (p Place) elsewhere() string { return p.folder(upperFolder) }

// folder returns the folder in Above, or what is at a place without one.
func (p Place) folder(name string) string {
	if p.Above != "" {
		return filepath.Join(p.Above, name)
	}
	return cmp.Or(p.Source, p.Path)
}

// replaced returns places that hide the paths where other things should be mounted: nothing can be
// mounted here, and the process must not see what is there.
func replaced(places []Place) (hidden []Place) {
	for _, place := range places {
		if place.Source != "" && place.Source != place.Path {
			hidden = append(hidden, Place{Path: place.Path, Access: Hidden})
		}
	}
	return hidden
}

// A Listening is a TCP port on which a process listens.
type Listening struct {
	Port    int
	Program string // the command line of the process as it states it, at most 80 characters
}
