// Recordings: what was found at the paths that a call changes, written while it runs. A process that
// is killed leaves it to the next one, in the order in which it was found.

package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools/fs/workspace"
)

const recordingPrefix = "run-"

// A Recording is the file of one call that runs. It is for one goroutine at a time.
type Recording struct {
	path   string
	file   *os.File // nil: nothing was written
	failed error
}

// An entry is one line of a recording: a snapshot, or a gap.
type entry struct {
	Real   []byte              `json:"real,omitempty"`
	Before *workspace.Snapshot `json:"before,omitempty"`
	Gap    *workspace.Gap      `json:"gap,omitempty"`
}

// Recording returns the recording of a call. Its file is made when something is added.
func (s *Store) Recording(session, key string) *Recording {
	return &Recording{path: s.recordingPath(session, key)}
}

func (s *Store) recordingPath(session, key string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + key))
	return filepath.Join(s.dir, recordingPrefix+hex.EncodeToString(sum[:16]))
}

// Add adds a snapshot. It is not synced: it outlives the process and not the machine.
func (r *Recording) Add(real string, found workspace.Snapshot) {
	r.write(entry{Real: []byte(real), Before: &found})
}

// AddGap adds a gap.
func (r *Recording) AddGap(gap workspace.Gap) { r.write(entry{Gap: &gap}) }

func (r *Recording) write(e entry) {
	if r.failed != nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil && r.file == nil {
		r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	r.failed = err
}

// Close closes the file and removes it: a row has what it holds. The error is the first one, also
// of adding: a process that is killed would not have left everything.
func (r *Recording) Close() error {
	if r.file == nil {
		return r.failed
	}
	return errors.Join(r.failed, r.file.Close(), os.Remove(r.path))
}

// ReadRecording returns what a process that was killed had recorded of a call; nothing if there is
// no recording.
func (s *Store) ReadRecording(session, key string) (workspace.SnapshotSet, error) {
	data, err := os.ReadFile(s.recordingPath(session, key))
	if errors.Is(err, fs.ErrNotExist) {
		return workspace.SnapshotSet{}, nil
	}
	return DecodeRecording(data), err
}

// DropRecording removes the recording of a call, if there is one.
func (s *Store) DropRecording(session, key string) error {
	err := os.Remove(s.recordingPath(session, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// DecodeRecording parses a recording up to the first line that is torn or wrong.
func DecodeRecording(data []byte) workspace.SnapshotSet {
	set := workspace.SnapshotSet{Snapshots: map[string]workspace.Snapshot{}}
	for line := range bytes.Lines(data) {
		var e entry
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &e) != nil {
			return set
		}
		if e.Gap != nil {
			set.Gaps = append(set.Gaps, *e.Gap)
			continue
		}
		if e.Before == nil || check(*e.Before) != nil || !filepath.IsAbs(string(e.Real)) || filepath.Clean(string(e.Real)) != string(e.Real) {
			return set
		}
		set.Snapshots[string(e.Real)] = *e.Before
	}
	return set
}

// recorded calls visit with the contents that recordings of calls name which have no full row yet,
// and with when the recording was last written. Recordings that are older than oldest are removed.
func (s *Store) recorded(oldest time.Time, visit func(hash string, at time.Time)) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, found := range entries {
		info, err := found.Info()
		if !strings.HasPrefix(found.Name(), recordingPrefix) || err != nil {
			continue
		}
		path := filepath.Join(s.dir, found.Name())
		if info.ModTime().Before(oldest) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its call has just ended
		}
		if err != nil {
			return err
		}
		for _, snapshot := range DecodeRecording(data).Snapshots {
			if snapshot.Hash != "" {
				visit(snapshot.Hash, info.ModTime())
			}
		}
	}
	return nil
}

// Extend adds to the row what was recorded while its call ran, once the call has ended. What git
// ignores is only missing if it is gone: programs often remove what they are about to make.
func (r *Row) Extend(recorded workspace.SnapshotSet) {
	found := r.Found()
	maps.Copy(found.Snapshots, recorded.Snapshots)
	for _, gap := range recorded.Gaps {
		_, err := os.Lstat(gap.Real)
		if gap.Why != whyIgnored || err != nil {
			found.Gaps = append(found.Gaps, gap)
		}
	}
	r.Begin(*found)
	r.fresh = nil
	for real, snapshot := range found.Snapshots {
		if snapshot.Kind == workspace.Absent {
			r.fresh = append(r.fresh, real)
		}
	}
	slices.Sort(r.fresh)
}
