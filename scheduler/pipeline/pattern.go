// Names of files that fit a pattern of a script, as of now.

package pipeline

import (
	"path/filepath"

	"github.com/toold/toold/tools/exec/shell"
)

// glob returns the files that a pattern stands for, absolute. Bash will do the same; what it finds may differ by then.
func (s scene) glob(pattern string) (names []string) {
	dir, rest := shell.AfterDir(pattern) // under the name that calls use
	found, err := filepath.Glob(shell.Quoted(s.places.Disk(dir)) + rest)
	if err != nil {
		return nil
	}
	for _, name := range found {
		if name = s.places.Seen(name); shell.IsVisible(pattern, name) {
			names = append(names, name)
		}
	}
	return names
}
