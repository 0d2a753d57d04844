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
)

func devices(p *probe) {
	f, out := p.inside("devices"), p.outside("devices")
	opens := func(flags int, paths ...string) {
		for _, path := range paths {
			f("open "+path, func() error { return opened(path, flags) })
		}
	}
	opens(unix.O_RDONLY, "/dev/mem", "/dev/port", "/dev/kmsg", "/dev/vsock", "/dev/hwrng", "/dev/input/event0", "/dev/cpu/0/msr")
	opens(unix.O_RDWR, "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/vhost-net", "/dev/userfaultfd", "/dev/loop-control",
		"/dev/mapper/control", "/dev/dri/card0")
	opens(unix.O_WRONLY, "/dev/uinput", "/dev/console", "/dev/tty1")
	f("read a block device", p.blockDevice)
	f("open a device that lies outside of /dev", func() error { return opened(p.Device, unix.O_RDONLY) })
	node := func(name string, kind uint32, device uint64) {
		f(name, func() error {
			check(unix.Mknod(p.own+"/node", kind|0o600, int(device)))
			fd, err := unix.Open(p.own+"/node", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			_ = unix.Close(fd)
			return p.did(nil, "made; opened: %v", err)
		})
	}
	node("mknod a character device in the root", unix.S_IFCHR, unix.Mkdev(1, 3))
	node("mknod a block device in the root", unix.S_IFBLK, unix.Mkdev(7, 0))
	out("mknod a character device outside", func() error { return unix.Mknod(p.fresh, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) })
	out("write to another process's terminal", func() error {
		return write(open(p.Terminal, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK), string(p.say))
	})
	f("TIOCSTI on a terminal", func() error { return p.typeOn(unix.TIOCSTI) })
	f("TIOCSTI with a high half that a filter may overlook", func() error { return p.typeOn(1<<32 | unix.TIOCSTI) })
	f("TIOCLINUX on a console", func() error {
		asked := byte(6) // where the state of the shift keys is
		return call(unix.SYS_IOCTL, open("/dev/tty0", unix.O_RDWR|unix.O_NOCTTY), unix.TIOCLINUX, unsafe.Pointer(&asked))
	})
	f("take the controlling terminal", func() error { return opened("/dev/tty", unix.O_RDWR) })
}

// blockDevice reads from the first that there is.
func (p *probe) blockDevice() error {
	last := error(unix.ENODEV)
	for _, name := range must(os.ReadDir("/sys/block")) {
		f, err := os.Open(filepath.Join("/dev", name.Name()))
		if err != nil {
			last = err
			continue
		}
		n, err := f.Read(make([]byte, 512))
		f.Close()
		if n > 0 {
			return p.did(nil, "a sector of %s", f.Name())
		}
		if !errors.Is(err, io.EOF) { // a loop device without a file
			last = err
		}
	}
	return last
}

// typeOn has a call type a letter on the terminal that the probe has got or, if it has none, on one of its own, which it makes
// its controlling one.
func (p *probe) typeOn(request int) error {
	try := func(fd int) error {
		typed := byte('x')
		return call(unix.SYS_IOCTL, fd, request, unsafe.Pointer(&typed))
	}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		return p.did(try(0), "on the terminal given")
	}
	leader := open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY)
	n := must(unix.IoctlGetInt(leader, unix.TIOCGPTN))
	check(unix.IoctlSetPointerInt(leader, unix.TIOCSPTLCK, 0))
	fd := open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY)
	_, leads := unix.Setsid()
	err := try(fd)
	if err != nil && leads == nil {
		taken := call(unix.SYS_IOCTL, fd, unix.TIOCSCTTY, 0)
		err = errors.Join(try(fd), taken)
	}
	return p.did(err, "on a terminal of its own")
}
