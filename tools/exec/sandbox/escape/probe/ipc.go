//go:build linux

// Doors to memory, semaphores, queues and temporary directories that processes outside share.

package main

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

func ipc(p *probe) {
	const made = unix.IPC_CREAT | unix.IPC_EXCL | 0o666
	in, f, name := p.inside("shared"), p.outside("shared"), "toold-"+p.Nonce
	in("read System V shared memory made outside", func() error {
		return p.told(unix.SysvShmAttach(must(unix.SysvShmGet(p.Shared, 0, 0)), 0, unix.SHM_RDONLY))
	})
	f("make System V shared memory that is seen outside", func() error {
		_, err := unix.SysvShmGet(p.Shared+1, 4096, made)
		return err
	})
	f("make a System V semaphore that is seen outside", func() error { return call(unix.SYS_SEMGET, p.Semaphores, 1, made) })
	f("make a System V message queue that is seen outside", func() error { return call(unix.SYS_MSGGET, p.Messages, made) })
	f("make a POSIX message queue that is seen outside", func() error {
		return call(unix.SYS_MQ_OPEN, name, unix.O_CREAT|unix.O_RDWR, 0o600, 0)
	})
	for _, dir := range []string{"/dev/shm", "/tmp", "/var/tmp"} {
		f("write a file in "+dir+" that is seen outside", func() error { return create(dir + "/" + name) })
	}
	f("write a file in the home directory", func() error { return create(strings.TrimSuffix(p.Credential, "/.ssh/id_test") + "/new") })
	f("write into a named pipe of others", func() error {
		return write(open(p.PipeIn, unix.O_WRONLY|unix.O_NONBLOCK), string(p.say))
	})
	in("read from a named pipe of others", func() error { return p.toldFrom(open(p.PipeOut, unix.O_RDONLY|unix.O_NONBLOCK)) })
	in("put a key into the user's keyring", func() error {
		const userKeyring = -4 // KEY_SPEC_USER_KEYRING
		key := must(result(unix.SYS_ADD_KEY, "user", name, "none", len("none"), userKeyring))
		p.detail = "put in, and taken out"
		p.then(call(unix.SYS_KEYCTL, unix.KEYCTL_UNLINK, key, userKeyring))
		return nil
	})
	in("watch with fanotify what others open", func() error {
		_, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC, unix.O_RDONLY)
		if errors.Is(err, unix.EINVAL) {
			return p.reached(err)
		}
		return err
	})
}
