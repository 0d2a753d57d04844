//go:build linux

// Doors that change what is mounted. All of it happens on the door's own directories, and is undone.

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

func mounts() []door {
	f := func(name string, try func(*scene.Scene) (string, error)) door {
		return door{name, "mounts", false, try}
	}
	return []door{
		f("mount a tmpfs", func(s *scene.Scene) (string, error) {
			return undone(own(s, swapped), unix.Mount("none", own(s, swapped), "tmpfs", 0, ""))
		}),
		f("mount a proc", func(s *scene.Scene) (string, error) {
			return undone(own(s, swapped), unix.Mount("none", own(s, swapped), "proc", 0, ""))
		}),
		f("mount an overlay", func(s *scene.Scene) (string, error) {
			layers := fmt.Sprintf("lowerdir=%s:%s", s.Own, s.Out)
			return undone(own(s, swapped), unix.Mount("none", own(s, swapped), "overlay", 0, layers))
		}),
		f("bind a hidden directory to another place and read it", func(s *scene.Scene) (string, error) {
			to := own(s, swapped)
			check(unix.Mount(filepath.Dir(s.HiddenInside), to, "", unix.MS_BIND, ""))
			defer unix.Unmount(to, unix.MNT_DETACH)
			return read(s, filepath.Join(to, filepath.Base(s.HiddenInside)))
		}),
		f("bind a directory outside and make it writable", bindWritable),
		f("change how mounts spread", func(s *scene.Scene) (string, error) {
			// The door's directory is no mount point: it is a private one, or it is refused after who asks is known.
			return reached(unix.Mount("", s.Own, "", unix.MS_PRIVATE, ""))
		}),
		f("fsopen, fsmount, move_mount", newMount),
		f("open_tree a hidden directory and read it", func(s *scene.Scene) (string, error) {
			fd := cloneTree(filepath.Dir(s.HiddenInside))
			return read(s, fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(s.HiddenInside)))
		}),
		plain("mounts", "mount_setattr a copy of outside to writable and write", func(s *scene.Scene) error {
			fd := cloneTree(s.Out)
			attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
			check(unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr))
			return scribble(fmt.Sprintf("/proc/self/fd/%d/%s", fd, victimFile), unix.O_WRONLY)
		}),
		f("umount2", func(s *scene.Scene) (string, error) {
			return reached(unix.Unmount(own(s, swapped), unix.MNT_DETACH))
		}),
		f("pivot_root", func(s *scene.Scene) (string, error) { // no mount point: refused in any case
			return reached(unix.PivotRoot(own(s, swapped), own(s, swapped)))
		}),
		f("chroot", func(s *scene.Scene) (string, error) { return "in another root", unix.Chroot(s.Own) }),
		f("break out of a chroot", func(s *scene.Scene) (string, error) {
			check(errors.Join(unix.Chroot(own(s, swapped)), unix.Chdir("../../../../../../../../..")))
			return "at the old root", unix.Chroot(".")
		}),
		f("fspick the root's mount", func(*scene.Scene) (string, error) {
			fd, err := result(unix.SYS_FSPICK, uintptr(dirfd), text("/"), unix.FSPICK_CLOEXEC)
			_ = unix.Close(int(fd))
			return "its configuration is open", err
		}),
		f("open the mount namespace of a process outside", foreignMounts),
	}
}

// dirfd is AT_FDCWD as a variable, so that it can be converted.
var dirfd = unix.AT_FDCWD

// undone unmounts again what has been mounted.
func undone(at string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return finish(unix.Unmount(at, unix.MNT_DETACH))("mounted", nil)
}

// bindWritable takes a directory outside, which is mounted read-only, to where it is not.
func bindWritable(s *scene.Scene) (string, error) {
	to := own(s, swapped)
	check(unix.Mount(s.Out, to, "", unix.MS_BIND, ""))
	defer unix.Unmount(to, unix.MNT_DETACH)
	check(unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	return "written", scribble(filepath.Join(to, victimFile), unix.O_WRONLY)
}

func cloneTree(path string) int {
	return must(unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
}

func newMount(s *scene.Scene) (string, error) {
	fs := must(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC))
	const create = 6 // FSCONFIG_CMD_CREATE
	check(call(unix.SYS_FSCONFIG, uintptr(fs), create, 0, 0, 0))
	m := must(unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0))
	err := unix.MoveMount(m, "", unix.AT_FDCWD, own(s, swapped), unix.MOVE_MOUNT_F_EMPTY_PATH)
	return undone(own(s, swapped), err)
}

// foreignMounts asks for another mount namespace's mounts, by its descriptor.
func foreignMounts(s *scene.Scene) (string, error) {
	fd := must(unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", s.Victim.PID), unix.O_RDONLY|unix.O_CLOEXEC, 0))
	mustBeVictim(s)
	const id = 0x8008b705 // NS_GET_MNTNS_ID
	var number uint64
	check(call(unix.SYS_IOCTL, uintptr(fd), id, uintptr(unsafe.Pointer(&number))))
	return fmt.Sprintf("its mount namespace is %d", number), nil
}
