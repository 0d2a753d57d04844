// Trees on macOS: a tree is its process group. Best effort, untested; a process that leaves the
// group is lost.

package sandbox

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const rssUnit = 1

// inheritedRSS returns 0: children inherit no peak memory.
func inheritedRSS() int64 { return 0 }

type member struct{ pid int }

func (m member) name() string                   { return "process group" }
func (m member) signal(sig syscall.Signal)      { _ = syscall.Kill(-m.pid, sig) }
func (r *Runner) reap()                         {}
func marked(string) []member                    { return nil }
func awaitAny([]member, time.Duration)          {}
func grow(uintptr)                              {}
func lastPID() int                              { return 0 }
func ticks() uint64                             { return 0 }
func becomeSubreaper() (session int, err error) { return 0, nil }
func inMemory(string, []byte) (*os.File, error) { return nil, errors.ErrUnsupported }

func roomInMemory(string, int64) (*os.File, error) { return nil, errors.ErrUnsupported }

// awaitExit returns when the child pid is dead, without collecting it. How it has ended is unknown.
func awaitExit(pid int) (exit Exit, ok bool) {
	queue, err := unix.Kqueue()
	if err != nil {
		return Exit{}, false
	}
	defer unix.Close(queue)
	var event unix.Kevent_t
	unix.SetKevent(&event, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event.Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(queue, []unix.Kevent_t{event}, make([]unix.Kevent_t, 1), nil)
		if err != unix.EINTR {
			return Exit{}, false
		}
	}
}

// members returns the group while it has any members.
func (p *Process) members() []member {
	if syscall.Kill(-p.child.Pid, 0) != nil {
		return nil
	}
	return []member{{p.child.Pid}}
}

// finishMain ends the tree after the main process has ended by itself: no process continues here.
func (p *Process) finishMain() {
	p.finish(patience, telling{})
	p.conclude()
}

// catchUp does nothing: a signal to a group reaches all of it.
func (told telling) catchUp([]member) {}
