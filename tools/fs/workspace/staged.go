// Changes of one or several files: everything is prepared beside the files first, then moved to its
// place, and put back if that fails half-way.

package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// changing is the state of one ChangeAll.
type changing struct {
	view     *View
	all      []*staged // in the order of the names
	released []func()  // the locks
}

// A staged is the change of one file.
type staged struct {
	path     Path
	buffered bool // an editor holds the file open
	buffer   *buffer
	file     *File // nil: it does not exist, or is buffered
	old      *Content
	next     Update
	info     os.FileInfo // of the result

	dir     *os.Root // that holds the file, where something was prepared; nil: it is written in place, or by an editor
	temp    *os.File // the new content; nil: none
	name    string   // of temp in dir; empty: it has been moved to its place
	aside   string   // a second name in dir of the old file, or of a copy; empty: none
	made    bool     // a file that did not exist is there now
	inPlace bool     // the file was written in place
	forget  []func() // remove the notes of temporary files
}

// open resolves the names, locks the files in one order for all changes, and reads them.
func (c *changing) open(ctx context.Context, names []string) error {
	for _, name := range names {
		p, err := c.view.reach(name, c.view.grant.Writes)
		if err != nil {
			return err
		}
		c.all = append(c.all, &staged{path: p, buffered: c.view.buffers.at(p.Real) != nil})
	}
	order := c.all
	if len(order) > 1 {
		order = slices.Clone(order)
		slices.SortFunc(order, func(a, b *staged) int { return cmp.Compare(a.path.Real, b.path.Real) })
	}
	for i, s := range order {
		if i > 0 && order[i-1].path.Real == s.path.Real {
			return sameFile(order[i-1].path, s.path)
		}
		if err := c.lock(ctx, s, names[slices.Index(c.all, s)]); err != nil {
			return err
		}
	}
	if err := c.openFiles(ctx); err != nil {
		return err
	}
	for _, s := range c.all {
		if err := s.read(c.view); err != nil {
			return err
		}
	}
	return nil
}

func sameFile(a, b Path) error {
	return fault.Invalidf("same_file", "%s and %s are the same file. Change it once.", a.Shown(), b.Shown())
}

// lock locks the path of a file. After waiting, it resolves and judges the name again.
func (c *changing) lock(ctx context.Context, s *staged, name string) error {
	locks := c.view.ws.locks
	if s.buffered {
		locks = c.view.buffers.locks
	}
	release, err := locks.acquire(ctx, s.path.Real)
	if err != nil {
		return err
	}
	c.released = append(c.released, release)
	again, err := c.view.reach(name, c.view.grant.Writes)
	if err == nil && again.Real != s.path.Real {
		err = undeclared(again)
	}
	s.path = again
	return err
}

// openFiles opens the files on the disk. The files themselves are locked beside their names: a
// change under another of their names may be running.
func (c *changing) openFiles(ctx context.Context) (err error) {
	var inodes []string
	for _, s := range c.all {
		if s.buffered || !s.path.Exists {
			continue
		}
		if s.file, err = c.view.openForChange(s.path); err != nil {
			return err
		}
		inode := fmt.Sprintf("inode %d", StateOf(s.file.Info).inode())
		if i := slices.Index(inodes, inode); i >= 0 {
			return fault.Invalidf("same_file", "%s is a hard link of another file that is to be changed. Change it once.", s.path.Shown())
		}
		inodes = append(inodes, inode)
	}
	slices.Sort(inodes)
	for _, inode := range inodes {
		release, err := c.view.ws.locks.acquire(ctx, inode)
		if err != nil {
			return err
		}
		c.released = append(c.released, release)
	}
	return nil
}

// read sets the old content.
func (s *staged) read(v *View) (err error) {
	switch {
	case s.buffered:
		if s.buffer, err = v.buffer(s.path); err != nil {
			return err
		}
		if s.buffer == nil {
			return fault.Invalidf("stale_file", "%s was closed in the editor while this call was working on it. Nothing was changed; read it again.", s.path.Shown())
		}
		s.old = v.contentOfBuffer(s.buffer, s.path)
	case s.file == nil:
		s.old = v.absent(s.path)
	default:
		if s.old, err = v.contentOf(s.file); err == nil {
			err = v.askable(s.old)
		}
	}
	return err
}

