// The pages of the program itself. The kernel maps those of a file around each one that is touched,
// and keeps them mapped: what only the start needed counts as the daemon's memory for as long as it
// lives.

package daemon

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram takes the program's own pages, and those of libraries, out of the daemon's memory.
// They stay in the kernel's page cache, where it can take them when memory is short, and the next
// use of each maps it again without reading the disk. It is best effort.
func dropProgram() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range unchangedFiles(maps) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchangedFiles returns the mappings in the contents of /proc/self/smaps that are files which this
// process cannot write and has not changed. A page that it has changed, as where a program is
// relocated, is a copy that no file has: dropping it would lose the change.
func unchangedFiles(smaps io.Reader) (found []mapping) {
	var m mapping
	var perms, offset, device, file string
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		name, value, _ := strings.Cut(line, ":")
		switch {
		case strings.Contains(name, " "): // the first line of a mapping
			var inode uint64
			perms, file = "", ""
			_, _ = fmt.Sscanf(line, "%x-%x %s %s %s %d %s", &m.from, &m.to, &perms, &offset, &device, &inode, &file)
		case name == "Anonymous" && strings.TrimSpace(value) == "0 kB" && strings.HasPrefix(file, "/") && strings.HasSuffix(perms, "p") && !strings.Contains(perms, "w"):
			found = append(found, m)
		}
	}
	return found
}
