package sandbox

import (
	"io/fs"
	"slices"
	"strings"
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

// without gives those that hold none of the paths.
func (a absences) without(paths []string) absences {
	return slices.DeleteFunc(slices.Clone(a), func(watched string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return path == watched || strings.HasPrefix(path, watched+"/") })
	})
}
