// The watcher as it waits: a program of a few instructions that becomes the daemon's own program when
// the daemon has died. It costs no start of that program, and hardly any memory.

package sandbox

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// waitingProgram is an executable file that reads descriptor 3. When that ends, it executes
// descriptor 4 with its own arguments and environment. When there is a byte, it ends.
var waitingProgram = sync.OnceValues(func() (*os.File, error) { return inMemory("watcher", executable(waitCode)) })

// startSmallWatcher starts waitingProgram. It is watching as soon as it has started.
func (r *Runner) startSmallWatcher(far *os.File) (*os.Process, error) {
	program, err := waitingProgram()
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0) // also if its file was replaced
	if err != nil {
		return nil, err
	}
	self := os.NewFile(uintptr(fd), "self")
	defer self.Close()
	return r.spawnWatcher("/proc/self/fd/5", far, self, program)
}
