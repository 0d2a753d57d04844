package sandbox

import "golang.org/x/sys/unix"

// What is specific to this architecture. Calls of 32-bit programs are recognised by their
// architecture; those of x32 have numbers beyond the last.
const (
	arch     = unix.AUDIT_ARCH_X86_64
	openHere = unix.SYS_OPEN
)

var (
	neverHere = []uintptr{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
		unix.SYS__SYSCTL, unix.SYS_MODIFY_LDT,
	}
	pollingHere = []uintptr{unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT}
	marksHere   = []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
)

var namedHere = map[uintptr][]name{
	unix.SYS_OPEN: {{-1, 0, opens}}, unix.SYS_CREAT: {{-1, 0, creates}}, unix.SYS_MKDIR: {{-1, 0, makes}}, unix.SYS_RMDIR: {{-1, 0, removes}},
	unix.SYS_UNLINK: {{-1, 0, removes}}, unix.SYS_RENAME: {{-1, 0, removes}, {-1, 1, replaces}}, unix.SYS_LINK: {{-1, 0, shares}, {-1, 1, makes}}, unix.SYS_SYMLINK: {{-1, 1, makes}},
	unix.SYS_MKNOD: {{-1, 0, makes}}, unix.SYS_CHMOD: {{-1, 0, changes}}, unix.SYS_CHOWN: {{-1, 0, changes}}, unix.SYS_LCHOWN: {{-1, 0, changes}},
	unix.SYS_UTIME: {{-1, 0, changes}}, unix.SYS_UTIMES: {{-1, 0, changes}}, unix.SYS_FUTIMESAT: {{0, 1, changes}},
}
