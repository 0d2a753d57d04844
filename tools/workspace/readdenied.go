// What rules keep from being read. It does not know the rules: whoever grants hands in a function that answers for a path.

package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toold/toold/tools/fault"
)

// ruleDenied puts the sentence of Grant.Barred into the fault that a call gets.
func ruleDenied(p Path, why string) error {
	is := "is"
	if p.Real != p.Named {
		is = "leads to " + shown(p.Real) + ", which is"
	}
	return fault.Deniedf("rule_denied", "%s %s neither read nor changed. %s Only a change of that rule would allow it: do without the file, or ask the user.",
		p.Shown(), is, shown(why))
}

// whyReadDenied asks barred about what p came to, and about every link on the way: a rule about either holds.
func (p Path) whyReadDenied(barred func(real string) string) string {
	if barred == nil {
		return ""
	}
	for _, link := range p.links {
		if why := barred(link); why != "" {
			return why
		}
	}
	return barred(p.Real)
}

// whyReadDenied asks barred about the entry at the real path and, if it is a link, about what it leads to. One that leads
// nowhere has nothing to be read.
func (w *Workspace) whyReadDenied(real string, kind fs.FileMode, barred func(real string) string) string {
	if barred == nil || kind&fs.ModeSymlink == 0 {
		return Path{Real: real}.whyReadDenied(barred)
	}
	p, err := w.Resolve("/", real)
	if err != nil {
		p = Path{Real: real}
	}
	return p.whyReadDenied(barred)
}

// maxSearched is how many entries FindBarred looks at. Ours: some hundredths of a second, and more than most directories
// that a command is given hold.
const maxSearched = 20_000

// FindReadDenied looks in the directory at the real path, and everything below it, for something that barred names a reason
// against, and gives the first such path with the reason; both are empty when there is none. Nearer entries come first,
// links are asked about and not followed, and what is the daemon's own is passed over. sure is false when it could not
// look at everything: it looks at no more than maxSearched entries, and at none after ctx has ended. A directory that
// the daemon's user may not open counts as looked at, since no command of that user could read it.
func (w *Workspace) FindReadDenied(ctx context.Context, dir string, barred func(real string) string) (path, why string, sure bool) {
	if why := barred(dir); why != "" {
		return dir, why, true
	}
	root, err := w.openRoot(dir)
	if err != nil {
		return "", "", errors.Is(err, fs.ErrPermission)
	}
	defer root.Close()
	s := &readDeniedSearch{w: w, root: root, top: dir, denied: barred, below: []string{"."}, sure: true}
	for len(s.below) > 0 && s.path == "" && s.seen <= maxSearched {
		if ctx.Err() != nil {
			return "", "", false
		}
		next := s.below[0]
		s.below = s.below[1:]
		s.read(next)
	}
	return s.path, s.why, s.path != "" || s.sure && s.seen <= maxSearched
}

// A readDeniedSearch is one FindBarred under way: below are directories that are not read yet, relative to root.
type readDeniedSearch struct {
	w         *Workspace
	root      *os.Root
	top       string
	denied    func(real string) string
	below     []string
	seen      int
	path, why string
	sure      bool // nothing was met that could not be read
}

// read looks at the entries of one directory.
func (s *readDeniedSearch) read(dir string) {
	d, err := s.root.OpenFile(dir, openDirectory, 0)
	if err != nil {
		s.missed(err)
		return
	}
	defer d.Close()
	for s.path == "" && s.seen <= maxSearched {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			s.look(filepath.Join(dir, e.Name()), e)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.missed(err)
			return
		}
	}
}

func (s *readDeniedSearch) look(rel string, e fs.DirEntry) {
	real := filepath.Join(s.top, rel)
	if s.seen++; s.path != "" || e.IsDir() && s.w.Place(real) == Hidden {
		return
	}
	if why := s.w.whyReadDenied(real, e.Type(), s.denied); why != "" {
		s.path, s.why = real, why
		return
	}
	if e.IsDir() {
		s.below = append(s.below, rel)
	}
}

func (s *readDeniedSearch) missed(err error) {
	s.sure = s.sure && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist))
}
