// Files that an editor holds open, seen through a View: reads return the editor's text, and changes
// are made by the editor.

package workspace

import (
	"context"
	"path/filepath"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
)

// buffer returns the buffer of the file that p resolved to, or nil if no editor holds it open. The
// error is the buffer's own, with the name of p.
func (v *View) buffer(p Path) (*buffer, error) {
	f := v.buffers.at(p.Real)
	if f == nil || f.Err == nil {
		return f, nil
	}
	why := *fault.From(f.Err)
	why.Message, why.Field = p.Shown()+" is open in an editor. "+why.Message, ""
	return nil, &why
}

// path returns p as the path of an existing file: it exists in the editor, and perhaps not yet on
// the disk.
func (f *buffer) path(p Path) Path {
	p.Exists, p.Missing = true, 0
	return p
}

// file returns the text as an opened file.
func (f *buffer) file(p Path) (*File, error) {
	held, err := stateFile(f.Text)
	if err != nil {
		return nil, ioError(p, "is open in an editor, and its text there cannot be held", err)
	}
	return &File{File: held, Path: f.path(p), Info: f.info()}, nil
}

// contentOfBuffer returns the text as a Content.
func (v *View) contentOfBuffer(f *buffer, p Path) *Content {
	c := v.absent(f.path(p))
	c.Data, c.info, c.State, c.Links = f.Text, f.info(), StateOf(f.info()), 1
	c.State.Hash = f.hash
	return c
}

// InEditor reports whether the content is that of an editor's buffer.
func (c *Content) InEditor() bool {
	_, is := c.info.(shownInfo)
	return is
}

// HeldOpen returns the fault buffer_open for a file that cannot be removed since an editor holds it
// open.
func HeldOpen(p Path) error {
	return fault.Invalidf("buffer_open", "%s is open in the user's editor, so it can be neither removed nor moved. Nothing was changed. Ask the user to close it there, or change its text only.", p.Shown())
}

// inEditor is the text of Written.InEditor.
const inEditor = "the file is open in the user's editor, and the change was made there; the file on the disk has it once it is saved."

// edit asks the editor for the change to next, if next is a text that a buffer can hold.
func (v *View) edit(ctx context.Context, f *buffer, p Path, next []byte) (*buffer, error) {
	switch {
	case len(next) > MaxBuffer:
		return nil, fault.Invalidf("file_too_large", "%s is open in an editor, and would become larger there than %d MiB, the most that is held of one buffer. Nothing was changed.", p.Shown(), MaxBuffer>>20)
	case !utf8.Valid(next):
		return nil, fault.Invalidf("lossy_encoding", "%s is open in an editor, where it is UTF-8, and the new text is not. Nothing was changed.", p.Shown())
	}
	return v.buffers.edit(ctx, v.grant.Call, f, next)
}

// besideEditor returns a fault if an editor has opened the file of old meanwhile, or holds it open
// under another of its names: writing to the disk would then change it behind the editor's back.
func (v *View) besideEditor(old *Content) error {
	if v.buffers.at(old.Path.Real) != nil {
		return fault.Invalidf("stale_file", "%s was opened in the editor while this call was working on it. Nothing was changed; read it again.", old.Path.Shown())
	}
	if old.Links < 2 {
		return nil
	}
	if f := v.buffers.ofFile(old.State.inode()); f != nil {
		return fault.Invalidf("buffer_open", "%s is a hard link of %s, which is open in an editor. Nothing was changed; change it by that name.", old.Path.Shown(), shown(f.Real))
	}
	return nil
}

// Buffers returns the open buffers of the directory's files, or of the single file, by path below
// Root, with slashes. A walk of the disk does not find those that were never saved. Buffers does
// not check whether a file may be read.
func (t *Tree) Buffers() map[string]Buffer {
	var found map[string]Buffer
	for _, f := range t.buffers.all() {
		rel, err := filepath.Rel(t.Real, f.Real)
		if err != nil || !pathname.Within(t.Real, f.Real) || t.Single != "" && rel != t.Single {
			continue
		}
		if found == nil {
			found = map[string]Buffer{}
		}
		found[rel] = f.Buffer
	}
	return found
}
