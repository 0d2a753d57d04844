// What has become of files, as unified diffs in the form that git writes and takes.

package checkpoint

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// maxShown is the largest content, in bytes, of which a diff is made.
const maxShown = 4 << 20

// A Delta is what has become of one file.
type Delta struct {
	Real           string
	Before, After  workspace.Snapshot
	Diff           string // ends in a newline; empty: the contents are equal, or Note is why there is none
	Added, Removed int    // lines
	Note           string // a sentence; empty: the diff is complete
}

// Deltas returns the changes of the files that the row's call changed, of those at or below paths,
// or of all if paths is empty.
func (r *Row) Deltas(paths []string) (list []Delta) {
	for _, f := range r.Files {
		if r.Ended && f.differs() && chosen(paths, string(f.Real)) {
			list = append(list, Delta{Real: string(f.Real), Before: f.Before, After: f.After})
		}
	}
	return list
}

// Net returns the changes of files over all rows: from the state that the first row found to the
// one that the last left.
func (h History) Net(paths []string) (list []Delta) {
	net := map[string]Delta{}
	for _, row := range h {
		for _, d := range row.Deltas(paths) {
			if earlier, known := net[d.Real]; known {
				d.Before = earlier.Before
			}
			net[d.Real] = d
		}
	}
	for _, real := range slices.Sorted(maps.Keys(net)) {
		if d := net[real]; !d.Before.Same(d.After) {
			list = append(list, d)
		}
	}
	return list
}

// Compare makes the delta's diff. name is what the file is called in it, without a slash in front.
func (s *Store) Compare(d *Delta, name string) {
	switch {
	case d.Before.Kind == workspace.Unkept || d.After.Kind == workspace.Unkept:
		d.Note = "Its content was not kept: " + cmp.Or(d.Before.Why, d.After.Why) + "."
		return
	case d.Before.Kind == workspace.Directory || d.After.Kind == workspace.Directory:
		d.Note = directoryNote(d.Before, d.After)
	case d.Before.Same(d.After):
		d.Note = "It has other names now than it had."
		return
	}
	old, next := part{image: d.Before}, part{image: d.After}
	old.read(s)
	next.read(s)
	if old.mode() != "" && next.mode() != "" && old.mode()[:3] != next.mode()[:3] { // a file became a link: git writes both
		d.diff(name, old, part{})
		d.diff(name, part{}, next)
		return
	}
	d.diff(name, old, next)
}

func directoryNote(before, after workspace.Snapshot) string {
	switch {
	case before.Kind == after.Kind:
		return fmt.Sprintf("The mode of the directory has changed from %04o to %04o.", before.Mode.Perm(), after.Mode.Perm())
	case after.Kind == workspace.Absent:
		return "The directory was removed."
	case before.Kind == workspace.Absent:
		return "The directory is new."
	case after.Kind == workspace.Directory:
		return "It is a directory now."
	}
	return "It was a directory."
}

// A part is one side of a diff.
type part struct {
	image workspace.Snapshot
	text  string
	why   string // why there is no text, as a clause
}

// mode is as git writes it; empty: there is neither a file nor a link.
func (p part) mode() string {
	switch {
	case p.image.Kind == workspace.Link:
		return "120000"
	case p.image.Kind != workspace.Regular:
		return ""
	case p.image.Mode&0o111 != 0:
		return "100755"
	}
	return "100644"
}

func (p *part) read(s *Store) {
	switch {
	case p.image.Kind == workspace.Link:
		p.text = string(p.image.Target)
		return
	case p.image.Kind != workspace.Regular:
		return
	case p.image.Size > maxShown:
		p.why = fmt.Sprintf("it has more than %d MiB", maxShown>>20)
		return
	}
	data, err := s.Read(p.image.Hash)
	if err != nil {
		p.why = err.Error()
		return
	}
	encoding, isText := text.DetectWhole(data)
	if !isText {
		p.why = "it is not text"
		return
	}
	p.text = text.Decode(data, encoding).String
}

// diff adds what leads from old to next.
func (d *Delta) diff(name string, old, next part) {
	from, to := old.mode(), next.mode()
	if from == "" && to == "" {
		return
	}
	var b strings.Builder
	before, after := quoted("a/"+name), quoted("b/"+name)
	first := fmt.Sprintf("diff --git %s %s\n", before, after)
	b.WriteString(first)
	switch {
	case from == "":
		fmt.Fprintf(&b, "new file mode %s\n", to)
		before = "/dev/null"
	case to == "":
		fmt.Fprintf(&b, "deleted file mode %s\n", from)
		after = "/dev/null"
	case from != to:
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", from, to)
	}
	if from != "" && to != "" && old.image.Mode != next.image.Mode {
		d.Note = fmt.Sprintf("Its mode has changed from %s to %s.", octal(old.image.Mode), octal(next.image.Mode))
	}
	switch why := cmp.Or(old.why, next.why); {
	case old.image.Hash == next.image.Hash && from != "" && to != "" && old.image.Kind == workspace.Regular:
	case why != "":
		fmt.Fprintf(&b, "(no diff: %s)\n", why)
	default:
		d.hunks(&b, before, after, old.text, next.text)
	}
	if d.Diff == "" && b.String() == first {
		return
	}
	d.Diff += b.String()
}

// quoted writes a name as git does: one that could be taken for something else, or that cannot be seen, in quotes, with
// such bytes as in C. What people read in other scripts stays as it is.
func quoted(name string) string {
	plain := func(r rune) bool { return r != '"' && r != '\\' && r != utf8.RuneError && unicode.IsPrint(r) }
	if !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, size := 0, 0; i < len(name); i += size {
		var r rune
		if r, size = utf8.DecodeRuneInString(name[i:]); plain(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(name[i : i+size]) {
			if at := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); at >= 0 {
				b.WriteString("\\" + `abtnvfr"\`[at:at+1])
			} else {
				fmt.Fprintf(&b, "\\%03o", c)
			}
		}
	}
	return b.String() + `"`
}

// hunks writes what differs between two texts, and counts its lines.
func (d *Delta) hunks(b *strings.Builder, before, after, old, next string) {
	patch := text.Patch("file", old, next)
	lines := strings.SplitAfter(patch, "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "--- ") {
		b.WriteString(patch)
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", before, after)
	for _, line := range lines[2:] {
		switch {
		case strings.HasPrefix(line, "+"):
			d.Added++
		case strings.HasPrefix(line, "-"):
			d.Removed++
		}
		b.WriteString(line)
	}
}

// octal writes a mode as chmod takes it.
func octal(m fs.FileMode) string {
	bits := m.Perm()
	for flag, bit := range map[fs.FileMode]fs.FileMode{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}
