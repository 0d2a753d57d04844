package sandbox

import (
	"io/fs"
	"os"
	"slices"

	"github.com/toold/toold/tools/pathname"
)

// A Content is that of a regular file, with its permissions.
type Content struct {
	Data []byte
	Mode fs.FileMode
}

// absences are paths at which nothing stood when the process was started.
type absences []string

// Spare says that the daemon itself makes a file: what runs meanwhile has not made it, and it is not taken away.
func (r *Runner) Spare(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.trees {
		p.mu.Lock()
		p.spared = append(p.spared, path)
		p.mu.Unlock()
	}
}

// takeAway moves what stands there now aside, so that nothing is lost and no program finds it by its name, and returns what it
// has moved.
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

// without returns those that hold none of the paths.
func (a absences) without(paths []string) absences {
	return slices.DeleteFunc(slices.Clone(a), func(watched string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return pathname.Within(watched, path) })
	})
}
