// Starting a confined process: the system calls between its creation and its program. Namespaces
// and rulesets come from an instance.

package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterFor returns the system call filter for a process of the tier.
func filterFor(p Policy, t Tier, port int) filter {
	if t == Full {
		// The first process has no ruleset: under a ruleset (of version 2 or newer) no process
		// could trace it.
		return filter{inet: true, unix: p.UnixSockets, streams: true, traces: landlockABI() >= 2, watched: true}
	}
	return filter{strict: p.Strict, shared: true, inet: port != 0, stream: true, unix: p.UnixSockets}
}

// A launch is one process to be started in an instance.
type launch struct {
	host     *hostCapabilities
	instance *instance
	command  Command
	files    []*os.File
}

// born is the result of a launch.
type born struct {
	main, first int      // their numbers; first 0: there is none
	listener    *os.File // receives what the filter asks; nil: it asks nothing
}

// start starts the process. After an error, nothing of it is left.
func (l *launch) start() (born, error) {
	p := newProgram()
	p.about = "starting"
	p.noHandlers()
	if l.instance.network != nil {
		return l.startFull(p)
	}
	l.confine(p, nil)
	if err := p.become(l.command.Path, l.command.Args, l.command.Env); err != nil {
		return born{}, err
	}
	pid, err := l.run(p)
	if err != nil && pid != 0 {
		collectNow(pid)
		pid = 0
	}
	return born{main: pid}, err
}

// run runs p on a thread that has the filter already, if such a thread can be shared. Its children
// inherit the filter, which costs nothing.
func (l *launch) run(p *program) (pid int, err error) {
	return l.host.threads.get(l.instance.filter).run(p)
}

