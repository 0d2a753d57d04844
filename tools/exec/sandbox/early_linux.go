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
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// manyEarly is how many shells wait at most, in all sessions together.
	manyEarly = 8
	// earlyLife is how long one waits at most.
	earlyLife = time.Minute
	// quietFor is how long nothing must have been started before shells are started beforehand: their
	// start is to take nothing from calls. The number is our own.
	quietFor = 5 * time.Millisecond
	// maxEarly is the longest script, in bytes. The blank is so long, and so is the argument.
	maxEarly = 4096
	// maxEarlyPrelude is less than the capacity of a pipe, in bytes.
	maxEarlyPrelude = 60 << 10
	// leastAvailable is the share of the memory that must be available, as 1/n.
	leastAvailable = 8
)

// blank is the argument of a shell that waits. It is never run; if it were, it would fail.
var blank = "exit 125 #" + strings.Repeat(" ", maxEarly)

// earlyShells are those of a Runner.
type earlyShells struct {
	mu      sync.Mutex
	waiting []*earlyShell // the oldest first
	wanted  []Command     // the newest last
	timer   *time.Timer   // starts what is wanted; nil: nothing was
	works   sync.Map      // programs, each with whether a script can be written into its memory
	closed  bool
	running sync.WaitGroup
}

// An earlyShell is one that waits.
type earlyShell struct {
	process   *Process
	program   identity // bash
	directory identity
	since     time.Time
	memory    *os.File // of the process
	at        int64    // where the blank is in it
	prelude   *os.File // the writing end
}

// Prepare starts a shell beforehand for a command that is as c in everything but its script, once
// nothing is started for a while. c.Early must be set.
func (r *Runner) Prepare(c Command) {
	e := &r.early
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || c.Early == nil || len(c.Policy.Fresh) > 0 || c.Stderr == nil || c.Input != nil || c.Stdin != nil {
		return
	}
	c.Args, c.Env, c.Extra = c.Args[:len(c.Args)-1:len(c.Args)-1], c.Early.Env, nil
	e.wanted = slices.DeleteFunc(e.wanted, func(o Command) bool { return alike(o, c) })
	if len(e.wanted) == manyEarly {
		e.wanted = e.wanted[1:]
	}
	e.wanted = append(e.wanted, c)
	if e.timer == nil {
		e.timer = time.AfterFunc(quietFor, r.startEarly)
	} else {
		e.timer.Reset(quietFor)
	}
}

// alike reports whether one shell can serve both commands, whose Args lack the script.
func alike(a, b Command) bool {
	return a.Path == b.Path && a.Dir == b.Dir && slices.Equal(a.Args, b.Args) && slices.Equal(a.Env, b.Env) && reflect.DeepEqual(a.Policy, b.Policy)
}

// startEarly starts the shells that are wanted, and ends those that have waited for too long. No call
// waits for it.
func (r *Runner) startEarly() {
	e := &r.early
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.running.Add(1)
	defer e.running.Done()
	scarce := memoryIsScarce()
	r.keepEarly(func(s *earlyShell) bool { return !scarce && time.Since(s.since) < earlyLife })
	wanted := e.wanted
	e.wanted = nil
	for _, c := range wanted {
		if scarce || e.serves(c) {
			continue
		}
		e.mu.Unlock()
		s, err := r.newEarly(c)
		e.mu.Lock()
		if err != nil {
			continue // the next call starts its own, and reports the error
		}
		if e.waiting = append(e.waiting, s); e.closed {
			r.keepEarly(func(*earlyShell) bool { return false })
		} else if len(e.waiting) > manyEarly {
			oldest := e.waiting[0]
			r.keepEarly(func(s *earlyShell) bool { return s != oldest })
		}
	}
	if len(e.waiting) > 0 && len(e.wanted) == 0 {
		e.timer.Reset(earlyLife - time.Since(e.waiting[0].since))
	}
}

