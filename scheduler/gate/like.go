// What calls of one kind took before, which is what the next one of that kind is expected to take. It is kept in
// memory only, and bounded.

package gate

import (
	"strings"
	"time"
)

// unknownPeak is what a call is expected to take in bytes before anything is known of its key. Ours.
const unknownPeak = 128 << 20

// Bounds of what is kept. Ours.
const (
	mostLikes = 1024
	longest   = 256 // bytes of a key; calls whose keys differ only behind are alike
)

// likes are what calls took, by key.
type likes map[string]*like

// A like is what calls of one key took.
type like struct {
	// long is above 0 if the next call is not expected to be quick. One that was not adds 2, and one that was takes 1 away. So
	// what is not known counts as quick until one was not, and what was quick for some time until two were not in a row.
	long   int
	peak   int64     // bytes; 0: not known
	inside int       // calls that have been admitted and have not left
	left   time.Time // when the last of them did
	used   time.Time
}

// Bounds of like.long. Ours.
const (
	mostLong  = 4
	leastLong = -3
)

// fading is how long none may be inside until long is less by 1: what was slow since the machine was busy must not wait behind
// builds for ever, where it cannot show that it is quick. Ours.
const fading = 30 * time.Second

// isQuick reports whether the next call is expected to be quick.
func (l *like) isQuick(now time.Time) bool {
	for l.long > 0 && l.inside == 0 && now.Sub(l.left) >= fading {
		l.long--
		l.left = l.left.Add(fading)
	}
	return l.long <= 0
}

func (l *like) wasQuick() { l.long = max(l.long-1, leastLong) }
func (l *like) wasLong()  { l.long = min(l.long+2, mostLong) }

// of returns what calls of the key took. If there are too many keys, the one that was not asked for for the longest
// time is forgotten.
func (t likes) of(key string) *like {
	key = key[:min(len(key), longest)]
	found := t[key]
	if found == nil {
		if len(t) >= mostLikes {
			t.forget()
		}
		found = &like{left: time.Now()}
		t[strings.Clone(key)] = found // which may be a piece of a large one
	}
	found.used = time.Now()
	return found
}

func (t likes) forget() {
	oldest := ""
	for key, l := range t {
		if oldest == "" || l.used.Before(t[oldest].used) {
			oldest = key
		}
	}
	delete(t, oldest)
}

// expected returns the bytes of memory that the next call may take at its peak.
func (l *like) expected() int64 {
	if l.peak == 0 {
		return unknownPeak
	}
	return l.peak
}

// took notes the peak of a call; 0: it is not known. More counts at once, and less by and by: of a build that failed
// early the next one may succeed.
func (l *like) took(peak int64) {
	if peak > 0 {
		l.peak = max(peak, l.peak*3/4)
	}
}
