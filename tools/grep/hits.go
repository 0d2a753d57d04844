// Collection of hits in bounded memory, and selection of the requested page.

package grep

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/tools/fs/workspace/text"
)

// hits are the matches of one file.
type hits struct {
	path     string // below the searched directory
	modified time.Time
	lines    []line // in mode content: the first of them, as many as a page could need
	entries  int64  // what paging counts: the file, or its lines
	matches  int64  // matching lines, or parts of them; in mode count across lines, matches
}

// A line is one entry of mode content.
type line struct {
	number  int64
	text    string // valid UTF-8, clipped, without its line ending
	context bool   // a line of context
}

// Lines longer than maxLine bytes are shown in part, from lead bytes before the match. Lines of
// code are shorter; longer lines are not meant for reading.
const (
	maxLine = 2_000
	lead    = 200
)

// clipStart returns where the shown part of a long line begins when its match begins at match.
func clipStart(length, match int64) int64 {
	if length <= maxLine || match < maxLine-lead {
		return 0
	}
	return match - lead
}

// clip returns the shown part of a line of length bytes. part begins at start and holds at least
// what is shown. The marks count the omitted bytes.
func clip(part []byte, start, length int64) string {
	kept := part
	if len(kept) > maxLine {
		kept = kept[:maxLine]
		for len(kept) > maxLine-utf8.UTFMax && !utf8.RuneStart(part[len(kept)]) {
			kept = kept[:len(kept)-1]
		}
	}
	skipped := 0
	for start > 0 && skipped < utf8.UTFMax && skipped < len(kept) && !utf8.RuneStart(kept[skipped]) {
		skipped++
	}
	kept = kept[skipped:]
	before := start + int64(skipped)
	after := length - before - int64(len(kept))
	shown := strings.ToValidUTF8(string(kept), "\ufffd")
	shown = strings.ReplaceAll(strings.TrimSuffix(shown, "\r"), "\x00", "\ufffd")
	if before > 0 {
		shown = "[" + text.Count(before, "byte") + " ...] " + shown
	}
	if after > 0 {
		shown += " [... " + text.Count(after, "more byte") + "]"
	}
	return shown
}

// maxHeld limits the text that a search holds, in bytes: far more than any result shows, and far
// less than a daemon's memory.
const maxHeld = 32 << 20

// A gathering collects hits from several goroutines. Its fields are read after all have ended.
type gathering struct {
	wanted int64  // entries, counted from the first, that the page could need; 0: all
	full   func() // called once when maxHeld is reached and all entries are needed

	mu       sync.Mutex
	files    []*hits
	held     int // bytes of text in files
	prune    int // when held exceeds it, lines that no page will show are dropped
	overflow bool
}

func newGathering(wanted int64, full func()) *gathering {
	return &gathering{wanted: wanted, full: full, prune: maxHeld}
}

// add adds the hits of one file.
func (g *gathering) add(h *hits) {
	if h.entries == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files = append(g.files, h)
	g.held += h.held()
	if g.held <= g.prune || g.overflow {
		return
	}
	g.drop()
	if g.held > maxHeld/2 {
		g.overflow = true
		g.full()
	}
}

// drop drops the lines of files beyond the requested page. Their counts stay.
func (g *gathering) drop() {
	if g.wanted == 0 {
		return
	}
	slices.SortFunc(g.files, byPath)
	g.held = 0
	var entries int64
	for _, h := range g.files {
		if entries >= g.wanted {
			h.lines = nil
		}
		entries += h.entries
		g.held += h.held()
	}
}

// held returns how many bytes of text h holds.
func (h *hits) held() (bytes int) {
	for _, l := range h.lines {
		bytes += len(l.text)
	}
	return bytes
}

func byPath(a, b *hits) int { return cmp.Compare(a.path, b.path) }

func newestFirst(a, b *hits) int {
	return cmp.Or(b.modified.Compare(a.modified), cmp.Compare(a.path, b.path))
}

// totals returns the numbers of the whole result, whatever page is shown.
func (g *gathering) totals() (files, entries, matches int64) {
	for _, h := range g.files {
		entries += h.entries
		matches += h.matches
	}
	return int64(len(g.files)), entries, matches
}

// page returns the entries from offset on, at most limit (0: all), in order. The returned hits hold
// no other lines.
func (g *gathering) page(order func(a, b *hits) int, offset, limit int64) []*hits {
	slices.SortFunc(g.files, order)
	left := limit
	var shown []*hits
	for _, h := range g.files {
		if offset >= h.entries {
			offset -= h.entries
			continue
		}
		part := *h
		from := min(offset, int64(len(h.lines)))
		part.lines = h.lines[from:]
		part.entries, offset = h.entries-offset, 0
		if limit > 0 && part.entries > left {
			part.entries = left
			part.lines = part.lines[:min(left, int64(len(part.lines)))]
		}
		left -= part.entries
		shown = append(shown, &part)
		if limit > 0 && left == 0 {
			break
		}
	}
	return shown
}
