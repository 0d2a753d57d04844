// Outputs of sessions that others may read: a result names the file, and its reader may come back
// in another session.

package daemon

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/access"
)

// lends returns the function that reports whether a real path is an output of another session than own that may be read in
// one of the principal with these roots: the session has the same principal and the same roots.
func (x *sessionSet) lends(own string, who access.Principal, roots []string) func(real string) bool {
	outputs := filepath.Join(realPath(x.d.StateDir), "sessions")
	return func(real string) bool {
		rest, below := strings.CutPrefix(real, outputs+"/")
		name, file := filepath.Split(rest)
		name = strings.TrimSuffix(name, "/")
		if !below || name == own || strings.Contains(name, "/") || !slices.Contains([]string{".out", ".txt"}, filepath.Ext(file)) {
			return false
		}
		about := x.keptMeta(name)
		if s, open := x.find(name); open {
			about = s.meta
		}
		return len(about.Roots) > 0 && slices.Equal(about.Roots, roots) && about.owner() == who
	}
}
