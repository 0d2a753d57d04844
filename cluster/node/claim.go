package node

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// An InUseError is returned by Open for a directory that another node uses.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("another node uses the directory %s: stop it, or name another directory", e.Dir)
}

// claim locks a directory. The lock ends when the file is closed, at the latest with the process.
func claim(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = &InUseError{dir}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
