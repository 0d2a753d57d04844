// Processes and users, as the kernel reports them.

package access

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
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
	_, session, err := lineage(pid)
	if err != nil {
		return false, err
	}
	_, ours, err := lineage(os.Getpid())
	if err != nil {
		return false, err
	}
	for pid > 1 {
		if pid == os.Getpid() {
			return session != ours, nil
		}
		if pid, _, err = lineage(pid); err != nil {
			return false, err
		}
	}
	return false, nil
}

// lineage returns a process's parent and kernel session.
func lineage(pid int) (parent, session int, err error) {
	facts, err := statOf(pid)
	if err != nil {
		return 0, 0, err
	}
	var state string
	var group int
	if _, err := fmt.Sscan(strings.Join(facts, " "), &state, &parent, &group, &session); err != nil {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return parent, session, nil
}

// statOf returns what stands in /proc/PID/stat behind the name, which can hold anything: the state first.
func statOf(pid int) ([]string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])), nil
}

// processOf returns a process and the number of its parent.
func processOf(pid int) (p Process, parent int, err error) {
	facts, err := statOf(pid)
	if err != nil {
		return p, 0, err
	}
	const behindName, startTime = 3, 22 // proc(5) counts from 1
	if len(facts) <= startTime-behindName {
		return p, 0, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	p.PID = pid
	if p.Start, err = strconv.ParseUint(facts[startTime-behindName], 10, 64); err != nil {
		return p, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	parent, err = strconv.Atoi(facts[1])
	return p, parent, err
}

// ProgramOf returns the file that a process runs, or "" if it cannot be seen.
func ProgramOf(pid int) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return path
}
