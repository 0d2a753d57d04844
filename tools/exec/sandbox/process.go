// One started command, from its pipes to its exit. settle.go ends its tree, and tree_linux.go finds
// the tree's members.

package sandbox

import (
	"context"
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

// manyRefusals is how often a host is refused to a tree before Refused reports it. The number is
// our own: programs that give up have done so by then, and the others would go on until their time
// limit.
const manyRefusals = 10

// manyDenials is how many different denials of one process are noted.
const manyDenials = 50

const (
	// grace is how long a tree may take to end after SIGTERM before it is killed.
	grace = 2 * time.Second
	// patience is how long processes that outlive the main process may take to end by themselves. A
	// `tee` in a process substitution gets its end of file only after the shell has gone, and must
	// not lose its data.
	patience = 100 * time.Millisecond
	// giveUp is how long a tree is waited for after SIGKILL. After that time the kernel holds only
	// processes that wait for a device.
	giveUp = 5 * time.Second
)

// A Command is a process to start. It runs in a kernel session of its own.
type Command struct {
	ID   string // of the call, plain characters; it is part of the marker
	Path string // absolute
	Args []string
	Dir  string // absolute
	Env  []string
	// Input is what the process can read on its standard input, before the end of file; nil:
	// /dev/null. Start does not wait until it is read.
	Input []byte
	// Stdin is the standard input itself, instead of Input, for a caller that communicates with the
	// process. The caller closes it.
	Stdin *os.File
	// Terminal is the size of a terminal that the process gets: its controlling terminal, and its
	// standard input and outputs, of which Stdout receives what comes out. Input, Stdin and Stderr
	// are then nil. nil: it has no terminal.
	Terminal *Size
	// Stdout, not nil, and Stderr receive the output, each from one goroutine. If Stderr is nil, both
	// outputs are one pipe, and Stdout receives them in the exact order in which they were written.
	// An error of one of them stops the process and becomes Exit.Output; later output is dropped.
	Stdout, Stderr io.Writer
	// Extra are further descriptors for the process, from 3 on. The caller closes them.
	Extra []*os.File
	// Policy is what the process may do.
	Policy Policy
	// Keep decides about processes that still run when the main process has ended by itself; nil:
	// all of them are killed.
	Keep Keep
	// Early lets the process be a bash that Prepare has started; nil: it is started now. Args then end in
	// the script.
	Early *Early
	// Ask is called when a process of the tree wants to connect to a host that Policy.Network does
	// not name, while the connection waits; it returns at once when its context ends, which the end
	// of the tree causes. It must be safe for concurrent use. nil: nothing is asked, and the host
	// is refused; so it is in Fast.
	Ask    func(context.Context, Host) Answer
	ended  func(Exit)       // called with the exit, before Done is closed; nil: no call
	after  func() []Denial  // see Box.After
	before func(Alteration) // see Box.Before
}

// A Keep is called when processes of a tree still run 100 ms after the main process has exited by
// itself. code is its exit code; left is how many of the others have no parent among them. Keep
// returns how many of those may continue, the oldest first, each with everything that it has
// started. The rest is killed. done is closed when nothing of the tree is left. All output of the
// main process has been written before the call.
type Keep func(code, left int, done <-chan struct{}) int

// A Process is a started command with everything that it starts. It is safe for concurrent use.
type Process struct {
	runner   *Runner
	marker   string
	since    uint64 // ticks since boot, before it was started; of a shell that had waited, before it went on
	child    *os.Process
	exited   chan struct{} // the main process is dead; it is collected later
	claimed  atomic.Bool   // set by the goroutine that ends the tree, which owns exit until done is closed
	exit     Exit
	done     chan struct{}
	outputs  []*capture
	terminal *Terminal // nil: none
	report   *os.File  // see Report
	command  Command   // without its Input
	// stopping is set by Stop. outlived is closed when processes continue after the main process;
	// main is how the main process has ended then.
	stopping  atomic.Bool
	inherited int64 // the daemon's peak memory when the main process had become its program, in bytes
	outlived  chan struct{}
	main      Exit
	confine   confinementOf // what confines it

	insisted chan Denial   // capacity 1
	listened chan struct{} // capacity 1

	mu      sync.Mutex
	refused []Denial // by others than the supervisor
	aside   []Denial // what was moved aside while the tree ran, since TakeAside
	spared  []string // what the daemon itself has made meanwhile
}

// Start starts c. After an error, nothing was started; an *UnavailableError means that the process
// cannot be confined here.
func (r *Runner) Start(c Command) (*Process, error) {
	if p := r.takeEarly(c); p != nil {
		return p, nil
	}
	input := c.Input
	c.Input = nil
	p := r.newProcess(c)
	if err := r.enter(p); err != nil {
		return nil, err
	}
	defer r.starts.Done()
	if err := p.start(input); err != nil {
		r.leave(p)
		return nil, err
	}
	p.attend()
	return p, nil
}

func (r *Runner) newProcess(c Command) *Process {
	return &Process{
		runner: r, marker: fmt.Sprintf("%s%s.%d", r.generation, c.ID, r.started.Add(1)), since: ticks(), command: c,
		exited: make(chan struct{}), done: make(chan struct{}), outlived: make(chan struct{}), insisted: make(chan Denial, 1), listened: make(chan struct{}, 1),
	}
}

// attend starts what follows the process to its end.
func (p *Process) attend() {
	for _, o := range p.outputs {
		go o.copy(p.Stop)
	}
	go p.supervise()
}

func (p *Process) start(input []byte) (err error) {
	c, files := p.command, []*os.File{p.runner.null}
	if c.Stdin != nil {
		files[0] = c.Stdin
	} else if input != nil {
		if files[0], err = newInput(input); err != nil {
			return err
		}
		defer files[0].Close()
	}
	writers := []io.Writer{c.Stdout, c.Stderr}
	if c.Terminal != nil {
		writers, files = nil, nil // see withTerminal
	}
	for _, w := range writers {
		if w == nil {
			files = append(files, files[len(files)-1])
			continue
		}
		output, far, err := newCapture(w)
		if err != nil {
			p.closeOutputs()
			return fmt.Errorf("making a pipe: %w", err)
		}
		defer far.Close()
		p.outputs, files = append(p.outputs, output), append(files, far)
	}
	if err = p.spawn(append(files, c.Extra...)); err != nil {
		p.closeOutputs()
	}
	p.inherited = inheritedRSS()
	return err
}

// ownRSS returns the peak memory of a process of the tree: counted is what the kernel reports for it,
// in bytes. It is 0 where the kernel may mean what the process has inherited: until a child becomes
// its program it shares the daemon's memory, and the kernel counts that for it.
func (p *Process) ownRSS(counted int64) int64 {
	if counted <= p.inherited {
		return 0
	}
	return counted
}

// environ returns the environment of the process, with more variables, and the marker at the end.
func (p *Process) environ(more ...string) []string {
	return slices.Concat(p.command.Env, more, []string{MarkerName + "=" + p.marker})
}

// spawnFree starts the main process, of that path and arguments, without confining it.
func (p *Process) spawnFree(path string, args []string, files []*os.File) error {
	files, done, err := p.withTerminal(files, hostTerminal)
	if err != nil {
		return err
	}
	defer done()
	p.child, err = spawn(path, args, &os.ProcAttr{
		Dir: p.command.Dir, Env: p.environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.terminal != nil},
	})
	return err
}

