// One started command, from its pipes to its report. How its tree is brought to an end is settle.go's, who belongs to
// the tree is tree_linux.go's.

package sandbox

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// manyRefusals is how often a host is refused to a tree before Refused says so. Ours: programs that give up have done so by then,
// and those that do not would go on until their time limit.
const manyRefusals = 10

// manyDenials is how many different denials of one process are noted.
const manyDenials = 50

const (
	// grace is how long a tree that was told to end may take before it is killed.
	grace = 2 * time.Second
	// patience is how long what outlives its main process may take to end by itself. A `tee` in a process substitution
	// sees its end of file only when the shell has gone, and must not lose what it holds.
	patience = 100 * time.Millisecond
	// giveUp is how long after SIGKILL a tree is waited for: longer the kernel holds only what waits for a device.
	giveUp = 5 * time.Second
)

// A Command is a process to start. It runs in a kernel session of its own, without a terminal.
type Command struct {
	ID   string // of the call, plain characters; it is part of what marks the tree
	Path string // absolute
	Args []string
	Dir  string // absolute
	Env  []string
	// Input is what the process can read on its standard input, before the end of file; nil: it is /dev/null. Nothing
	// waits for its being read.
	Input []byte
	// Stdin is the standard input itself, in Input's place, for who talks with the process. It stays the caller's to close.
	Stdin *os.File
	// Stdout and Stderr, neither nil, get what is printed, each from one goroutine. An error that one of them gives stops
	// the process and is passed on as Exit.Output; what is printed afterwards is dropped.
	Stdout, Stderr io.Writer
	// Report gets what is written to descriptor 3, in the same way; nil: there is no such descriptor.
	Report io.Writer
	// Extra are further descriptors for the process, after those. They stay the caller's to close.
	Extra []*os.File
	// Policy says what the process may do.
	Policy Policy
	// Keep decides what becomes of what still runs when the main process has ended by itself; nil: all of it is killed.
	Keep  Keep
	ended func(Exit)      // is called with its exit, before Done is closed; nil: nothing is
	after func() []Denial // see Box.After
}

// A Keep is called when processes of a tree still run 100 ms after the main process has exited by itself. code is its exit code,
// left how many of the others have no parent among them. Keep returns how many of those may go on, the oldest first, each with
// everything that it has started; the rest is killed. done is closed when nothing of the tree is left. All output that the main
// process has written was passed on before.
type Keep func(code, left int, done <-chan struct{}) int

// A Process is a started command with everything that it starts.
type Process struct {
	runner  *Runner
	marker  string
	since   uint64 // ticks since boot, before it was started
	child   *os.Process
	exited  chan struct{} // the main process is dead; it is collected later
	claimed atomic.Bool   // somebody sees the tree to its end: who has set it owns exit until done is closed
	exit    Exit
	done    chan struct{}
	outputs []*capture
	report  *capture // one of outputs; nil: there is none
	args    []string
	keep    Keep
	// stopping is set by Stop, outlived is closed when something goes on, and main is how the main process has ended then.
	stopping atomic.Bool
	outlived chan struct{}
	main     Exit
	confine  confinementOf // what confines it
	ended    func(Exit)
	after    func() []Denial
	id       string

	insisted chan Denial // one place

	mu      sync.Mutex
	refused []Denial // by others than the guard
	spared  []string // what the daemon has made meanwhile
}

// An Exit says how a tree has ended.
type Exit struct {
	Code   int    // of the main process; -1 when a signal has ended it, or when it is stuck
	Signal string // "SIGTERM", ...; empty when it ended by itself
	// LeftBehind is what was still running when the main process had ended, and was killed then.
	LeftBehind []Left
	// Kept is what goes on, as Command.Keep has said. Only Main returns it.
	Kept []Left
	// Stuck is what the kernel still holds although it was killed.
	Stuck   []Left
	MaxRSS  int64 // bytes, of the largest process of the tree that was waited for
	Stopped bool  // Stop was called before the main process had ended
	Output  error // why the output was not taken to its end; nil: it was
	// Denials is what the tree was not let do, as far as that is noticed, at most 50 of them: what was taken away first.
	Denials []Denial
	// Created are the paths on the disk at which the tree was about to make a file where nothing stood, as far as that is noticed:
	// in Full, and at most 256 of them.
	Created []string
}

// A Left is a process that outlived its call.
type Left struct {
	PID  int
	Name string // its command line, at most 80 characters
}

// Start starts c. An error says that nothing was started; an *UnavailableError, that nothing here can confine it.
func (r *Runner) Start(c Command) (*Process, error) {
	p := &Process{
		runner: r, marker: r.newMarker(c.ID), since: ticks(), ended: c.ended, after: c.after, id: c.ID,
		args: c.Args, keep: c.Keep, exited: make(chan struct{}), done: make(chan struct{}), outlived: make(chan struct{}),
		insisted: make(chan Denial, 1),
	}
	if err := r.enter(p); err != nil {
		return nil, err
	}
	defer r.starts.Done()
	if err := p.start(c); err != nil {
		r.leave(p)
		return nil, err
	}
	for _, o := range p.outputs {
		go o.copy(p.Stop)
	}
	go p.supervise()
	return p, nil
}

