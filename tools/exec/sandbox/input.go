// The standard input of a process: a file without a name. Nothing has to be written while the
// process runs, and a process that never reads blocks nothing.

package sandbox

import (
	"fmt"
	"io"
	"os"
)

// newInput returns an open file with content, positioned at its beginning. The caller closes it.
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

// MaxReport is larger than any environment that the kernel accepts for a program, in bytes.
const MaxReport = 4 << 20

// NewReport returns an empty file without a name, in which processes may write MaxReport bytes;
// where there are no files in memory, it has no limit. Its offset is after what was written, since
// all share it. The caller closes it.
func NewReport() (*os.File, error) {
	f, err := roomInMemory("report", MaxReport)
	if err != nil {
		f, err = onDisk(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("making a file for the state of the shell: %w", err)
	}
	return f, nil
}

// onDisk is for systems without files in memory.
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

// fill writes content and seeks back to the beginning.
func fill(f *os.File, content []byte) error {
	if _, err := f.Write(content); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}