// startFull starts two processes in a new process namespace: the first, whose end is the end of
// all, and the program. Both are the daemon's own children. The process between them, which has
// joined the namespaces, ends at once.
func (l *launch) startFull(p *program) (born, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return born{}, fmt.Errorf("making a pair of sockets: %w", err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	p.about = "joining the sandbox"
	for _, n := range l.instance.joined(l.host.instances.users) {
		p.do(unix.SYS_SETNS, int(n.file.Fd()), n.kind)
	}
	p.do(unix.SYS_UNSHARE, unix.CLONE_NEWNS|unix.CLONE_NEWPID)
	first, firstMade := p.clone(unix.CLONE_PARENT)
	firstMade.at()
	l.sleep(first)
	main, mainMade := p.clone(unix.CLONE_PARENT)
	mainMade.at()
	p.end()
	l.mountProc(main)
	l.confine(main, &pair[1])
	if err := main.become(l.command.Path, l.command.Args, l.command.Env); err != nil {
		return born{}, err
	}
	between, err := p.run(0)
	if between != 0 {
		collectNow(between)
	}
	b := born{main: int(mainMade.result), first: int(firstMade.result)}
	if err == nil {
		b.listener, err = received(pair[0])
	}
	if err != nil {
		b.end()
		return born{}, err
	}
	return b, nil
}

// sleep turns p into the first process.
func (l *launch) sleep(p *program) {
	p.about = "starting the first process"
	p.do(unix.SYS_SETSID)
	ignore := &[4]uint64{1} // SIG_IGN: the kernel collects its children
	p.do(unix.SYS_RT_SIGACTION, int(unix.SIGCHLD), unsafe.Pointer(ignore), 0, 8).hold(ignore)
	p.do(unix.SYS_CLOSE_RANGE, 0, ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	p.dropRights()
	argv, envv := vector("toold-first"), vector(l.command.Env[len(l.command.Env)-1]) // the marker
	p.do(unix.SYS_EXECVEAT, int(l.host.first.Fd()), "", unsafe.Pointer(&argv[0]), unsafe.Pointer(&envv[0]), unix.AT_EMPTY_PATH).hold([]any{argv, envv})
}

func vector(entries ...string) []*byte {
	v := make([]*byte, len(entries)+1)
	for i, entry := range entries {
		v[i] = &append([]byte(entry), 0)[0]
	}
	return v
}

// confine adds what the process does to itself before it becomes its program. The filter's listener
// is sent to the descriptor to.
func (l *launch) confine(p *program, to *int) {
	p.about = "starting"
	p.do(unix.SYS_SETSID)
	p.about = "going to " + l.command.Dir
	p.do(unix.SYS_CHDIR, l.command.Dir)
	p.about = "arranging descriptors"
	var rules, letters *step
	if l.instance.ruleset != nil {
		rules = l.outOfTheWay(p, int(l.instance.ruleset.Fd()))
	}
	if to != nil {
		letters = l.outOfTheWay(p, *to)
	}
	l.descriptors(p)
	if l.command.Terminal != nil {
		p.about = "taking its terminal"
		p.do(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
	}
	p.about = "setting limits"
	l.limit(p)
	p.about = "giving up rights"
	p.dropRights()
	p.do(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if rules != nil {
		p.about = "restricting itself with Landlock"
		p.do(unix.SYS_LANDLOCK_RESTRICT_SELF, rules.at(), 0)
	}
	if letters != nil {
		p.about = "restricting its system calls"
		l.filter(p, letters)
	}
	p.do(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, unsafe.Pointer(&noSignals), 0, 8) // none stays blocked
	p.about = "starting " + l.command.Path
}

// outOfTheWay copies a descriptor to a number that the process's own descriptors do not use.
func (l *launch) outOfTheWay(p *program, fd int) *step {
	return p.do(unix.SYS_FCNTL, fd, unix.F_DUPFD_CLOEXEC, len(l.files))
}

// descriptors sets up the process's own descriptors, from 0 on, and closes all others.
func (l *launch) descriptors(p *program) {
	high := make([]*step, len(l.files))
	for i, f := range l.files {
		high[i] = l.outOfTheWay(p, int(f.Fd()))
	}
	for i := range l.files {
		p.do(unix.SYS_DUP3, high[i].at(), i, 0)
	}
	p.do(unix.SYS_CLOSE_RANGE, len(l.files), ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
}

func (l *launch) limit(p *program) {
	limits := l.command.Policy.Limits
	for kind, most := range map[int]uint64{
		unix.RLIMIT_NPROC: limits.Processes, unix.RLIMIT_NOFILE: limits.OpenFiles, unix.RLIMIT_DATA: limits.Memory,
		unix.RLIMIT_FSIZE: limits.FileSize,
	} {
		if most > 0 {
			limit := &unix.Rlimit{Cur: most, Max: most}
			p.do(unix.SYS_PRLIMIT64, 0, kind, unsafe.Pointer(limit), 0).hold(limit).spare() // a lower limit stays
		}
	}
	none := &unix.Rlimit{}
	p.do(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, unsafe.Pointer(none), 0).hold(none)
}

// dropRights drops all capabilities, including those that root would get back with its next
// program.
func (p *program) dropRights() {
	const bits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7         // SECBIT_NOROOT, _NO_SETUID_FIXUP, _NO_CAP_AMBIENT_RAISE, each locked
	p.do(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, bits, 0, 0, 0).spare() // fails without capabilities, where it is not needed
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	p.do(unix.SYS_CAPSET, unsafe.Pointer(header), unsafe.Pointer(&[2]unix.CapUserData{})).hold(header)
}

// filter installs the filter and sends its listener to the daemon through the socket that the step
// to returns.
func (l *launch) filter(p *program, to *step) {
	prog := sockFprog(compiled(l.instance.filter))
	listener := p.do(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listenerFlags(), unsafe.Pointer(prog)).hold(prog)
	control := &struct {
		unix.Cmsghdr
		fd uintptr // the message uses the low half, which comes first
	}{Cmsghdr: unix.Cmsghdr{Level: unix.SOL_SOCKET, Type: unix.SCM_RIGHTS}}
	control.SetLen(unix.CmsgLen(4))
	listener.store = &control.fd
	letter := new(byte)
	data := &unix.Iovec{Base: letter}
	data.SetLen(1)
	message := &unix.Msghdr{Iov: data, Iovlen: 1, Control: (*byte)(unsafe.Pointer(control))}
	message.SetControllen(unix.CmsgSpace(4))
	p.do(unix.SYS_SENDMSG, to.at(), unsafe.Pointer(message), 0).hold([]any{control, message})
}

// listenerFlags are the flags of a filter with a listener. Since Linux 5.19 a handled signal does
// not interrupt a call that the daemon is answering; otherwise a connection that it has made would
// be requested again.
var listenerFlags = sync.OnceValue(func() int {
	const flags, waitKillable = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	if seccompThere(flags|waitKillable) != nil {
		return flags
	}
	return flags | waitKillable
})

// received receives a descriptor from a socket.
func received(socket int) (*os.File, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, fmt.Errorf("receiving the filter's listener: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	var fds []int
	if len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("receiving the filter's listener: %w", cmp.Or(err, error(unix.EBADMSG)))
	}
	_ = unix.SetNonblock(fds[0], true)
	return os.NewFile(uintptr(fds[0]), "listener"), nil
}

// end kills the started processes and collects them.
func (b born) end() {
	for _, pid := range []int{b.main, b.first} {
		if pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
			collectNow(pid)
		}
	}
	if b.listener != nil {
		_ = b.listener.Close()
	}
}

// collectNow collects a child that has ended or is about to end.
func collectNow(pid int) {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return
		}
	}
}

// programs caches compiled filters.
var programs sync.Map

func compiled(f filter) []unix.SockFilter {
	if code, ok := programs.Load(f); ok {
		return code.([]unix.SockFilter)
	}
	code, _ := programs.LoadOrStore(f, f.compile())
	return code.([]unix.SockFilter)
}
