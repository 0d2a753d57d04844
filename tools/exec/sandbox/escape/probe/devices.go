//go:build linux

// Doors to devices and terminals. A device is opened and, at most, read from: opening some would already do something
// (a watchdog's begins to count), and those are not here.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func devices() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "devices", false, try}
	}
	opens := func(path string, flags int) door {
		return f("open "+path, func(*scene.Scene) (string, error) { return opened(path, flags) })
	}
	node := func(name string, kind uint32, device uint64) door {
		return f(name, func(s *scene.Scene) (string, error) {
			check(unix.Mknod(own(s, "node"), kind|0o600, int(device)))
			detail, err := opened(own(s, "node"), unix.O_RDONLY)
			if err != nil {
				return "made, but not opened: " + err.Error(), nil
			}
			return "made and " + detail, nil
		})
	}
	return []door{
		opens("/dev/mem", unix.O_RDONLY),
		opens("/dev/port", unix.O_RDONLY),
		opens("/dev/kmsg", unix.O_RDONLY),
		opens("/dev/fuse", unix.O_RDWR),
		opens("/dev/kvm", unix.O_RDWR),
		opens("/dev/net/tun", unix.O_RDWR),
		opens("/dev/vhost-net", unix.O_RDWR),
		opens("/dev/vsock", unix.O_RDONLY),
		opens("/dev/userfaultfd", unix.O_RDWR),
		opens("/dev/loop-control", unix.O_RDWR),
		opens("/dev/mapper/control", unix.O_RDWR),
		opens("/dev/hwrng", unix.O_RDONLY),
		opens("/dev/uinput", unix.O_WRONLY),
		opens("/dev/input/event0", unix.O_RDONLY),
		opens("/dev/dri/card0", unix.O_RDWR),
		opens("/dev/console", unix.O_WRONLY),
		opens("/dev/tty1", unix.O_WRONLY),
		opens("/dev/cpu/0/msr", unix.O_RDONLY),
		f("read a block device", blockDevice),
		f("open a device that lies outside of /dev", func(s *scene.Scene) (string, error) { return opened(s.Device, unix.O_RDONLY) }),
		node("mknod a character device in the root", unix.S_IFCHR, unix.Mkdev(1, 3)),
		node("mknod a block device in the root", unix.S_IFBLK, unix.Mkdev(7, 0)),
		plain("devices", "mknod a character device outside", func(s *scene.Scene) error {
			return unix.Mknod(out(s, "new"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}),
		plain("devices", "write to another process's terminal", func(s *scene.Scene) error {
			fd := must(unix.Open(s.Terminal, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0))
			return write(fd, scene.Slug("write to another process's terminal")+"\n")
		}),
		f("TIOCSTI on a terminal", func(*scene.Scene) (string, error) {
			return onTerminal(func(fd uintptr) error {
				typed := byte('x')
				return call(unix.SYS_IOCTL, fd, unix.TIOCSTI, uintptr(unsafe.Pointer(&typed)))
			})
		}),
		f("TIOCSTI with a high half that a filter may overlook", func(*scene.Scene) (string, error) {
			return onTerminal(func(fd uintptr) error {
				typed := byte('x')
				return call(unix.SYS_IOCTL, fd, uintptr(uint64(1)<<32|unix.TIOCSTI), uintptr(unsafe.Pointer(&typed)))
			})
		}),
		f("TIOCLINUX on a console", func(*scene.Scene) (string, error) {
			fd := must(unix.Open("/dev/tty0", unix.O_RDWR|unix.O_NOCTTY, 0))
			asked := byte(6) // where the state of the shift keys is
			return "the console answers", call(unix.SYS_IOCTL, uintptr(fd), unix.TIOCLINUX, uintptr(unsafe.Pointer(&asked)))
		}),
		f("take the controlling terminal", func(*scene.Scene) (string, error) {
			return opened("/dev/tty", unix.O_RDWR)
		}),
	}
}

// blockDevice reads from the first that there is.
func blockDevice(*scene.Scene) (string, error) {
	names := must(os.ReadDir("/sys/block"))
	last := error(unix.ENODEV)
	for _, name := range names {
		f, err := os.Open(filepath.Join("/dev", name.Name()))
		if err != nil {
			last = err
			continue
		}
		n, err := f.Read(make([]byte, 512))
		f.Close()
		if n > 0 {
			return "a sector of " + f.Name(), nil
		}
		if !errors.Is(err, io.EOF) { // a loop device without a file
			last = err
		}
	}
	return "", last
}

// onTerminal tries it on the terminal that the probe has got or, if it has none, on one of its own, which it makes its
// controlling one.
func onTerminal(try func(fd uintptr) error) (string, error) {
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		return "on the terminal given", try(0)
	}
	leader := must(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
	n := must(unix.IoctlGetInt(leader, unix.TIOCGPTN))
	check(unix.IoctlSetPointerInt(leader, unix.TIOCSPTLCK, 0))
	fd := must(unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0))
	_, leads := unix.Setsid()
	err := try(uintptr(fd))
	if err != nil && leads == nil {
		taken := call(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSCTTY, 0)
		err = errors.Join(try(uintptr(fd)), taken)
	}
	return "on a terminal of its own", err
}
