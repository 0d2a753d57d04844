package connect

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// peerOf returns the user at the other end of a socket.
func peerOf(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

// StartOf returns when a process was started, in a form that no other process with its number ever has.
func StartOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Proc.P_starttime.Sec, " ", info.Proc.P_starttime.Usec), nil
}
