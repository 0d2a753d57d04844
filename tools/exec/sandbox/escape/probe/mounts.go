//go:build linux

// Doors that change what is mounted. All of it happens on the door's own directories, and is undone.

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mounts(p *probe) {
	f, at := p.inside("mounts"), p.swapped
	dir, base := filepath.Split(p.HiddenInside)
	mounts := func(name, kind, options string) {
		f(name, func() error { return p.mounted(unix.Mount("none", at, kind, 0, options)) })
	}
	mounts("mount a tmpfs", "tmpfs", "")
	mounts("mount a proc", "proc", "")
	mounts("mount an overlay", "overlay", fmt.Sprintf("lowerdir=%s:%s", p.own, p.out))
	f("bind a hidden directory to another place and read it", func() error {
		check(unix.Mount(dir, at, "", unix.MS_BIND, ""))
		defer unix.Unmount(at, unix.MNT_DETACH)
		return p.read(filepath.Join(at, base))
	})
	f("bind a directory outside and make it writable", func() error { // from where it is read-only to where it is not
		check(unix.Mount(p.out, at, "", unix.MS_BIND, ""))
		defer unix.Unmount(at, unix.MNT_DETACH)
		check(unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
		return scribble(filepath.Join(at, "victim"), unix.O_WRONLY)
	})
	f("change how mounts spread", func() error {
		// The door's directory is no mount point: it is a private one, or it is refused after who asks is known.
		return p.reached(unix.Mount("", p.own, "", unix.MS_PRIVATE, ""))
	})
	f("fsopen, fsmount, move_mount", func() error {
		fs := must(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC))
		const create = 6 // FSCONFIG_CMD_CREATE
		check(call(unix.SYS_FSCONFIG, fs, create, 0, 0, 0))
		m := must(unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0))
		return p.mounted(unix.MoveMount(m, "", cwd, at, unix.MOVE_MOUNT_F_EMPTY_PATH))
	})
	f("open_tree a hidden directory and read it", func() error { return p.read(self(cloneTree(dir)) + "/" + base) })
	p.outside("mounts")("mount_setattr a copy of outside to writable and write", func() error {
		fd := cloneTree(p.out)
		check(unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
		return scribble(self(fd)+"/victim", unix.O_WRONLY)
	})
	f("umount2", func() error { return p.reached(unix.Unmount(at, unix.MNT_DETACH)) })
	f("pivot_root", func() error { return p.reached(unix.PivotRoot(at, at)) }) // no mount point: refused in any case
	f("chroot", func() error { return unix.Chroot(p.own) })
	f("break out of a chroot", func() error {
		check(errors.Join(unix.Chroot(at), unix.Chdir("../../../../../../../../..")))
		return unix.Chroot(".")
	})
	f("fspick the root's mount", func() error { return call(unix.SYS_FSPICK, cwd, "/", unix.FSPICK_CLOEXEC) })
	f("open the mount namespace of a process outside", func() error { // and ask for its number
		fd := open(proc(p.Victim.PID, "ns/mnt"), unix.O_RDONLY)
		p.mustBeVictim()
		const id = 0x8008b705 // NS_GET_MNTNS_ID
		var number uint64
		err := call(unix.SYS_IOCTL, fd, id, unsafe.Pointer(&number))
		return p.did(err, "its mount namespace is %d", number)
	})
}

// mounted unmounts again what has been mounted.
func (p *probe) mounted(err error) error {
	check(err)
	p.then(unix.Unmount(p.swapped, unix.MNT_DETACH))
	return nil
}

func cloneTree(path string) int {
	return must(unix.OpenTree(cwd, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
}
