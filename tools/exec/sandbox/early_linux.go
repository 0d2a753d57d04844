// Shells that are started before they are needed. Such a bash has its whole start behind it and
// waits while it reads BASH_ENV, a pipe. Its argument -c is a blank, which it has not read yet: the
// script is written there, in its memory, and then the pipe is filled. So it is the bash of
// `bash -c SCRIPT` in everything, and it is confined as any other, since it was started as any other.
//
// It is used once, and only for a command with the same program, directory, environment and policy,
// after everything was looked at again that a start looks at. Until then it belongs to no tree.

package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// soonEarly is how often it is looked at once whether the kernel has put the arguments of a program
	// in place, which takes some 50 us, before each look waits for a millisecond.
	soonEarly = 20
	// maxEarly is the longest script, in bytes. The blank is so long, and so is the argument.
	maxEarly = 4096
	// maxEarlyPrelude is less than the capacity of a pipe, in bytes.
	maxEarlyPrelude = 60 << 10
)

// blank is the argument of a shell that waits. It is never run; if it were, it would fail.
var blank = "exit 125 #" + strings.Repeat(" ", maxEarly)

// An earlyShell is one that waits.
type earlyShell struct {
	like    Command       // what it serves, without a script
	program identity      // bash
	due     *time.Timer   // ends it
	ready   chan struct{} // closed once it has started, or err is set; what follows is set then
	err     error

	process *Process
	memory  *os.File // of the process
	at      int64    // where the blank is in it
	prelude *os.File // the writing end
}

// tryEarly reports whether this bash, confined as c, runs a script that was written into its memory.
// The error is why that was not found out.
func (r *Runner) tryEarly(c Command, program identity) (works bool, err error) {
	const code = 7
	s := &earlyShell{like: Command{ID: c.ID, Path: c.Path, Args: c.Args, Dir: c.Dir, Policy: c.Policy}, program: program, ready: make(chan struct{})}
	close(s.ready)
	if s.err = r.launchEarly(s); s.err != nil {
		return false, s.err
	}
	c = s.like
	c.Stdout, c.Stderr, c.Early = io.Discard, io.Discard, &Early{Script: fmt.Sprintf("exit %d", code), Prelude: "unset BASH_ENV\n"}
	if !r.adopt(s, c) {
		s.discard()
		return false, ErrClosed
	}
	exit := s.process.Wait()
	_ = s.process.report.Close()
	return exit.Code == code, nil
}

// launchEarly starts the shell. After an error nothing of it is left.
func (r *Runner) launchEarly(s *earlyShell) (err error) {
	if r.host.instances.makesPoints(s.like.Policy) {
		return unix.ENOTSUP
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	report, err := NewReport()
	if err != nil {
		_ = write.Close()
		return err
	}
	c := s.like
	c.Args, c.Extra = append(c.Args, blank), []*os.File{read, report}
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], "BASH_ENV=/dev/fd/3")
	c.Stdout, c.Stderr = io.Discard, io.Discard
	p := r.newProcess(c)
	if err = r.enter(p); err == nil {
		err = p.start(nil)
		r.leave(p) // it belongs to no call
		r.starts.Done()
	}
	if err != nil {
		_, _ = write.Close(), report.Close()
		return err
	}
	p.report, s.process, s.prelude = report, p, write
	if err = s.find(len(strings.Join(c.Args[:len(c.Args)-1], " ")) + 1); err == nil && !p.confine.isPlain() {
		err = unix.ENOTSUP
	}
	if err != nil {
		s.end()
	}
	return err
}

// find waits until the kernel has made bash of the process, and finds the blank, which is that far
// behind the first argument. Before that, the memory may still be the daemon's own, and the kernel
// still counts arguments by their ends.
func (s *earlyShell) find(behind int) (err error) {
	var last error // why the memory could not be read
	end := time.Now().Add(time.Second)
	for tries := 0; time.Now().Before(end); tries++ {
		start, complete, err := s.arguments()
		if err != nil {
			return err
		}
		s.at = start + int64(behind)
		there, err := s.open()
		if there && complete || errors.Is(err, fs.ErrNotExist) { // it has ended
			return err
		}
		last = cmp.Or(err, error(unix.ETIMEDOUT))
		if tries < soonEarly { // it cannot be waited for
			runtime.Gosched()
		} else {
			awaitAny([]member{{pid: s.process.child.Pid}}, time.Millisecond)
		}
	}
	return last
}

// arguments returns where the arguments of the process are in its memory. complete: the kernel has
// put all of it in place, the environment too.
func (s *earlyShell) arguments() (start int64, complete bool, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.child.Pid))
	if err != nil {
		return 0, false, err
	}
	const argStart, envEnd = 48 - 3, 51 - 3 // their places in proc_pid_stat(5), from the third field on
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= envEnd {
		return 0, false, unix.ENOTSUP
	}
	start, err = strconv.ParseInt(fields[argStart], 10, 64)
	return start, fields[envEnd] != "0", err
}

// open opens the memory, and reports whether the blank is there.
func (s *earlyShell) open() (there bool, err error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.process.child.Pid), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	found := make([]byte, len(blank))
	if _, err = memory.ReadAt(found, s.at); err != nil || string(found) != blank {
		_ = memory.Close()
		return false, nil
	}
	if s.memory != nil {
		_ = s.memory.Close()
	}
	s.memory = memory
	return true, nil
}

// isCurrent looks again at what a start looks at: the program, the directory, and each place.
func (s *earlyShell) isCurrent() bool {
	p := s.process
	program, err := identityAt(s.like.Path)
	if err != nil || program != s.program {
		return false
	}
	if !s.isInPlace() {
		return false
	}
	h := &p.runner.host
	t, err := h.tierFor(s.like.Policy)
	if err != nil || t == None {
		return err == nil && p.confine.instance == nil
	}
	now, err := h.instances.enter(s.like.Policy, t)
	if err != nil {
		return false
	}
	defer h.instances.leave(now)
	return now == p.confine.instance
}

// isInPlace reports whether the shell is in the directory that its path names now, as the shell sees it.
func (s *earlyShell) isInPlace() bool {
	process := fmt.Sprintf("/proc/%d/", s.process.child.Pid)
	is, err := identityAt(process + "cwd/.")
	if err != nil {
		return false
	}
	named, err := identityAt(process + "root" + s.like.Dir)
	return err == nil && named == is
}

// goOn writes what the shell reads first, which it does to the end before it runs any of it, and the
// script into its memory. If the daemon dies in between, the shell runs the blank.
func (s *earlyShell) goOn(e *Early) error {
	text := make([]byte, len(blank)) // the rest of the blank goes too
	copy(text, e.Script)
	_, err := s.prelude.WriteString(e.Prelude)
	if err == nil {
		_, err = s.memory.WriteAt(text, s.at)
	}
	if err == nil {
		s.close()
	}
	return err
}

// close closes what only a shell that waits needs. Without its prelude it goes on.
func (s *earlyShell) close() {
	_ = s.prelude.Close()
	if s.memory != nil {
		_ = s.memory.Close()
	}
}

// discard ends a shell that is not used.
func (s *earlyShell) discard() {
	if <-s.ready; s.err == nil {
		s.end()
	}
}

func (s *earlyShell) end() {
	p := s.process
	_ = p.child.Kill()
	s.close()
	_ = p.report.Close()
	p.command, p.confine.watch = s.like, nil
	for _, o := range p.outputs {
		o.to = io.Discard
	}
	p.attend()
	<-p.done
}

// identityAt returns which file is at path.
func identityAt(path string) (identity, error) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return identity{}, err
	}
	return identityOf(&info), nil
}
