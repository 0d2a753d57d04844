// Changes of files: lock, read, compute, write, record. staged.go carries a change out on one file,
// replace.go writes the bytes to the disk.

package workspace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// An Update is what becomes of a file.
type Update struct {
	Data []byte // the new content; View keeps it, so it must not be modified afterwards
	// Whole is set if the model has sent all of Data, and not only the part that differs from the
	// old content.
	Whole bool
	// Remove is set if the file is removed instead. One that does not exist stays away.
	Remove bool
	// From is another file of the same change, whose mode, owner, extended attributes and read
	// state the new file gets: it is moved here. nil: the file is only changed or created.
	From *Content
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

// Change is ChangeAll for one file. how is called at most once, and its error is returned unchanged.
func (v *View) Change(ctx context.Context, name string, how func(*Content) (Update, error)) (Written, error) {
	all, err := v.ChangeAll(ctx, []string{name}, func(old []*Content) ([]Update, error) {
		next, err := how(old[0])
		return []Update{next}, err
	})
	if err != nil {
		return Written{}, err
	}
	return all[0], nil
}

// ChangeAll replaces the contents of the files that names resolve to by the results of how, in the
// same order, creates files with their parent directories, and removes files: all of it, or
// nothing. how is called at most once, while the files are locked against every other change of
// this daemon. Its error ends the change and is returned unchanged. how decides whether the session
// must have read a file (Content.Current). If another program changes a file meanwhile, nothing is
// written: stale_file. The same holds for a file with several hard links that Look has not returned
// to this View before, so that the user could not be asked.
//
// Everything that can fail is done before the first file changes: a temporary file beside each gets
// its mode, owner and extended attributes and is synced. Then they are renamed, and files are
// removed last. At every moment a file is either the old one or the new one. If a rename fails all
// the same, what was changed before is put back. Where a file cannot be replaced (several hard
// links, an owner that a new file could not have, a directory that accepts no new file) it is
// written in place, and restored if that fails. The directories stay open from their judgement on:
// if one is moved away, the new file moves with it, and nothing is written through a link that
// replaces it. The View records the new states. Further faults: disk_full, same_file, and those of
// Open. A daemon that is killed in between may leave some of the files changed.
//
// A file that an editor holds open is not written: the editor is asked to make the change in its
// buffer, in the version that how has received. It cannot be removed: buffer_open. If the file is
// open under another hard link, nothing is changed: buffer_open.
func (v *View) ChangeAll(ctx context.Context, names []string, how func([]*Content) ([]Update, error)) ([]Written, error) {
	c := &changing{view: v}
	defer c.close()
	if err := c.open(ctx, names); err != nil {
		return nil, err
	}
	old := make([]*Content, len(names))
	for i, s := range c.all {
		old[i] = s.old
	}
	next, err := how(old)
	if err != nil {
		return nil, err
	}
	for i, s := range c.all {
		s.next = next[i]
	}
	if err := c.carryOut(ctx); err != nil {
		return nil, err
	}
	return c.written(), nil
}

// after returns the state of the file once it holds next and has the metadata of info.
func (c *Content) after(next Update, info os.FileInfo) State {
	if next.From != nil {
		c = next.From
	}
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
	} else if !s.Whole {
		s.Seen = moved(nil, c.Data, next.Data)
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
