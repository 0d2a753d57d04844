// What a new process does before it becomes another program, as a list of system calls. The list is
// made beforehand and carried out by a few instructions that touch neither the stack nor the heap.
// So the child can share the daemon's memory until it has its own program, which makes it cheap.

package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A step is one system call. program_*.s depends on the offsets of its fields.
type step struct {
	call   uintptr
	args   [6]uintptr
	first  *uintptr // where the first argument is, if not nil
	third  *uintptr // where the third one is
	store  *uintptr // where the result is stored
	child  *step    // the first step of a process that the call has made
	next   *step
	spared uintptr // if not 0, an error does not end the program
	id     uintptr // place in the program's steps

	result uintptr
	about  string // what the call is for, for error messages
	held   any    // keeps what args point to
}

// spare lets the program continue if the call returns an error.
func (s *step) spare() *step {
	s.spared = 1
	return s
}

// hold keeps what an argument points to.
func (s *step) hold(what any) *step {
	s.held = []any{s.held, what}
	return s
}

// at returns the result of an earlier step, as an argument.
func (s *step) at() *uintptr {
	s.store = &s.result
	return s.store
}

// opens is at for a step that opens a descriptor. The result is -1 until it is reached.
func (s *step) opens() *uintptr {
	s.result = ^uintptr(0)
	return s.at()
}

// A failure is the step at which a program has ended, and its error.
type failure struct{ step, errno uintptr }

// A program is a list of steps, with those of the processes that it makes. It runs once.
type program struct {
	steps  *[]*step // of all
	first  *step
	last   *step
	about  string
	failed *failure
}

func newProgram() *program {
	steps := make([]*step, 0, 128)
	return &program{steps: &steps, failed: &failure{}}
}

// do adds a system call. An argument is an integer, a pointer, a string or bytes, which are passed as a pointer, or the
// result of an earlier step.
func (p *program) do(call uintptr, args ...any) *step {
	s := &step{call: call, about: p.about, id: uintptr(len(*p.steps)), held: args}
	for i, arg := range args {
		switch v := arg.(type) {
		case int:
			s.args[i] = uintptr(v)
		case uintptr:
			s.args[i] = v
		case unsafe.Pointer:
			s.args[i] = uintptr(v)
		case string:
			text := append([]byte(v), 0)
			args[i], s.args[i] = text, uintptr(unsafe.Pointer(&text[0]))
		case *uintptr:
			switch i {
			case 0:
				s.first = v
			case 2:
				s.third = v
			default:
				panic("BUG: results are for the first and the third argument")
			}
		default:
			panic(fmt.Sprintf("BUG: a %T is no argument", arg))
		}
	}
	p.add(s)
	return s
}

func (p *program) add(s *step) {
	*p.steps = append(*p.steps, s)
	if p.last == nil {
		p.first = s
	} else {
		p.last.next = s
	}
	p.last = s
}

// clone adds a new process that shares the memory. The parent waits until the child has become
// another program or has ended. clone returns the child's program, and the step whose result is its
// number.
func (p *program) clone(flags uintptr) (*program, *step) {
	child := &program{steps: p.steps, failed: p.failed}
	s := p.do(unix.SYS_CLONE, flags|unix.CLONE_VM|unix.CLONE_VFORK, 0)
	child.about = p.about
	child.do(unix.SYS_GETPID)
	s.child = child.first
	return child, s
}

// end ends a process that does not become another program.
func (p *program) end() { p.do(unix.SYS_EXIT_GROUP, 0) }

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// branch makes a process that carries out the steps from first on.
func branch(flags uintptr, first *step, failed *failure) (pid uintptr)

// branchOutside is branch as a system call that may take long: what the daemon does meanwhile goes on.
//
//go:nosplit
func branchOutside(flags uintptr, first *step, failed *failure) (pid uintptr) {
	entersyscall()
	pid = branch(flags, first, failed)
	exitsyscall()
	return pid
}

// run makes a process that carries out the program, and returns when it has become another program
// or has ended. The caller collects it, also after an error, unless pid is 0. run takes no lock:
// the program closes the descriptors that are not its own.
func (p *program) run(flags uintptr) (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, before := ^uint64(0), uint64(0)
	mask := func(set, old *uint64) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(all), 0, 0)
	}
	mask(&all, &before) // no handler of the daemon may run in the child
	made := branchOutside(flags|unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD), p.first, p.failed)
	mask(&before, nil)
	runtime.KeepAlive(p)
	if errno := -int(made); errno > 0 && errno < 4096 {
		return 0, fmt.Errorf("making a process: %w", unix.Errno(errno))
	}
	if p.failed.errno != 0 {
		return int(made), fmt.Errorf("%s: %w", (*p.steps)[p.failed.step].about, unix.Errno(p.failed.errno))
	}
	return int(made), nil
}

// noHandlers resets every signal to its default action in the child.
func (p *program) noHandlers() {
	steps := slices.Clone(defaults())
	for i := range steps {
		steps[i].id = uintptr(len(*p.steps))
		p.add(&steps[i])
	}
}

// defaults are the steps of noHandlers.
var defaults = sync.OnceValue(func() (steps []step) {
	for signal := uintptr(1); signal <= 64; signal++ {
		if !slices.Contains([]uintptr{uintptr(unix.SIGKILL), uintptr(unix.SIGSTOP), 32, 33}, signal) { // the last two are the C library's
			steps = append(steps, step{
				call: unix.SYS_RT_SIGACTION, args: [6]uintptr{signal, uintptr(unsafe.Pointer(&noAction)), 0, 8}, spared: 1,
				about: "taking the daemon's signal handlers away",
			})
		}
	}
	return steps
})

var (
	noAction  [4]uint64 // struct sigaction of the kernel: SIG_DFL, no flags
	noSignals uint64
)

// become adds the execution of another program.
func (p *program) become(path string, args, environ []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(environ)
	if err != nil {
		return err
	}
	s := p.do(unix.SYS_EXECVE, path, unsafe.Pointer(&argv[0]), unsafe.Pointer(&envv[0]))
	s.held = []any{s.held, argv, envv}
	return nil
}
