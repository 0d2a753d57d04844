// Package pathname answers common questions about paths. It does not know whose paths they are.
package pathname

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Within reports whether path is dir or lies below it. Both are clean and absolute, or relative to the same directory.
func Within(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || dir == "/" || path[len(dir)] == '/')
}

// Executable reports whether path leads to a regular file that this process may execute.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}
