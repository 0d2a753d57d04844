// Which process sent a request, and what started that. A process that has left its parents is not recognised.

package access

import (
	"context"
	"os"
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

// Holds reports whether a process descends from the client's parent and is not the client itself.
func (o Owner) Holds(pid int) bool {
	if pid == 0 || o.Parent.PID == 0 {
		return false
	}
	self, above, err := processOf(pid)
	if err != nil || self == o.Client {
		return false
	}
	for above > 1 {
		ancestor, next, err := processOf(above)
		if err != nil {
			return false
		}
		if ancestor == o.Parent {
			return true
		}
		above = next
	}
	return false
}