// serves reports whether a shell waits for c. mu is held.
func (e *earlyShells) serves(c Command) bool {
	return slices.ContainsFunc(e.waiting, func(s *earlyShell) bool { return alike(s.process.command, c) })
}

// keepEarly ends the waiting shells that are not to be kept, in other goroutines. mu is held.
func (r *Runner) keepEarly(keeps func(*earlyShell) bool) {
	e := &r.early
	e.waiting = slices.DeleteFunc(e.waiting, func(s *earlyShell) bool {
		if keeps(s) {
			return false
		}
		e.running.Go(s.discard)
		return true
	})
}

// newEarly starts a shell that waits.
func (r *Runner) newEarly(c Command) (*earlyShell, error) {
	program, err := identityAt(c.Path)
	if err != nil {
		return nil, err
	}
	works, tried := r.early.works.Load(program)
	if !tried {
		works = r.tryEarly(c, program)
		r.early.works.Store(program, works)
	}
	if works != true {
		return nil, unix.ENOTSUP
	}
	s, err := r.launchEarly(c, program)
	if errors.Is(err, unix.ETIMEDOUT) { // its memory cannot be seen
		r.early.works.Store(program, false)
	}
	return s, err
}

// tryEarly reports whether this bash runs a script that was written into its memory.
func (r *Runner) tryEarly(c Command, program identity) bool {
	const code = 7
	c = Command{ID: c.ID, Path: c.Path, Args: c.Args, Dir: "/"}
	s, err := r.launchEarly(c, program)
	if err != nil {
		return false
	}
	c.Stdout, c.Stderr, c.Early = io.Discard, io.Discard, &Early{Script: fmt.Sprintf("exit %d", code), Prelude: "unset BASH_ENV\n"}
	if !r.adopt(s, c) {
		return false
	}
	exit := s.process.Wait()
	_ = s.process.report.Close()
	return exit.Code == code
}

func (r *Runner) launchEarly(c Command, program identity) (*earlyShell, error) {
	directory, err := identityAt(c.Dir)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	report, err := NewReport()
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	plain := c
	c.Args, c.Extra = append(c.Args, blank), []*os.File{read, report}
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], "BASH_ENV=/dev/fd/3")
	c.Stdout, c.Stderr, c.Keep, c.Ask, c.ended, c.after, c.before = io.Discard, io.Discard, nil, nil, nil, nil, nil
	c.ID = "early"
	p := r.newProcess(c)
	if err = r.enter(p); err == nil {
		err = p.start(nil)
		r.leave(p) // it belongs to no call
		r.starts.Done()
	}
	if err != nil {
		_, _ = write.Close(), report.Close()
		return nil, err
	}
	p.report, p.command = report, plain
	s := &earlyShell{process: p, program: program, directory: directory, since: time.Now(), prelude: write}
	if err = s.find(len(strings.Join(c.Args[:len(c.Args)-1], " ")) + 1); err == nil && !p.confine.isPlain() {
		err = unix.ENOTSUP
	}
	if err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// find waits until the kernel has made bash of the process, and finds the blank, which is that far
// behind the first argument. Before that, the memory may still be the daemon's own, and the kernel
// still counts arguments by their ends.
func (s *earlyShell) find(behind int) (err error) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		start, complete, err := s.arguments()
		if err != nil {
			return err
		}
		if s.at = start + int64(behind); complete && s.open() {
			return nil
		}
		awaitAny([]member{{pid: s.process.child.Pid}}, time.Millisecond) // nothing tells when, but its end
	}
	return unix.ETIMEDOUT
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
func (s *earlyShell) open() bool {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.process.child.Pid), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	there := make([]byte, len(blank))
	if _, err = memory.ReadAt(there, s.at); err != nil || string(there) != blank {
		_ = memory.Close()
		return false
	}
	s.memory = memory
	return true
}

