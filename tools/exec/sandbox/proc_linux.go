// Processes as the kernel's /proc shows them.

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rssUnit is the unit in which the kernel counts peak memory, in bytes.
const rssUnit = 1024

// inheritedRSS returns the peak memory that children inherit from the daemon, in bytes.
func inheritedRSS() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return math.MaxInt64
	}
	return usage.Maxrss * rssUnit
}

// ticksPerSecond is USER_HZ, which is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// A member is one process at one moment. PID and start time together identify it.
type member struct {
	pid, parent, session int
	group                int    // of processes
	start                uint64 // ticks since boot
	dead                 bool   // a zombie: it runs no more
	exiting              bool   // about to end
	bare                 bool   // it has no environment
	comm                 string
}

// ticks returns the time since boot, in the unit in which the kernel records when a process began.
func ticks() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return uint64(t.Sec)*ticksPerSecond + uint64(t.Nsec)/(1e9/ticksPerSecond)
}

// lastPID returns the number of the newest process; 0: unknown.
func lastPID() int {
	load, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(load))
	if len(fields) == 0 {
		return 0
	}
	last, _ := strconv.Atoi(fields[len(fields)-1])
	return last
}

// look reads /proc for pid.
func look(pid int) (member, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return member{}, err
	}
	return parseStat(string(stat))
}

// parseStat reads a line as proc_pid_stat(5) describes it. The name, in parentheses, may itself hold anything.
func parseStat(line string) (m member, err error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return member{}, errors.New("not a stat line")
	}
	fields := strings.Fields(line[end+1:]) // from the third field on
	if len(fields) < 20 {
		return member{}, errors.New("a stat line that is too short")
	}
	m.comm = line[open+1 : end]
	numbers := []struct {
		to   *int
		text string
	}{{&m.pid, strings.TrimSpace(line[:open])}, {&m.parent, fields[1]}, {&m.group, fields[2]}, {&m.session, fields[3]}}
	for _, n := range numbers {
		if *n.to, err = strconv.Atoi(n.text); err != nil {
			return member{}, err
		}
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return member{}, err
	}
	const pfExiting = 0x4 // PF_EXITING of the kernel's linux/sched.h
	m.exiting = flags&pfExiting != 0
	m.start, err = strconv.ParseUint(fields[19], 10, 64)
	const pfKthread, envStart, envEnd = 0x200000, 47, 48 // PF_KTHREAD of linux/sched.h, and where in memory the environment is
	m.bare = flags&pfKthread != 0 || len(fields) <= envEnd || fields[envEnd] != "0" && fields[envEnd] == fields[envStart]
	// A process whose first thread has ended shows as a zombie while its other threads still run.
	m.dead = fields[0] == "X" || fields[0] == "Z" && (fields[17] == "0" || fields[17] == "1")
	return m, err
}

// scan returns every living process that can be seen.
func scan() []member {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.Readdirnames(-1) // a partial list is used as far as it goes
	var all []member
	for _, name := range entries {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if m, err := look(pid); err == nil && !m.dead {
			all = append(all, m)
		}
	}
	return all
}

// marker returns the marker in the process's environment, as it was when its program began.
func (m member) marker() string {
	for entry := range strings.SplitSeq(m.environ(), "\x00") {
		if value, ok := strings.CutPrefix(entry, MarkerName+"="); ok {
			return value
		}
	}
	return ""
}

// environ returns the process's environment; each entry is NAME=value, ended by NUL. It is empty if it cannot be read.
// While the process begins another program, the kernel shows none: environ waits until it is there, but not for long, since
// the program may come from a slow disk.
func (m member) environ() string {
	for deadline := time.Now().Add(time.Second); ; awaitAny([]member{m}, time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", m.pid))
		if err != nil || len(text) > 0 {
			return string(text)
		}
		if now, err := look(m.pid); err != nil || now.bare || now.exiting || now.dead || time.Now().After(deadline) {
			return ""
		}
	}
}

// isEnding reports whether the process is about to end, or has ended, by now.
func (m member) isEnding() bool {
	now, err := look(m.pid)
	return err != nil || now.dead || now.exiting || now.start != m.start
}

// name returns the command line, or the kernel's name of the process if that is unavailable.
func (m member) name() string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", m.pid))
	line = bytes.TrimRight(line, "\x00")
	if len(line) == 0 {
		line = []byte(m.comm)
	}
	return shownLine(string(line))
}

// shownLine returns at most 80 characters of a command line, without unprintable ones.
func shownLine(line string) string {
	const most = 80
	clean := func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}
	runes := []rune(strings.Map(clean, strings.ToValidUTF8(line, "\uFFFD")))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return string(runes)
}

// signal sends sig, if the number still belongs to the same process. There is no error if the
// process is gone.
func (m member) signal(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, err := look(m.pid); err == nil && now.start == m.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// awaitExit returns when the child pid is dead, and how it has ended, without collecting it. ok is
// false if it did not exit by itself.
func awaitExit(pid int) (exit Exit, ok bool) {
	var info unix.Siginfo
	var usage unix.Rusage
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, &usage)
	}
	const exited = 1 // CLD_EXITED of the kernel's asm-generic/siginfo.h
	if err != nil || info.Code != exited {
		return Exit{}, false
	}
	status := (*[unsafe.Sizeof(info) / 4]int32)(unsafe.Pointer(&info))[6] // si_status, on 64 bits
	return Exit{Code: int(status), MaxRSS: usage.Maxrss * rssUnit}, true
}

// becomeSubreaper makes orphans children of the daemon, and returns the daemon's kernel session.
// The daemon's own inherited descriptors are not passed on. An emulator of user programs, as qemu-user, has neither subreapers nor
// confinement: there orphans are found by their marks only, and nothing is started unless it may run unconfined.
func becomeSubreaper() (session int, err error) {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // an old kernel cannot, and children inherit them
	err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if emulated := errors.Is(err, unix.EINVAL) && seccompThere(0) != nil; err != nil && !emulated {
		return 0, err
	}
	return unix.Getsid(0)
}

// grow enlarges a pipe that carries much, so that pieces are fewer and larger. An error does no
// harm.
func grow(fd uintptr) {
	const much = 256 << 10
	_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, much)
}

// forever is the limit of awaitAny that never passes.
const forever = -time.Millisecond

// awaitAny returns when one of the processes has ended, or after limit. If the daemon cannot wait for
// any of them, because the kernel is too old or no descriptors are left, it returns after a while.
func awaitAny(some []member, limit time.Duration) {
	var polls []unix.PollFd
	for _, m := range some {
		fd, err := unix.PidfdOpen(m.pid, 0)
		if errors.Is(err, unix.ESRCH) {
			return
		}
		if err == nil {
			defer unix.Close(fd)
			polls = append(polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	if len(polls) == 0 {
		limit = again
	}
	_, _ = unix.Poll(polls, int(limit.Milliseconds()))
}
