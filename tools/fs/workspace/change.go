// Changes of files: lock, read, compute, write, record. replace.go writes the bytes to the disk.

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// An Update is the new content of a file.
type Update struct {
	Data []byte // the new content; View keeps it, so it must not be modified afterwards
	// Whole is set if the model has sent all of Data, and not only the part that differs from the
	// old content.
	Whole bool
}

// A Written is the outcome of a change.
type Written struct {
	Path    Path
	Created bool // the file did not exist before
	Same    bool // the update equals the file's content: nothing was written
	// InEditor is a sentence for the model if an editor holds the file open and has made the change
	// there; otherwise it is empty.
	InEditor string
	// OtherNames is what Content.OtherNames returned for the file.
	OtherNames string
}

// Notes returns OtherNames and InEditor as lines for the model.
func (w Written) Notes() (lines string) {
	for _, note := range []string{w.OtherNames, w.InEditor} {
		if note != "" {
			lines += "Note: " + note + "\n"
		}
	}
	return lines
}

// Lossy returns the fault lossy_encoding for an error of text.Encoding.Encode for content, or a
// part of it; field is the JSON pointer of content. It returns any other error unchanged.
func Lossy(err error, field, content string) error {
	l, ok := errors.AsType[*text.Lossy](err)
	if !ok {
		return err
	}
	line := text.LineAt(content, strings.IndexRune(content, l.Rune))
	return fault.Invalidf("lossy_encoding", "The file is in %s, which cannot hold %q (U+%04X) on line %d of %s. Nothing was written. Leave the character out, or convert the file to UTF-8 first.",
		l.Encoding, l.Rune, l.Rune, line, strings.TrimPrefix(field, "/")).At(field)
}

// Change replaces the content of the file that name resolves to by the result of how, or creates
// the file and its parent directories. how is called at most once, while the file is locked against
// every other Change of this daemon. Its error ends the change and is returned unchanged. how
// decides whether the session must have read the file (Content.Current). If another program changes
// the file meanwhile, nothing is written: stale_file. The same holds if the file has several hard
// links and Look has not returned it to this View before, so that the user could not be asked.
//
// At every moment the file is either the old one or the new one: a temporary file beside it gets
// its mode, owner and extended attributes, is synced and renamed. Where that is impossible (several
// hard links, an owner that a new file could not have, a directory that accepts no new file) it is
// written in place, and restored if the write fails. The directory stays open from its judgement
// on: if it is moved away, the new file moves with it, and nothing is written through a link that
// replaces it. The View records the new state. Further faults: disk_full, and those of Open.
//
// A file that an editor holds open is not written: the editor is asked to make the change in its
// buffer, in the version that how has received. If the file is open under another hard link,
// nothing is changed: buffer_open.
func (v *View) Change(ctx context.Context, name string, how func(*Content) (Update, error)) (Written, error) {
	if v.buffers != nil {
		if p, err := v.reach(name, v.grant.Writes); err == nil && v.buffers.at(p.Real) != nil {
			return v.changeBuffer(ctx, name, how)
		}
	}
	p, release, err := v.lock(ctx, name, v.ws.locks)
	if err != nil {
		return Written{}, err
	}
	defer release()
	old := v.absent(p)
	write := func(data []byte) (os.FileInfo, error) { return v.createFile(p, data) }
	if p.Exists {
		f, err := v.openForChange(p)
		if err != nil {
			return Written{}, err
		}
		defer f.Close()
		// The file itself is locked beside its name: a change under another of its names may be
		// running.
		unlink, err := v.ws.locks.acquire(ctx, fmt.Sprintf("inode %d", StateOf(f.Info).inode()))
		if err != nil {
			return Written{}, err
		}
		defer unlink()
		if old, err = v.contentOf(f); err != nil {
			return Written{}, err
		}
		if err := v.askable(old); err != nil {
			return Written{}, err
		}
		write = func(data []byte) (os.FileInfo, error) { return v.replace(f, old, data) }
	}
	return v.change(ctx, old, how, func(data []byte) (os.FileInfo, error) {
		if err := v.besideEditor(old); err != nil {
			return nil, err
		}
		return write(data)
	})
}

// change computes the new content of old, has write write it, and records the new state. write
// returns the metadata of the result.
func (v *View) change(ctx context.Context, old *Content, how func(*Content) (Update, error), write func(data []byte) (os.FileInfo, error)) (Written, error) {
	next, err := how(old)
	if err != nil {
		return Written{}, err
	}
	out := Written{Path: old.Path, Created: !old.Path.Exists, OtherNames: old.OtherNames()}
	out.Same = !out.Created && bytes.Equal(old.Data, next.Data)
	info := old.info
	if !out.Same {
		if err := context.Cause(ctx); err != nil {
			return Written{}, err
		}
		if info, err = write(next.Data); err != nil {
			return Written{}, err
		}
	}
	v.Record(old.Path.Real, old.after(next, info))
	return out, nil
}

// lock resolves name and locks the result. After waiting, it resolves and judges the path again.
func (v *View) lock(ctx context.Context, name string, locks *Locks) (Path, func(), error) {
	p, err := v.reach(name, v.grant.Writes)
	if err != nil {
		return p, nil, err
	}
	release, err := locks.acquire(ctx, p.Real)
	if err != nil {
		return p, nil, err
	}
	again, err := v.reach(name, v.grant.Writes)
	if err == nil && again.Real != p.Real {
		err = undeclared(again)
	}
	if err != nil {
		release()
		return p, nil, err
	}
	return again, release, nil
}

// after returns the state of the file once it holds next and has the metadata of info.
func (c *Content) after(next Update, info os.FileInfo) State {
	s := StateOf(info)
	s.Hash, s.Whole = Hash(next.Data), next.Whole || !c.Path.Exists
	if len(next.Data) <= KeptFile {
		s.Text = next.Data
	}
	if s.Lines = bytes.Count(next.Data, newline); len(next.Data) > 0 && next.Data[len(next.Data)-1] != '\n' {
		s.Lines++
	}
	if c.known && c.read.Same(c.State) {
		s.Whole = s.Whole || c.read.Whole
		s.Seen = moved(c.read.Seen, c.Data, next.Data)
	}
	return s
}

var newline = []byte{'\n'}

// moved returns the ranges of the new content that the model has seen: the ranges of seen before
// and after the difference, and the difference itself, which the model has written.
func moved(seen []Range, old, next []byte) []Range {
	head, tail := text.Ends(old, next)
	before := bytes.Count(old[:head], newline)                      // lines wholly before the difference
	until := before + bytes.Count(old[head:len(old)-tail], newline) // last line of the old content that it touches, from 0
	delta := bytes.Count(next, newline) - bytes.Count(old, newline)
	out := []Range{{First: before + 1, Last: until + delta + 1}}
	for _, r := range seen {
		out = addRange(out, Range{First: r.First, Last: min(r.Last, before)})
		out = addRange(out, Range{First: max(r.First, until+2) + delta, Last: r.Last + delta})
	}
	return out
}

func (v *View) openForChange(p Path) (*File, error) {
	f, err := v.open(p, os.O_RDWR)
	if fe := fault.From(err); err != nil && fe.Code == "permission_denied" {
		return nil, fault.Failedf("permission_denied", "%s may not be written by the daemon's user: it is read-only, or belongs to another user. Nothing was changed.", p.Shown())
	}
	return f, err
}
