// What calls of one kind took before, which is what the next one of that kind is expected to take. It is kept in
// memory only, and bounded.

package gate

import "time"

// unknownPeak is what a call is expected to take in bytes before anything is known of the like of it. Ours.
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
	ran  time.Duration // 0: none has ended yet, and none has run for longer than a quick one
	peak int64         // bytes; 0: not known
	used time.Time
}

// of returns what calls of the key took. If there are too many keys, the one that was not asked for for the longest
// time is forgotten.
func (t likes) of(key string) *like {
	key = key[:min(len(key), longest)]
	found := t[key]
	if found == nil {
		if len(t) >= mostLikes {
			t.forget()
		}
		found = &like{}
		t[key] = found
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

// took notes what a call has taken. More counts at once. Less counts by and by: of a build that failed early the
// next one may succeed.
func (l *like) took(ran time.Duration, peak int64) {
	l.ran = max(ran, l.ran/2)
	if peak > 0 {
		l.peak = max(peak, l.peak*3/4)
	}
}
