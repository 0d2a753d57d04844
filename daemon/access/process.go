// Which process sent a request, and what started that. A process that has left its parents is not recognised.

package access

import (
	"context"
	"os"
	"slices"
)

// A Process identifies a process. Its number alone is not enough, since numbers are reused.
type Process struct {
	PID   int // 0: not known, for instance for a client over TCP
	Start uint64
}

// An Owner is the main client of a session, and the process that started it.
type Owner struct{ Client, Parent Process }

// PIDOf returns the process that sent a request; 0: it is not known.
func PIDOf(ctx context.Context) int {
	who, _ := authInfo(ctx).(socketInfo)
	return who.pid
}

// OwnerOf returns the client that sent a request, with its parent. The parent is left empty if it adopts orphans or started the
// daemon: other programs descend from it too.
func OwnerOf(ctx context.Context) (o Owner) {
	pid := PIDOf(ctx)
	if pid == 0 {
		return o
	}
	client, above, err := processOf(pid)
	if err != nil {
		return o
	}
	o.Client = client
	if parent, _, err := processOf(above); err == nil && above > 1 && above != os.Getppid() {
		o.Parent = parent
	}
	return o
}

// An Ancestry is a process and those that it descends from, itself first. An empty one is of a process that is not known.
type Ancestry []Process

// AncestryOf returns the ancestry of a process as it is now, without process 1.
func AncestryOf(pid int) (a Ancestry) {
	for pid > 1 {
		self, above, err := processOf(pid)
		if err != nil {
			return a
		}
		a, pid = append(a, self), above
	}
	return a
}

// PID returns the process's number; 0: it is not known.
func (a Ancestry) PID() int {
	if len(a) == 0 {
		return 0
	}
	return a[0].PID
}

// Holds reports whether a process descends from the client's parent and is not the client itself.
func (o Owner) Holds(a Ancestry) bool {
	return o.Parent.PID != 0 && len(a) > 0 && a[0] != o.Client && slices.Contains(a[1:], o.Parent)
}