func (p *Process) closeOutputs() {
	for _, o := range p.outputs {
		_ = o.pipe.Close()
	}
}

// Stop ends the tree and returns at once: it sends SIGTERM to all of it, and SIGKILL after 2 s.
// Done is closed at most 5 s after that. Stop may be called more than once, and after the end.
func (p *Process) Stop() {
	p.stopping.Store(true)
	if p.claimed.CompareAndSwap(false, true) {
		go p.end()
	}
}

// Done is closed when nothing of the tree is left, or what is left is listed as stuck, and all
// output has been written.
func (p *Process) Done() <-chan struct{} { return p.done }

// Outlived is closed when the main process has ended and other processes continue, as Command.Keep
// has decided. Main then returns how the main process has ended. Stop ends those that continue, and
// Done is closed when none is left.
func (p *Process) Outlived() <-chan struct{} { return p.outlived }

// Main returns how the main process has ended. It must be called only after Outlived is closed.
func (p *Process) Main() Exit { return p.main }

// Wait waits for Done and returns how the tree has ended. If processes have outlived the main
// process, the exit code is unknown.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// supervise waits for the main process without collecting it: until then, the numbers of the
// process, its group and its session are not reused.
func (p *Process) supervise() {
	awaitExit(p.child.Pid)
	close(p.exited)
	if p.claimed.CompareAndSwap(false, true) {
		p.finishMain()
	}
}

