//go:build linux

// Doors to memory, semaphores, queues and temporary directories that processes outside share.

package main

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

const createIPC = unix.IPC_CREAT | unix.IPC_EXCL | 0o666

func ipc() []door {
	f := func(name string, try func(*scene.Scene) error) door { return plain("shared", name, try) }
	return []door{
		{"read System V shared memory made outside", "shared", false, func(s *scene.Scene) (string, error) {
			id := must(unix.SysvShmGet(s.Shared, 0, 0))
			b, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			return told(s, b, err)
		}},
		f("make System V shared memory that is seen outside", func(s *scene.Scene) error {
			_, err := unix.SysvShmGet(s.Shared+1, 4096, createIPC)
			return err
		}),
		f("make a System V semaphore that is seen outside", func(s *scene.Scene) error {
			return call(unix.SYS_SEMGET, uintptr(s.Semaphores), 1, createIPC)
		}),
		f("make a System V message queue that is seen outside", func(s *scene.Scene) error {
			return call(unix.SYS_MSGGET, uintptr(s.Messages), createIPC)
		}),
		f("make a POSIX message queue that is seen outside", func(s *scene.Scene) error {
			return call(unix.SYS_MQ_OPEN, text("toold-"+s.Nonce), unix.O_CREAT|unix.O_RDWR, 0o600, 0)
		}),
		f("write a file in /dev/shm that is seen outside", func(s *scene.Scene) error { return create(s, "/dev/shm/toold-"+s.Nonce) }),
		f("write a file in /tmp that is seen outside", func(s *scene.Scene) error { return create(s, "/tmp/toold-"+s.Nonce) }),
		f("write a file in /var/tmp that is seen outside", func(s *scene.Scene) error { return create(s, "/var/tmp/toold-"+s.Nonce) }),
		f("write a file in the home directory", func(s *scene.Scene) error {
			return create(s, home(s)+"/new")
		}),
		f("write into a named pipe of others", func(s *scene.Scene) error {
			fd := must(unix.Open(s.PipeIn, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))
			return write(fd, scene.Slug("write into a named pipe of others")+"\n")
		}),
		{"read from a named pipe of others", "shared", false, func(s *scene.Scene) (string, error) {
			fd := must(unix.Open(s.PipeOut, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))
			return toldBy(s, func(b []byte) (int, error) { return unix.Read(fd, b) })
		}},
		{"put a key into the user's keyring", "shared", false, func(s *scene.Scene) (string, error) {
			const userKeyring = ^uintptr(3) // KEY_SPEC_USER_KEYRING, -4
			value := []byte("none")
			key := must(result(unix.SYS_ADD_KEY, text("user"), text("toold-"+s.Nonce), uintptr(unsafe.Pointer(&value[0])), uintptr(len(value)), userKeyring))
			return finish(call(unix.SYS_KEYCTL, unix.KEYCTL_UNLINK, key, userKeyring))("put in, and taken out", nil)
		}},
		{"watch with fanotify what others open", "shared", false, func(*scene.Scene) (string, error) {
			_, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC, unix.O_RDONLY)
			if errors.Is(err, unix.EINVAL) {
				return reached(err)
			}
			return "a group of events", err
		}},
	}
}
