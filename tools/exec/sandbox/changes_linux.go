// The system calls that change files by name, and which of their arguments are names.

package sandbox

import (
	"maps"
	"sync"

	"golang.org/x/sys/unix"
)

// named maps those calls, and those that open a file, to their path arguments.
var named = map[uintptr][]name{
	unix.SYS_OPENAT: {{0, 1, opens}}, unix.SYS_OPENAT2: {{0, 1, opens}}, unix.SYS_FCHMOD: {{0, -1, changes}}, unix.SYS_MKDIRAT: {{0, 1, makes}}, unix.SYS_UNLINKAT: {{0, 1, removes}},
	unix.SYS_RENAMEAT: {{0, 1, removes}, {2, 3, replaces}}, unix.SYS_RENAMEAT2: {{0, 1, removes}, {2, 3, replaces}}, unix.SYS_LINKAT: {{0, 1, shares}, {2, 3, makes}},
	unix.SYS_SYMLINKAT: {{1, 2, makes}}, unix.SYS_MKNODAT: {{0, 1, makes}}, unix.SYS_FCHMODAT: {{0, 1, changes}}, unix.SYS_FCHMODAT2: {{0, 1, changes}},
	unix.SYS_FCHOWNAT: {{0, 1, changes}}, unix.SYS_UTIMENSAT: {{0, 1, changes}}, unix.SYS_TRUNCATE: {{-1, 0, changes}}, unix.SYS_SETXATTR: {{-1, 0, changes}},
	unix.SYS_LSETXATTR: {{-1, 0, changes}}, unix.SYS_REMOVEXATTR: {{-1, 0, changes}}, unix.SYS_LREMOVEXATTR: {{-1, 0, changes}},
}

// namesOf is named with the additional calls of this architecture.
var namesOf = sync.OnceValue(func() map[uintptr][]name {
	all := maps.Clone(named)
	maps.Copy(all, namedHere)
	return all
})