// end ends the tree before the main process has ended by itself.
func (p *Process) end() {
	p.exit.Stopped = true
	p.finish(grace, p.terminate())
	if !slices.ContainsFunc(p.exit.Stuck, func(l Left) bool { return l.PID == p.child.Pid }) {
		<-p.exited // it is dead, and its waiter reports it
	}
	p.conclude()
}

// Denied records a denial, noticed elsewhere, for the processes that run under that ID.
func (r *Runner) Denied(id string, d Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.trees {
		if p.command.ID == id {
			p.refuse(d)
		}
	}
}

func (p *Process) refuse(d Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused, d = counted(p.refused, d); d.Count == manyRefusals {
		select {
		case p.insisted <- d:
		default: // another host was refused so often before
		}
	}
}

// counted returns the denials with one more, each with how often it was noted, and that one as it stands there now.
func counted(denials []Denial, d Denial) ([]Denial, Denial) {
	at := slices.IndexFunc(denials, func(o Denial) bool { return o.Operation == d.Operation && o.Target == d.Target })
	if at >= 0 {
		denials[at].Count++
		denials[at].Answer = d.Answer // the newest
		return denials, denials[at]
	}
	if len(denials) < manyDenials {
		denials = append(denials, d)
	}
	return denials, d
}

// Refused returns a channel that receives one value once [Runner.Denied] has refused the same host
// to the tree 10 times.
func (p *Process) Refused() <-chan Denial { return p.insisted }

// Listened returns a channel that receives a value after a process of the tree has begun to listen
// on a TCP port, in Full. Several ports may be one value.
func (p *Process) Listened() <-chan struct{} { return p.listened }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// conclude reads the rest of the output, and releases the tree.
func (p *Process) conclude() {
	for _, o := range p.outputs {
		if err := o.finish(); err != nil && p.exit.Output == nil {
			p.exit.Output = err
		}
	}
	p.exit.Code = -1
	if isClosed(p.exited) {
		p.collect()
	} else { // stuck in the kernel: collected when it ends
		go func() { <-p.exited; _, _ = collect(p.child) }()
	}
	if isClosed(p.outlived) {
		p.exit.Code, p.exit.Signal = -1, "" // those were the main process's
	}
	p.notify(&p.exit, p.unconfine())
	p.runner.leave(p)
	close(p.done)
}

// notify adds the denials up to now to the exit, and passes it to the box.
func (p *Process) notify(exit *Exit, confined []Denial) {
	var left []Denial
	if p.command.after != nil {
		left = p.command.after()
	}
	p.mu.Lock()
	denials := slices.Concat(left, p.aside, confined, p.refused)
	p.aside = nil
	p.mu.Unlock()
	exit.Denials = denials[:min(len(denials), manyDenials)]
	if p.command.ended != nil {
		p.command.ended(*exit)
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
		p.exit.MaxRSS = p.ownRSS(int64(usage.Maxrss) * rssUnit)
	}
}
