package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// mostNamed is how many calls a session is told of whose changes are lost.
const mostNamed = 20

// losses is what the loss of a node takes from the sessions of a workspace: what calls have changed since the last
// snapshot. A nil *losses is nothing.
type losses struct {
	owner    string // the lost node
	restored bool   // from a backup instead
	snapshot bool   // there is one
	volume   bool   // the files are on a shared volume, so that nothing of them is lost
	since    uint64 // the index of the first payload that is not in the snapshot
	sessions map[string]*sessionLosses
}

// sessionLosses is what one session loses.
type sessionLosses struct {
	titles  map[string]string            // of calls that may change something, by key
	started []string                     // the titles of those that have started since
	kept    map[string]mirror.RolledBack // those that could be undone, by key
}

func newLosses(view *lease.View) *losses {
	saved, is := view.Snapshot()
	return &losses{owner: view.Owner(), restored: view.Restored(), snapshot: is, since: saved.Payloads, sessions: map[string]*sessionLosses{}}
}

// note takes note of a payload, before its changes are made. A change that seals a session gets what is lost of it: behind it
// the session cannot be changed.
func (l *losses) note(payload lease.Payload, request *tooldv1.AppendChangesRequest) {
	if l == nil || l.volume || payload.Base {
		return // a base is made when the files are stored, or when what is lost was removed from it
	}
	for _, change := range request.GetChanges() {
		s := l.sessions[change.GetSessionId()]
		if s == nil {
			s = &sessionLosses{titles: map[string]string{}, kept: map[string]mirror.RolledBack{}}
			l.sessions[change.GetSessionId()] = s
		}
		for _, entry := range change.GetEntries() {
			var event tooldv1.ExecuteResponse
			if proto.Unmarshal(entry.GetBody(), &event) != nil {
				continue // the daemon reports it
			}
			s.note(l, entry, &event, payload.Index >= l.since)
		}
		s.forget(change.GetState())
		if change.GetRemoved() {
			delete(l.sessions, change.GetSessionId())
		} else if change.GetSealed() != 0 {
			for _, put := range s.puts() {
				change.State = append(change.State, &tooldv1.JournalState{Key: put.Key, Value: put.Value})
			}
		}
	}
}

// note takes note of an entry. lost: the files do not have what it has changed.
func (s *sessionLosses) note(l *losses, entry *tooldv1.JournalEntry, event *tooldv1.ExecuteResponse, lost bool) {
	if a := event.GetAccepted(); a != nil && !a.GetConcurrent() { // the others only read
		s.titles[entry.GetCall()], _, _ = strings.Cut(a.GetTitle(), "\n")
	}
	if event.GetStarted() != nil && lost {
		if title, known := s.titles[entry.GetCall()]; known {
			s.started = append(s.started, title)
		}
		for _, put := range entry.GetState() {
			if put.GetKey() == mirror.CheckpointKey+entry.GetCall() && put.Value != nil {
				s.kept[entry.GetCall()] = mirror.RolledBack{ToolUseID: event.GetStarted().GetToolUseId(), Turn: entry.GetTurn(), Reason: l.reason()}
			}
		}
	}
	s.forget(entry.GetState())
}

// forget drops calls that have changed nothing after all.
func (s *sessionLosses) forget(state []*tooldv1.JournalState) {
	for _, put := range state {
		if key, is := strings.CutPrefix(put.GetKey(), mirror.CheckpointKey); is && put.Value == nil {
			delete(s.kept, key)
		}
	}
}

// puts returns the changes of the session's state by which nothing that is lost can be undone.
func (s *sessionLosses) puts() (puts []journal.Put) {
	for key, call := range s.kept {
		text, err := json.Marshal(call)
		if err != nil {
			panic("BUG: " + err.Error()) // strings and a number
		}
		puts = append(puts, journal.Put{Key: mirror.CheckpointKey + key}, journal.Put{Key: mirror.RolledBackKey + key, Value: text})
	}
	return puts
}

// tell notes in each open session what it has lost, for its daemon.
func (l *losses) tell(store *journal.Store) error {
	if l == nil {
		return nil
	}
	infos, err := store.Logs()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if !info.Sealed.IsZero() {
			continue
		}
		moved, err := l.moved(store, info.Name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(moved)
		if err != nil {
			return err
		}
		puts := []journal.Put{{Key: mirror.MovedKey, Value: text}}
		if s := l.sessions[info.Name]; s != nil {
			puts = append(puts, s.puts()...)
		}
		if err := store.Apply(journal.Change{Log: info.Name, State: puts}); err != nil {
			return err
		}
	}
	return nil
}

// moved returns what a session's daemon reports: what is lost now, behind what the daemons of before could not report.
func (l *losses) moved(store *journal.Store, session string) (mirror.Moved, error) {
	moved := mirror.Moved{Code: "node_lost", Message: l.message(session)}
	log, err := store.Log(session)
	if err != nil {
		return moved, err
	}
	state, err := log.State(mirror.MovedKey)
	if text, is := state[mirror.MovedKey]; err == nil && is {
		var before mirror.Moved
		if err = json.Unmarshal(text, &before); before.Message != moved.Message {
			moved.Message = before.Message + " " + moved.Message
		}
	}
	return moved, err
}

// reason is why the change of a call cannot be undone.
func (l *losses) reason() string {
	if l.restored {
		return "The workspace was restored from a backup, with the files of the snapshot before that call."
	}
	return fmt.Sprintf("The node %q, on which it ran, was lost, and the files are those of the snapshot before that call.", l.owner)
}

// undoes reports whether what could be undone cannot any more.
func (l *losses) undoes() bool {
	if l == nil {
		return false
	}
	for _, s := range l.sessions {
		if len(s.kept) > 0 {
			return true
		}
	}
	return false
}

func (l *losses) message(session string) string {
	text := fmt.Sprintf("The node %q, which ran this workspace, was lost. ", l.owner)
	if l.volume {
		return text + "The files are on a volume that nodes share: they are as what ran has left them. Read a file again before you rely on it."
	}
	if l.restored {
		text = "This workspace was restored from a backup: what was done after the backup is gone. "
	}
	if l.snapshot {
		text += "The files are those of the last snapshot."
	} else {
		text += "No snapshot of the files was taken yet, so the workspace is empty."
	}
	var titles []string
	if s := l.sessions[session]; s != nil {
		titles = s.started
	}
	if len(titles) == 0 {
		return text + " No call of this session has changed files since then. Other sessions of the workspace may have changed files that are gone: read files again before you rely on them."
	}
	more := ""
	if len(titles) > mostNamed {
		more = fmt.Sprintf(", and %d calls before these", len(titles)-mostNamed)
		titles = titles[len(titles)-mostNamed:]
	}
	return text + " What these calls have changed since then is gone: " + strings.Join(titles, "; ") + more + ". Read files again before you rely on them."
}
