// Examining a journal without opening it.

package journal

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
)

// ErrNotExamined means that a journal was not examined, since a copy of it would take long.
var ErrNotExamined = errors.New("the journal is too large to be examined")

// examineMost is how many bytes of a journal are copied.
const examineMost = 256 << 20

// Examine reports what [Open] and [Store.Verify] would find of the database in dir, from a copy: nothing in dir changes. No store
// may have it open. The error is a [*CorruptError] for a damaged one, [ErrNotExamined], or fs.ErrNotExist.
func Examine(dir string) (err error) {
	copied, err := os.MkdirTemp("", "toold-journal-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(copied)) }()
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Size() > examineMost {
		return cmp.Or(err, ErrNotExamined)
	}
	for _, name := range []string{fileName, fileName + "-wal", suspectName} {
		if err := ignoreMissing(copyFile(filepath.Join(dir, name), filepath.Join(copied, name))); err != nil {
			return err
		}
	}
	s, err := Open(copied, Config{Unsynced: true})
	if err != nil {
		return err
	}
	return errors.Join(s.Verify(), s.Close())
}
