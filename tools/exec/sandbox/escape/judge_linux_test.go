// Looks at what the probe may have changed, before and after.

package escape

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// look describes everything that must stay as it is: each door's directory outside, the protected paths, the victim.
func (s *Scene) look() map[string]string {
	all := make(map[string]string)
	for _, d := range s.listed {
		slug := scene.Slug(d.Door)
		all[slug] = described(filepath.Join(s.Outside, slug), file)
		if d.Group == scene.Temporary {
			all[slug] += described(filepath.Join(s.Shown, slug), file)
		}
		if d.Guards != "" {
			all[slug] += described(d.Guards, said)
		}
	}
	for door, how := range s.attributes() {
		all[scene.Slug(door)] += how
	}
	return all
}

// compare notes what is no longer as it was.
func (s *Scene) compare() {
	for slug, now := range s.look() {
		if now != s.before[slug] {
			s.seen.note(slug, difference(s.before[slug], now))
		}
	}
}

// difference returns the first line that is new or, if none is, the first that is gone.
func difference(was, now string) string {
	for line := range strings.Lines(now) {
		if !strings.Contains(was, line) {
			return "now " + strings.TrimSpace(line)
		}
	}
	for line := range strings.Lines(was) {
		if !strings.Contains(now, line) {
			return "gone: " + strings.TrimSpace(line)
		}
	}
	return "in another order"
}

// said describes what counts at a protected path, where what stood there may be put back: kind, mode, owner and content.
func said(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("mode %o, owner %d:%d", st.Mode, st.Uid, st.Gid)
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		content, err := os.ReadFile(path)
		text += fmt.Sprintf(", content %q %v", content, err)
	}
	return text
}

// described describes a file, or a directory with all below it, in one line each.
func described(top string, file func(path string) string) string {
	var b strings.Builder
	err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		fmt.Fprintf(&b, "%s %s\n", name, file(path))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "absent\n"
	}
	if err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	return b.String()
}

// file describes a file. All but the time of the last access counts.
func file(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	said := fmt.Sprintf("mode %o, owner %d:%d, inode %d, links %d, size %d, blocks %d, changed %d.%09d, %d.%09d", st.Mode, st.Uid, st.Gid, st.Ino,
		st.Nlink, st.Size, st.Blocks, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return said
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return said + ", " + err.Error()
	}
	value := make([]byte, 64)
	if n, err := unix.Getxattr(path, "user.toold", value); err == nil {
		said += fmt.Sprintf(", attribute %q", value[:n])
	}
	return fmt.Sprintf("%s, content %.12q", said, content)
}

// attributes are what others can change of a process, by the door that tries.
func (s *Scene) attributes() map[string]string {
	pid := s.Victim.PID
	number := func(trap uintptr, args ...uintptr) string {
		var a [3]uintptr
		copy(a[:], args)
		r, _, no := unix.Syscall(trap, a[0], a[1], a[2])
		return fmt.Sprintf("%d %d\n", r, no)
	}
	content := func(name string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		return fmt.Sprintf("%s%v\n", b, err)
	}
	var set unix.CPUSet
	cpus := unix.SchedGetaffinity(pid, &set)
	return map[string]string{
		"prlimit on a process outside":                         content("limits"),
		"setpriority on a process outside":                     number(unix.SYS_GETPRIORITY, unix.PRIO_PROCESS, uintptr(pid)),
		"ioprio_set on a process outside":                      number(unix.SYS_IOPRIO_GET, 1, uintptr(pid)),
		"sched_setaffinity on a process outside":               fmt.Sprintf("%d processors %v\n", set.Count(), cpus),
		"sched_setscheduler on a process outside":              number(unix.SYS_SCHED_GETSCHEDULER, uintptr(pid)),
		"write /proc/PID/oom_score_adj of a process outside":   content("oom_score_adj"),
		"write /proc/PID/coredump_filter of a process outside": content("coredump_filter"),
	}
}

// victimSaw ends the process outside, and notes what it had to say.
func (s *Scene) victimSaw() {
	for line := range strings.Lines(s.victim.end()) {
		var n int
		if _, err := fmt.Sscanf(line, "signal %d", &n); err == nil {
			s.signalled(n, "the process outside")
		}
		if strings.HasPrefix(line, "memory ") {
			s.seen.note(scene.Slug("process_vm_writev into a process outside"), "its memory was overwritten")
		}
	}
	for where, fd := range map[string]int{"it is on the terminal": s.leader, "it is in the pipe": s.piped} {
		b := make([]byte, 4096)
		if n, err := unix.Read(fd, b); err == nil {
			for said := range strings.FieldsSeq(string(b[:n])) {
				s.seen.note(said, where)
			}
		}
	}
}

// besideSaw notes who has come to the processes of other calls. That the one that was left running passes a file is seen by the
// file.
func (s *Scene) besideSaw() {
	said, _ := os.ReadFile(s.Beside + "/heard")
	for door := range strings.FieldsSeq(string(said)) {
		s.seen.note(door, "the other session heard it")
	}
}

// leftBehind notes and takes away what is shared and outlives the probe.
func (s *Scene) leftBehind() {
	left := func(door, what string) { s.seen.note(scene.Slug(door), what) }
	if id, err := unix.SysvShmGet(s.Shared+1, 0, 0); err == nil {
		left("make System V shared memory that is seen outside", "a segment")
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	if id, _, no := unix.Syscall(unix.SYS_SEMGET, uintptr(s.Semaphores), 0, 0); no == 0 {
		left("make a System V semaphore that is seen outside", "a semaphore")
		_, _, _ = unix.Syscall(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID)
	}
	if id, _, no := unix.Syscall(unix.SYS_MSGGET, uintptr(s.Messages), 0, 0); no == 0 {
		left("make a System V message queue that is seen outside", "a queue")
		_, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
	}
	if name, err := unix.BytePtrFromString("toold-" + s.Nonce); err == nil {
		if _, _, no := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0); no == 0 {
			left("make a POSIX message queue that is seen outside", "a queue")
		}
	}
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		if os.Remove(filepath.Join(dir, "toold-"+s.Nonce)) == nil {
			left("write a file in "+dir+" that is seen outside", "the file")
		}
	}
	if os.Remove(filepath.Join(s.Home, "new")) == nil {
		left("write a file in the home directory", "the file")
	}
}
