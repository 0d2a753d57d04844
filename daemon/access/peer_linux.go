// Processes and users, as the kernel reports them.

package access

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// peerOf returns the process and user that connected.
func peerOf(fd int) (pid, uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), int(cred.Uid), nil
}

// startedHere reports whether a process was started for a call: it descends from the daemon and is in another kernel session. The
// daemon is a child subreaper, so orphans descend from it too. A process that has ended is an error. 0 stands for a process that
// this daemon cannot see, so it is not a descendant.
func startedHere(pid int) (bool, error) {
	if pid == 0 {
		return false, nil
	}
	_, session, _, err := statOf(pid)
	if err != nil {
		return false, err
	}
	_, ours, _, err := statOf(os.Getpid())
	if err != nil {
		return false, err
	}
	for pid > 1 {
		if pid == os.Getpid() {
			return session != ours, nil
		}
		if pid, _, _, err = statOf(pid); err != nil {
			return false, err
		}
	}
	return false, nil
}

// statOf returns a process's parent, its kernel session, and when it started.
func statOf(pid int) (parent, session int, start uint64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0, err
	}
	facts := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // behind the name, which can hold anything
	const state, startTime = 3, 22                                           // proc(5) counts from 1
	if len(facts) <= startTime-state {
		return 0, 0, 0, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	if _, err = fmt.Sscan(facts[1]+" "+facts[3]+" "+facts[startTime-state], &parent, &session, &start); err != nil {
		err = fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return parent, session, start, err
}

// processOf returns a process and the number of its parent.
func processOf(pid int) (p Process, parent int, err error) {
	parent, _, start, err := statOf(pid)
	return Process{pid, start}, parent, err
}

// ProgramOf returns the file that a process runs, or "" if it cannot be seen.
func ProgramOf(pid int) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return path
}
