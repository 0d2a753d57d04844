// Paths that rules keep from being read. The rules themselves are elsewhere: a grant carries a
// function that judges a path.

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/toold/toold/tools/fault"
)

// ruleDenied returns the fault of a call for a path that a rule denies; why is the sentence of
// Grant.ReadDenied.
func ruleDenied(p Path, why string) error {
	is := "is"
	if p.Real != p.Named {
		is = "leads to " + shown(p.Real) + ", which is"
	}
	return fault.Deniedf("rule_denied", "%s %s neither read nor changed. %s Only a change of that rule would allow it: do without the file, or ask the user.",
		p.Shown(), is, shown(why))
}

// whyReadDenied asks denied about the path that p resolved to and about every link on the way: a
// rule about either applies.
func (p Path) whyReadDenied(denied func(real string) string) string {
	if denied == nil {
		return ""
	}
	for _, link := range p.links {
		if why := denied(link); why != "" {
			return why
		}
	}
	return denied(p.Real)
}

// whyReadDenied asks denied about the entry at the real path and, if it is a link, about its
// target. A dangling link has nothing to read.
func (w *Workspace) whyReadDenied(real string, kind fs.FileMode, denied func(real string) string) string {
	if denied == nil || kind&fs.ModeSymlink == 0 {
		return Path{Real: real}.whyReadDenied(denied)
	}
	p, err := w.Resolve("/", real)
	if err != nil {
		p = Path{Real: real}
	}
	return p.whyReadDenied(denied)
}

// maxSearched is how many entries FindReadDenied looks at. The number is our own: it takes some
// hundredths of a second, and most directories that a command is given hold fewer.
const maxSearched = 20_000

// FindReadDenied searches the directory at the real path, and everything below it, for a path that
// denied returns a reason for. It returns the first such path and the reason; both are empty if
// there is none. Nearer entries come first. Links are judged but not followed, and the daemon's own
// directories are skipped. sure is false if the search was incomplete: it stops after maxSearched
// entries and when ctx ends. A directory that the daemon's user may not open does not make it
// incomplete, since no command of that user could read it.
func (w *Workspace) FindReadDenied(ctx context.Context, dir string, denied func(real string) string) (path, why string, sure bool) {
	if why := denied(dir); why != "" {
		return dir, why, true
	}
	root, err := w.openRoot(dir)
	if err != nil {
		return "", "", errors.Is(err, fs.ErrPermission)
	}
	defer root.Close()
	sure, seen := true, 0
	for below := []string{"."}; len(below) > 0; below = below[1:] {
		for e, err := range Entries(root.OpenFile(below[0], openDirectory, 0)) {
			if err != nil {
				sure = sure && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist))
				break
			}
			if seen++; seen > maxSearched || ctx.Err() != nil {
				return "", "", false
			}
			rel := filepath.Join(below[0], e.Name())
			real := filepath.Join(dir, rel)
			if e.IsDir() && w.Place(real) == Hidden {
				continue
			}
			if why := w.whyReadDenied(real, e.Type(), denied); why != "" {
				return real, why, true
			}
			if e.IsDir() {
				below = append(below, rel)
			}
		}
	}
	return "", "", sure
}
