// A View's way to a file that an editor holds open: the text there is what is read, and a change is the editor's to make.
// It does not know what is to change.

package workspace

import (
	"bytes"
	"context"
	"path/filepath"
	"unicode/utf8"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/pathname"
)

// buffer returns what an editor holds of the file that p came to; nil: nothing. The error is the buffer's own, said of p.
func (v *View) buffer(p Path) (*buffer, error) {
	f := v.buffers.at(p.Real)
	if f == nil || f.Err == nil {
		return f, nil
	}
	why := *fault.From(f.Err)
	why.Message, why.Field = p.Shown()+" is open in an editor. "+why.Message, ""
	return nil, &why
}

// path returns p as that of a file that is there: in the editor, and perhaps not yet on the disk.
func (f *buffer) path(p Path) Path {
	p.Exists, p.Missing = true, 0
	return p
}

// file returns the text as an opened file.
func (f *buffer) file(p Path) (*File, error) {
	held, err := stateFile(f.Text)
	if err != nil {
		return nil, fault.Failedf("io_error", "%s is open in an editor, and its text there cannot be held: %v.", p.Shown(), cause(err))
	}
	return &File{File: held, Path: f.path(p), Info: f.info()}, nil
}

// contentOfBuffer returns the text as a whole.
func (v *View) contentOfBuffer(f *buffer, p Path) *Content {
	c := v.absent(f.path(p))
	c.Data, c.State, c.Links = f.Text, StateOf(f.info()), 1
	c.State.Hash = f.hash
	return c
}

// inEditor is Written.InEditor.
const inEditor = "the file is open in the user's editor, and the change was made there; the file on the disk has it once it is saved."

// changeBuffer is Change for a file that an editor holds open. The disk is not touched.
func (v *View) changeBuffer(ctx context.Context, name string, how func(*Content) (Update, error)) (Written, error) {
	p, release, err := v.lock(ctx, name, v.buffers.locks)
	if err != nil {
		return Written{}, err
	}
	defer release()
	f, err := v.buffer(p)
	if err != nil {
		return Written{}, err
	}
	if f == nil {
		return Written{}, fault.Invalidf("stale_file", "%s was closed in the editor while this call was working on it. Nothing was changed; read it again.", p.Shown())
	}
	old := v.contentOfBuffer(f, p)
	next, err := how(old)
	if err != nil {
		return Written{}, err
	}
	out := Written{Path: old.Path, InEditor: inEditor, Same: bytes.Equal(old.Data, next.Data)}
	if !out.Same {
		if f, err = v.edit(ctx, f, p, next.Data); err != nil {
			return Written{}, err
		}
	}
	v.Record(p.Real, old.after(next, f.info()))
	return out, nil
}

// edit asks the editor for a text that it can have.
func (v *View) edit(ctx context.Context, f *buffer, p Path, next []byte) (*buffer, error) {
	switch {
	case len(next) > MaxBuffer:
		return nil, fault.Invalidf("file_too_large", "%s is open in an editor, and would become larger there than %d MiB, the most that is held of one buffer. Nothing was changed.", p.Shown(), MaxBuffer>>20)
	case !utf8.Valid(next):
		return nil, fault.Invalidf("lossy_encoding", "%s is open in an editor, where it is UTF-8, and the new text is not. Nothing was changed.", p.Shown())
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return v.buffers.edit(ctx, v.grant.Call, f, next)
}

// besideEditor is a fault when an editor has come to hold the file of old open, or holds it under another of its names:
// what is written to the disk would then be changed behind it.
func (v *View) besideEditor(old *Content) error {
	if v.buffers.at(old.Path.Real) != nil {
		return fault.Invalidf("stale_file", "%s was opened in the editor while this call was working on it. Nothing was changed; read it again.", old.Path.Shown())
	}
	if old.Links < 2 {
		return nil
	}
	if f := v.buffers.ofFile(old.inode()); f != nil {
		return fault.Invalidf("buffer_open", "%s is a hard link of %s, which is open in an editor. Nothing was changed; change it by that name.", old.Path.Shown(), shown(f.Real))
	}
	return nil
}

// Buffers returns what editors hold open of the directory's files, or of the one that was named, by path below Root, with
// slashes. Files among them that are not on the disk are met by nobody who walks. Whether one may be read is not asked.
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
