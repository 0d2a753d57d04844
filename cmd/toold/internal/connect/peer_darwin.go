package connect

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// peerOf returns the user and the process at the other end of a socket.
func peerOf(fd int) (uid, pid int, err error) {
	cred, credErr := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	pid, err = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err = errors.Join(credErr, err); err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), pid, nil
}

// StartOf returns when a process was started, in a form that no other process with its number ever has.
func StartOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Proc.P_starttime.Sec, " ", info.Proc.P_starttime.Usec), nil
}
