// What systems and file systems without a call for it need in order to give a
// file real blocks.

package journal

import (
	"io"
	"math/rand/v2"
	"os"
)

// writeNoise fills the first size bytes with what no file system can keep in
// less room.
func writeNoise(f *os.File, size int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(f, rand.NewChaCha8([32]byte{}), size); err != nil {
		return err
	}
	return f.Sync()
}
