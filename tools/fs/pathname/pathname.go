// Package pathname answers common questions about paths. It does not know whose paths they are.
package pathname

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Aside is the beginning of the names of what the sandbox has moved aside.
const Aside = ".denied-"

// Within reports whether path is dir or lies below it. Both are clean and absolute, or relative to
// the same directory.
func Within(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || dir == "/" || path[len(dir)] == '/')
}

// Deepest returns the longest of dirs that path is or lies below; empty if there is none.
func Deepest(dirs []string, path string) (found string) {
	for _, dir := range dirs {
		if len(dir) > len(found) && Within(dir, path) {
			found = dir
		}
	}
	return found
}

// Program returns the path of a program: joined to dir if its name has a slash, whether or not it
// is there, else where PATH in environ, a list of NAME=value, has it. Relative entries of PATH do
// not count.
func Program(name, dir string, environ []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for _, entry := range environ {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, place := range filepath.SplitList(list) {
			if path := filepath.Join(place, name); filepath.IsAbs(place) && Executable(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the program %q is not in PATH", name)
}

// IsDir reports whether path leads to a directory. Unlike os.Stat it allocates nothing but the name for the kernel.
func IsDir(path string) bool {
	var info unix.Stat_t
	for {
		if err := unix.Stat(path, &info); err != unix.EINTR {
			return err == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR
		}
	}
}

// IsLink reports whether path is a symbolic link. Unlike os.Lstat it allocates nothing but the name for the kernel.
func IsLink(path string) bool {
	var info unix.Stat_t
	for {
		if err := unix.Lstat(path, &info); err != unix.EINTR {
			return err == nil && info.Mode&unix.S_IFMT == unix.S_IFLNK
		}
	}
}

// Executable reports whether path leads to a regular file that this process may execute.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// WithinAny reports whether path is one of the directories or lies below one.
func WithinAny(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return Within(dir, path) })
}
