// A file's metadata: owner, mode, extended attributes.

package workspace

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// keepAttributes sets the owner, group, extended attributes (access lists among them) and mode of
// to to those of from. It returns errInPlace if it cannot.
func keepAttributes(from, to *os.File) error {
	old, errOld := from.Stat()
	made, errMade := to.Stat()
	if err := errors.Join(errOld, errMade); err != nil {
		return err
	}
	want, got := old.Sys().(*syscall.Stat_t), made.Sys().(*syscall.Stat_t)
	if want.Uid != got.Uid || want.Gid != got.Gid {
		if err := to.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return errInPlace
		}
	}
	if err := keepXattrs(from, to); err != nil {
		return errInPlace
	}
	// The mode comes last: a change of owner clears set-user-id, and an access list changes the
	// group's bits.
	return to.Chmod(old.Mode())
}

// keepXattrs sets the extended attributes of to to those of from. Labels that the system sets by
// itself may stay.
func keepXattrs(from, to *os.File) error {
	want, err := xattrs(from)
	if err != nil {
		return err
	}
	got, err := xattrs(to)
	if err != nil {
		return err
	}
	for name, value := range want {
		if have, ok := got[name]; ok && bytes.Equal(have, value) {
			continue
		}
		if err := withDescriptor(to, func(fd int) error { return unix.Fsetxattr(fd, name, value, 0) }); err != nil {
			return err
		}
	}
	// An access list that the directory gives to new files, and that the old file did not have.
	const list = "system.posix_acl_access"
	if _, wanted := want[list]; !wanted && got[list] != nil {
		return withDescriptor(to, func(fd int) error { return unix.Fremovexattr(fd, list) })
	}
	return nil
}

// xattrs returns all extended attributes of f; none where the file system has no such thing.
func xattrs(f *os.File) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := withDescriptor(f, func(fd int) error {
		names, err := grow(func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) })
		if errors.Is(err, unix.ENOTSUP) {
			return nil
		}
		if err != nil {
			return err
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
			if name == "" {
				continue
			}
			value, err := grow(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, name, buf) })
			if err != nil {
				return err
			}
			all[name] = value
		}
		return nil
	})
	return all, err
}

// grow calls get with a larger and larger buffer until it fits. 64 KiB is the kernel's limit for
// both lists and values.
func grow(get func([]byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 16 {
		buf := make([]byte, size)
		n, err := get(buf)
		if errors.Is(err, unix.ERANGE) && size < 64<<10 {
			continue
		}
		return buf[:max(n, 0)], err
	}
}