// same reports whether there is nothing to do.
func (s *staged) same() bool {
	if s.next.Remove {
		return !s.old.Path.Exists
	}
	return s.old.Path.Exists && bytes.Equal(s.old.Data, s.next.Data)
}

// carryOut makes all changes, or none.
func (c *changing) carryOut(ctx context.Context) error {
	work := make([]*staged, 0, len(c.all))
	for _, s := range c.all {
		if s.info = s.old.info; !s.same() {
			work = append(work, s)
		}
	}
	for _, s := range work {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := c.prepare(s, len(work) > 1); err != nil {
			return c.view.unwritten(s.path, err)
		}
	}
	// Editors come first, since they may refuse, and what is removed may have to be moved before.
	slices.SortStableFunc(work, func(a, b *staged) int { return cmp.Compare(a.rank(), b.rank()) })
	for i, s := range work {
		if err := s.commit(ctx, c.view); err != nil {
			return c.putBack(ctx, work[:i], err)
		}
	}
	return nil
}

func (s *staged) rank() int {
	switch {
	case s.buffered:
		return 0
	case s.next.Remove:
		return 2
	}
	return 1
}

// putBack undoes what was changed before why, and returns why.
func (c *changing) putBack(ctx context.Context, done []*staged, why error) error {
	var kept []string
	for _, s := range slices.Backward(done) {
		err := s.undo(context.WithoutCancel(ctx), c.view)
		if err == nil {
			continue
		}
		one := fmt.Sprintf("%s (%v)", s.path.Shown(), Cause(err))
		if s.aside != "" {
			one += ", whose old content is beside it as " + s.aside
			s.aside = "" // it stays
		}
		kept = append(kept, one)
	}
	if kept == nil {
		return why
	}
	return fault.Failedf("io_error", "%s Of the files that were changed before, some could not be put back: %s.", why.Error(), strings.Join(kept, "; "))
}

// written returns the outcomes, and records the new states.
func (c *changing) written() []Written {
	all := make([]Written, len(c.all))
	for i, s := range c.all {
		w := Written{Path: s.old.Path, Created: !s.old.Path.Exists, Same: s.same()}
		if s.buffered {
			w.InEditor = inEditor
		}
		if !s.next.Remove {
			w.OtherNames = s.old.OtherNames()
			c.view.Record(s.old.Path.Real, s.old.after(s.next, s.info))
		}
		all[i] = w
	}
	return all
}

// close removes what was prepared and not used, and releases the locks.
func (c *changing) close() {
	for _, s := range c.all {
		s.close()
	}
	for _, s := range c.all {
		if !s.made {
			c.removeParents(s)
		}
	}
	for _, release := range c.released {
		release()
	}
}

func (s *staged) close() {
	for _, name := range []string{s.name, s.aside} {
		if name != "" {
			_ = s.dir.Remove(name) // what stays is found by its note
		}
	}
	if s.temp != nil {
		s.temp.Close()
	}
	if s.file != nil {
		s.file.Close()
	}
	for _, over := range s.forget {
		over()
	}
}

// removeParents removes the directories that were made for a file, as far as they are empty.
func (c *changing) removeParents(s *staged) {
	if s.dir == nil {
		return
	}
	s.dir.Close()
	if s.path.Missing < 2 {
		return
	}
	top := s.path.Real
	for range s.path.Missing {
		top = filepath.Dir(top)
	}
	root, err := c.view.openDir(top, s.path)
	if err != nil {
		return
	}
	defer root.Close()
	for at := filepath.Dir(s.path.Real); at != top; at = filepath.Dir(at) {
		if rel, err := filepath.Rel(top, at); err != nil || root.Remove(rel) != nil {
			return
		}
	}
}

// errChanged is why a file is not put back.
var errChanged = errors.New("another program has changed it meanwhile")
