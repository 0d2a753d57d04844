package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toold/toold/tools/fs/pathname"
)

// A Content is the content of a regular file, with its permissions.
type Content struct {
	Data []byte
	Mode fs.FileMode
}

// asideName returns the name that what stands at a path gets when it is moved aside.
func asideName(path string) string {
	return fmt.Sprintf("%s%s-%x", pathname.Aside, filepath.Base(path), time.Now().UnixNano())
}

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

// made renames what the tree has made at protected paths, so that no program finds it under its name
// and nothing is lost, and returns a denial for each.
func (p *Process) made() (denials []Denial) {
	p.mu.Lock()
	spared := slices.Clone(p.spared)
	p.mu.Unlock()
	for _, path := range p.confine.watch {
		_, err := os.Lstat(path)
		if err != nil || slices.ContainsFunc(spared, func(own string) bool { return pathname.Within(path, own) }) {
			continue
		}
		if d, err := SetAside(path, nil); err == nil {
			denials = append(denials, d)
		}
	}
	return denials
}
