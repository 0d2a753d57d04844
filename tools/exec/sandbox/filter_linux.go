// The system calls that a confined process may make, as a program for the kernel's filter
// (seccomp). The filter sees numbers and not what pointers point to, so it does not decide about
// files.

package sandbox

import (
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A filter is a selection of allowed system calls.
type filter struct {
	strict  bool // Fast for read-only calls: modes, owners, times and attributes of files cannot be changed, and there are no sockets
	shared  bool // other processes and files are visible: calls on those by number, and on attributes, are refused
	inet    bool // Internet sockets may be made
	stream  bool // Internet sockets are limited to TCP, for which Landlock restricts connections
	unix    bool // Unix sockets may be made, of any kind
	streams bool // Unix stream sockets may be made: the supervisor checks their connections
	traces  bool // its processes may trace each other
	watched bool // the supervisor is notified of refused calls, and of those that change files by name
}

// An answer is what the kernel does with a call: allow it, refuse it with an error, ask the
// supervisor, or check an argument.
type answer struct {
	ret   uint32
	check *check
}

// A check compares one argument: if it (masked) is one of the values, the answer is then, otherwise
// otherwise. when makes one.
type check struct {
	arg             int
	mask            uint32
	values          []uint32
	then, otherwise answer
}

var (
	allow   = answer{ret: unix.SECCOMP_RET_ALLOW}
	deny    = refusal(unix.EPERM)
	missing = refusal(unix.ENOSYS) // as on a kernel without the call: programs then use something else
	notify  = answer{ret: unix.SECCOMP_RET_USER_NOTIF}
)

// whole is the mask of a check that compares the whole argument.
const whole = ^uint32(0)

func when(arg int, mask uint32, values []uint32, then, otherwise answer) answer {
	return answer{check: &check{arg, mask, values, then, otherwise}}
}

func refusal(errno unix.Errno) answer {
	return answer{ret: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// never are calls that no confined process makes, on every architecture.
var never = []uintptr{
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR, unix.SYS_SETNS,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_QUOTACTL_FD, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
}

// traces are calls by which a process reads or controls another one.
var traces = []uintptr{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV}

// lacking are calls that programs can do without.
var lacking = []uintptr{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// exchanges are calls for objects outside any file system, which all processes share where there is
// no namespace for them.
var exchanges = []uintptr{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// marks are calls that change properties of a file that Landlock does not protect.
var marks = []uintptr{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE,
}

// attributes are those of marks that programs can do without, since not every file system supports
// what they set.
var attributes = []uintptr{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
	unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
}

// last is the newest call that this list covers. Newer calls are refused as missing.
const last = unix.SYS_FILE_SETATTR + 2 // listns

const (
	namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
		unix.CLONE_NEWNET | unix.CLONE_NEWTIME
	tiocsti, tioclinux = 0x5412, 0x541C
	addrNoRandomize    = 0x0040000  // linux/personality.h: debuggers and sanitizers use it
	fsSetFlags         = 0x40086602 // FS_IOC_SETFLAGS
	fsSetXattr         = 0x401C5820 // FS_IOC_FSSETXATTR
	fsSetVersion       = 0x40087602 // FS_IOC_SETVERSION
	fsEnableVerity     = 0x40806685 // FS_IOC_ENABLE_VERITY
	fsSetEncryption    = 0x800c6613 // FS_IOC_SET_ENCRYPTION_POLICY
	ioprioUser         = 3          // IOPRIO_WHO_USER
	kindOfSocket       = 0xf        // SOCK_TYPE_MASK of linux/net.h: flags are above
)

// table returns the answer to each call that is not simply allowed.
func (f filter) table() map[uintptr]answer {
	t := map[uintptr]answer{}
	put := func(calls []uintptr, a answer) {
		for _, call := range calls {
			t[call] = a
		}
	}
	put(never, deny)
	if !f.traces {
		put(traces, deny)
	}
	put(neverHere, deny)
	put(lacking, missing)
	if f.watched {
		put(slices.Collect(maps.Keys(namesOf())), notify)
		watchOpening(t)
	}
	if f.shared {
		put(exchanges, missing)
		put(attributes, refusal(unix.EOPNOTSUPP))
		leaveOthers(t)
	}
	if f.strict {
		t[unix.SYS_INOTIFY_ADD_WATCH] = deny // Landlock lets a process watch names where it may read nothing
		put(marks, f.refused(unix.EPERM))
		put(marksHere, f.refused(unix.EPERM))
	}
	flags := when(0, namespaces, []uint32{0}, allow, deny)
	t[unix.SYS_CLONE], t[unix.SYS_UNSHARE] = flags, flags
	t[unix.SYS_SOCKET], t[unix.SYS_SOCKETPAIR] = f.sockets(), f.pairs()
	t[unix.SYS_IOCTL] = f.ioctls()
	t[unix.SYS_PERSONALITY] = when(0, whole, []uint32{0, 0xffffffff, addrNoRandomize}, allow, deny)
	if f.stream || f.watched {
		leaveConnecting(t)
	}
	return t
}

// refused returns a refusal that the supervisor is notified of.
func (f filter) refused(errno unix.Errno) answer {
	if f.watched {
		return notify
	}
	return refusal(errno)
}

// sockets returns the answer by family, type and protocol.
func (f filter) sockets() answer {
	none := f.refused(unix.EACCES)
	protocols := []uint32{unix.NETLINK_ROUTE}
	if !f.shared { // ss queries the sockets of its network namespace
		protocols = append(protocols, unix.NETLINK_SOCK_DIAG)
	}
	route := when(2, whole, protocols, allow, none)
	made := when(0, whole, []uint32{unix.AF_NETLINK}, route, none)
	if f.strict {
		return made
	}
	switch {
	case f.unix:
		made = when(0, whole, []uint32{unix.AF_UNIX}, allow, made)
	case f.streams: // a datagram socket can send to any address each time
		made = when(0, whole, []uint32{unix.AF_UNIX}, when(1, kindOfSocket, connecting, allow, none), made)
	}
	if f.inet {
		made = when(0, whole, []uint32{unix.AF_INET, unix.AF_INET6}, f.internet(), made)
	}
	return made
}

// connecting are the types of sockets that send only to what they are connected to.
var connecting = []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}

// internet returns the answer for the Internet families. An unneeded protocol is answered as one
// that the kernel lacks: programs request such protocols only to see whether they exist.
func (f filter) internet() answer {
	if !f.stream {
		return when(2, whole, []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}, allow, refusal(unix.EPROTONOSUPPORT))
	}
	tcp := when(2, whole, []uint32{0, unix.IPPROTO_TCP}, allow, refusal(unix.EPROTONOSUPPORT))
	return when(1, kindOfSocket, []uint32{unix.SOCK_STREAM}, tcp, f.refused(unix.EACCES))
}

// pairs allows only those pairs that stay connected to each other. A datagram socket can send to
// any address.
func (f filter) pairs() answer {
	if f.unix {
		return allow
	}
	kinds := when(1, kindOfSocket, connecting, allow, refusal(unix.EACCES))
	return when(0, whole, []uint32{unix.AF_UNIX}, kinds, refusal(unix.EACCES))
}

// leaveConnecting refuses to open a connection by sending data, which neither Landlock nor the
// supervisor would see.
func leaveConnecting(t map[uintptr]answer) {
	for call, arg := range map[uintptr]int{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		t[call] = when(arg, unix.MSG_FASTOPEN, []uint32{0}, allow, deny)
	}
}

func (f filter) ioctls() answer {
	denied := []uint32{tiocsti, tioclinux}
	if f.shared {
		denied = append(denied, fsSetFlags, fsSetXattr, fsSetVersion, fsEnableVerity, fsSetEncryption)
	}
	return when(1, whole, denied, deny, allow)
}

// writing are the flags of an open call that may change something.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// watchOpening asks the supervisor when a file is opened for writing.
func watchOpening(t map[uintptr]answer) {
	look := func(arg int) answer {
		return when(arg, writing, []uint32{unix.O_RDONLY}, allow, notify)
	}
	t[unix.SYS_OPENAT] = look(2)
	if openHere != 0 {
		t[openHere] = look(1)
	}
	t[unix.SYS_CONNECT], t[unix.SYS_LISTEN] = notify, notify
}

// leaveOthers lets a process set limits and priorities only of itself and its group.
func leaveOthers(t map[uintptr]answer) {
	own := func(arg int) answer { return when(arg, whole, []uint32{0}, allow, deny) }
	t[unix.SYS_SETPRIORITY] = when(0, whole, []uint32{unix.PRIO_USER}, deny, own(1))
	t[unix.SYS_IOPRIO_SET] = when(0, whole, []uint32{ioprioUser}, deny, own(1))
	for _, call := range []uintptr{
		unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER,
	} {
		t[call] = own(0)
	}
}

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// compile returns the kernel's program: a binary search for the number among ranges that share an
// answer.
func (f filter) compile() []unix.SockFilter {
	program := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: missing.ret},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}, search(ranges(f.table())))
	code := make([]unix.SockFilter, len(program))
	for i, instruction := range program {
		raw, err := instruction.Assemble()
		if err != nil {
			panic("BUG: system call filter: " + err.Error())
		}
		code[i] = unix.SockFilter{Code: raw.Op, Jt: raw.Jt, Jf: raw.Jf, K: raw.K}
	}
	return code
}