func (p *Process) start(c Command) (err error) {
	files := []*os.File{p.runner.null}
	if c.Stdin != nil {
		files[0] = c.Stdin
	} else if c.Input != nil {
		if files[0], err = newInput(c.Input); err != nil {
			return err
		}
		defer files[0].Close()
	}
	for _, w := range []io.Writer{c.Stdout, c.Stderr, c.Report} {
		if w == nil {
			continue
		}
		output, far, err := newCapture(w)
		if err != nil {
			p.closeOutputs()
			return fmt.Errorf("making a pipe: %w", err)
		}
		defer far.Close()
		if w == c.Report {
			p.report = output
		}
		p.outputs, files = append(p.outputs, output), append(files, far)
	}
	environ := append(c.Env[:len(c.Env):len(c.Env)], MarkerName+"="+p.marker)
	if err = p.spawn(c, environ, append(files, c.Extra...)); err != nil {
		p.closeOutputs()
	}
	return err
}

// spawnFree starts the main process without confining it.
func (p *Process) spawnFree(c Command, environ []string, files []*os.File) (err error) {
	p.child, err = spawn(c.Path, c.Args, &os.ProcAttr{Dir: c.Dir, Env: environ, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	return err
}

func (p *Process) closeOutputs() {
	for _, o := range p.outputs {
		_ = o.pipe.Close()
	}
}

// Stop asks for the end of the tree and returns at once: SIGTERM to all of it, SIGKILL after 2 s, and Done at most
// 5 s after that. It may be called often, and after the end.
func (p *Process) Stop() {
	p.stopping.Store(true)
	if p.claimed.CompareAndSwap(false, true) {
		go p.end()
	}
}

// Done is closed when nothing of the tree is left, or what is left is listed as stuck, and all output was passed on.
func (p *Process) Done() <-chan struct{} { return p.done }

// Outlived is closed when the main process has ended and something goes on, as Command.Keep has said. Main then returns how the
// main process has ended. Stop ends what goes on, and Done is closed when nothing is left.
func (p *Process) Outlived() <-chan struct{} { return p.outlived }

// Main returns how the main process has ended. It is for after Outlived is closed.
func (p *Process) Main() Exit { return p.main }

// Wait waits for Done and says how the tree has ended. When something has gone on, the exit code is not known.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// supervise waits for the main process. It does not collect it: as long as nobody does, the numbers of the process and
// of its group and session cannot be given to another.
func (p *Process) supervise() {
	awaitExit(p.child.Pid)
	close(p.exited)
	if p.claimed.CompareAndSwap(false, true) {
		p.finishMain()
	}
}

// end brings the tree to its end before the main process has come to its own.
func (p *Process) end() {
	p.exit.Stopped = true
	p.finish(grace, p.terminate())
	if !slices.ContainsFunc(p.exit.Stuck, func(l Left) bool { return l.PID == p.child.Pid }) {
		<-p.exited // it is dead, and its waiter will say so
	}
	p.conclude()
}

// Denied notes what was denied, by somebody else, to the processes that run under that ID.
func (r *Runner) Denied(id string, d Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.trees {
		if p.id == id {
			p.refuse(d)
		}
	}
}

func (p *Process) refuse(d Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.refused {
		if o := &p.refused[i]; o.Operation == d.Operation && o.Target == d.Target {
			if o.Count++; o.Count == manyRefusals {
				p.insist(*o)
			}
			return
		}
	}
	if len(p.refused) < manyDenials {
		p.refused = append(p.refused, d)
	}
}

// insist passes the first host that was refused so often.
func (p *Process) insist(d Denial) {
	select {
	case p.insisted <- d:
	default:
	}
}

// Refused returns a channel that has one value once the same host was refused 10 times to the tree, by [Runner.Denied].
func (p *Process) Refused() <-chan Denial { return p.insisted }

func (p *Process) others() []Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// made is what the tree has brought into being where nothing was to be.
func (p *Process) made() []Denial {
	p.mu.Lock()
	watched := p.confine.watch.without(p.spared)
	p.mu.Unlock()
	return watched.takeAway()
}

// isDead reports that the main process has ended.
func (p *Process) isDead() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// conclude takes the last of the output and the main process's own report, and lets go of the tree.
func (p *Process) conclude() {
	for _, o := range p.outputs {
		if err := o.finish(); err != nil && p.exit.Output == nil {
			p.exit.Output = err
		}
	}
	p.exit.Code = -1
	if p.isDead() {
		p.collect()
	} else { // stuck in the kernel: collected whenever it comes out
		go func() { <-p.exited; _, _ = collect(p.child) }()
	}
	if p.hasOutlived() {
		p.exit.Code, p.exit.Signal = -1, "" // those were the main process's
	}
	p.notify(&p.exit, p.unconfine())
	p.runner.leave(p)
	close(p.done)
}

// notify notes in the exit what was denied to the tree up to now, by what confines it and by others, and passes it to the box.
func (p *Process) notify(exit *Exit, confined []Denial) {
	denials := append(confined, p.others()...)
	if p.after != nil {
		denials = append(p.after(), denials...)
	}
	exit.Denials = denials[:min(len(denials), manyDenials)]
	if p.ended != nil {
		p.ended(*exit)
	}
}

func (p *Process) hasOutlived() bool {
	select {
	case <-p.outlived:
		return true
	default:
		return false
	}
}

// closeReport ends the report, so that its reader has all that the main process has written to it.
func (p *Process) closeReport() {
	if p.report != nil {
		_ = p.report.finish() // a Report takes what comes
		p.outputs = slices.DeleteFunc(p.outputs, func(o *capture) bool { return o == p.report })
	}
}

func (p *Process) collect() {
	state, err := collect(p.child)
	if err != nil {
		return
	}
	p.exit.Code = state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.exit.Signal = unix.SignalName(status.Signal())
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		p.exit.MaxRSS = int64(usage.Maxrss) * rssUnit
	}
}
