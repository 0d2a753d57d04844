// Processes and users, as the kernel reports them.

package access

import "golang.org/x/sys/unix"

// peerOf returns the process and user that connected.
func peerOf(fd int) (pid, uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return pid, int(cred.Uid), err
}

// processOf returns a process and the number of its parent.
func processOf(pid int) (p Process, parent int, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return p, 0, err
	}
	start := info.Proc.P_starttime
	return Process{pid, uint64(start.Sec)*1e6 + uint64(start.Usec)}, int(info.Eproc.Ppid), nil
}

// ProgramOf returns the name of the program that a process runs, cut to 16 bytes; empty: it cannot be seen.
func ProgramOf(pid int) string {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(info.Proc.P_comm[:])
}

// startedHere is unknown here: orphans do not become the daemon's children.
func startedHere(int) (bool, error) { return false, nil }
