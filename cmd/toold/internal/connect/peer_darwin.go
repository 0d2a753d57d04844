package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peer returns the user and the process at the other end.
func peer(conn *net.UnixConn) (uid, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, fmt.Errorf("the socket's other end cannot be identified: %w", err)
	}
	var credErr, pidErr error
	controlErr := raw.Control(func(fd uintptr) {
		var cred *unix.Xucred
		if cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); credErr == nil {
			uid = int(cred.Uid)
		}
		pid, pidErr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err := errors.Join(controlErr, credErr, pidErr); err != nil {
		return 0, 0, fmt.Errorf("the socket's other end cannot be identified: %w", err)
	}
	return uid, pid, nil
}

type process struct{}

func holdProcess(int) (*process, error) { return nil, errors.ErrUnsupported }

func (p *process) gone(context.Context) error { return errors.ErrUnsupported }

func (p *process) release() {}

func (p *process) endsWithin(time.Duration) bool { return false }

func (p *process) signal(syscall.Signal) error { return errors.ErrUnsupported }

func (p *process) flag(string) (string, bool) { return "", false }

func (p *process) locks(string) bool { return false }

// StartOf returns when a process was started, in a form that no other process with its number ever has.
func StartOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Proc.P_starttime.Sec, " ", info.Proc.P_starttime.Usec), nil
}