// takeEarly returns a shell that was started beforehand and runs c from now on; nil: there is none.
func (r *Runner) takeEarly(c Command) *Process {
	if c.Early == nil || c.Stderr == nil || len(c.Early.Script) > maxEarly || len(c.Early.Prelude) > maxEarlyPrelude {
		return nil
	}
	like := c
	like.Args, like.Env = c.Args[:len(c.Args)-1], c.Early.Env
	r.early.mu.Lock()
	at := slices.IndexFunc(r.early.waiting, func(s *earlyShell) bool { return alike(s.process.command, like) })
	if at < 0 {
		r.early.mu.Unlock()
		return nil
	}
	s := r.early.waiting[at]
	r.early.waiting = slices.Delete(r.early.waiting, at, at+1)
	r.early.running.Add(1)
	r.early.mu.Unlock()
	defer r.early.running.Done()
	if !s.isCurrent() || !r.adopt(s, c) {
		s.discard()
		return nil
	}
	return s.process
}

// isCurrent looks again at what a start looks at: the program, the directory, and each place.
func (s *earlyShell) isCurrent() bool {
	p := s.process
	program, err := identityAt(p.command.Path)
	if err != nil || program != s.program || time.Since(s.since) >= earlyLife {
		return false
	}
	if directory, err := identityAt(p.command.Dir); err != nil || directory != s.directory {
		return false
	}
	h := &p.runner.host
	t, err := h.tierFor(p.command.Policy)
	if err != nil || t == None {
		return err == nil && p.confine.instance == nil
	}
	now, err := h.instances.enter(p.command.Policy, t)
	if err != nil {
		return false
	}
	defer h.instances.leave(now)
	return now == p.confine.instance
}

// adopt makes the process that of c and lets it go on. It reports whether it has.
func (r *Runner) adopt(s *earlyShell, c Command) bool {
	p := s.process
	like := p.command
	p.since, p.command = ticks(), c
	p.command.Args, p.command.Extra, p.command.Env = append(like.Args[:len(like.Args):len(like.Args)], c.Early.Script), nil, like.Env
	p.confine.watch = c.Policy.Absent
	for i, to := range []io.Writer{c.Stdout, c.Stderr} {
		p.outputs[i].to = to
	}
	if p.confine.supervisor != nil {
		p.confine.supervisor.handed.Store(&p.command.before)
	}
	if r.enter(p) != nil {
		p.command = like
		return false
	}
	defer r.starts.Done()
	text := make([]byte, len(blank)) // the rest of the blank goes too
	copy(text, c.Early.Script)
	_, err := s.memory.WriteAt(text, s.at)
	if err == nil {
		_, err = s.prelude.WriteString(c.Early.Prelude)
	}
	if err != nil {
		r.leave(p)
		p.command = like
		return false
	}
	s.close()
	p.attend()
	return true
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
	p := s.process
	_ = p.child.Kill()
	s.close()
	_ = p.report.Close()
	p.command.Keep, p.confine.watch = nil, nil
	p.command.ended, p.command.after = nil, nil
	for _, o := range p.outputs {
		o.to = io.Discard
	}
	p.attend()
	<-p.done
}

// closeEarly ends all shells that wait. Nothing is being started.
func (r *Runner) closeEarly() {
	e := &r.early
	e.mu.Lock()
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
	r.keepEarly(func(*earlyShell) bool { return false })
	e.mu.Unlock()
	e.running.Wait()
}

// identityAt returns which file is at path.
func identityAt(path string) (identity, error) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return identity{}, err
	}
	return identityOf(&info), nil
}

// memoryIsScarce reports whether the machine has little memory left.
func memoryIsScarce() bool {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return true
	}
	kib := func(name string) int {
		_, rest, _ := strings.Cut(string(text), name+":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		n, _ := strconv.Atoi(fields[0]) // 0: scarce
		return n
	}
	return kib("MemAvailable") < kib("MemTotal")/leastAvailable
}
