package sandbox

import (
	"io/fs"
	"os"
	"slices"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Content is the content of a regular file, with its permissions.
type Content struct {
	Data []byte
	Mode fs.FileMode
}

// absences are paths that did not exist when the process was started.
type absences []string

// Spare records that the daemon itself makes a file at path, so that it does not count as made by a
// process and is not moved away.
func (r *Runner) Spare(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.trees {
		p.mu.Lock()
		p.spared = append(p.spared, path)
		p.mu.Unlock()
	}
}

// takeAway renames whatever exists at the paths now, so that no program finds it under its name and
// nothing is lost, and returns a denial for each.
func (a absences) takeAway() (denials []Denial) {
	for _, path := range a {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if d, err := SetAside(path, nil); err == nil {
			denials = append(denials, d)
		}
	}
	return denials
}

// without returns the absences that hold none of the paths.
func (a absences) without(paths []string) absences {
	return slices.DeleteFunc(slices.Clone(a), func(watched string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return pathname.Within(watched, path) })
	})
}