// A span is a range of numbers, from first up to the next span, with one answer.
type span struct {
	first uint32
	answer
}

func ranges(t map[uintptr]answer) []span {
	spans := []span{{0, allow}}
	put := func(first uintptr, a answer) {
		if l := &spans[len(spans)-1]; l.answer == a && a.check == nil {
			return
		} else if uintptr(l.first) == first {
			l.answer = a
			return
		}
		spans = append(spans, span{uint32(first), a})
	}
	for _, call := range slices.Sorted(maps.Keys(t)) {
		put(call, t[call])
		if _, listed := t[call+1]; !listed {
			put(call+1, allow)
		}
	}
	put(last+1, missing)
	return spans
}

// search returns the instructions that lead to the answer of the span that holds the number in the
// accumulator.
func search(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].program()
	}
	middle := len(spans) / 2
	return either([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first, SkipFalse: 1}},
		search(spans[middle:]), search(spans[:middle]))
}

// either returns tests that lead to one of two parts: to skipped if they skip the following
// instruction, otherwise to next.
func either(tests, next, skipped []bpf.Instruction) []bpf.Instruction {
	return slices.Concat(tests, []bpf.Instruction{bpf.Jump{Skip: uint32(len(skipped))}}, skipped, next)
}

// program returns the instructions for the answer, including a check of an argument.
func (a answer) program() []bpf.Instruction {
	c := a.check
	if c == nil {
		return []bpf.Instruction{bpf.RetConstant{Val: a.ret}}
	}
	// The low half: both architectures are little-endian.
	tests := []bpf.Instruction{bpf.LoadAbsolute{Off: uint32(offArgs + 8*c.arg), Size: 4}}
	if c.mask != whole {
		tests = append(tests, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask})
	}
	for i, value := range c.values {
		tests = append(tests, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: uint8(len(c.values) - i)})
	}
	return either(tests, c.otherwise.program(), c.then.program())
}

// sockFprog returns a program in the kernel's form. code must stay unchanged while it is in use.
func sockFprog(code []unix.SockFilter) *unix.SockFprog {
	return &unix.SockFprog{Len: uint16(len(code)), Filter: unsafe.SliceData(code)}
}
