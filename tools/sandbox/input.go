// What a process reads on its standard input: a file that has no name, so that nothing has to be written while the
// process runs, and one that never reads holds nobody. It does not know what the bytes mean.

package sandbox

import (
	"fmt"
	"io"
	"os"
)

// newInput returns an open file with content, to be read from its beginning. It is the caller's to close.
func newInput(content []byte) (*os.File, error) {
	f, err := inMemory("input", content)
	if err != nil {
		f, err = onDisk(content)
	}
	if err != nil {
		return nil, fmt.Errorf("making the standard input: %w", err)
	}
	return f, nil
}

// onDisk serves systems that have no files in memory.
func onDisk(content []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "input-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		err = fill(f, content)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// fill writes content and goes back to its beginning.
func fill(f *os.File, content []byte) error {
	if _, err := f.Write(content); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}
