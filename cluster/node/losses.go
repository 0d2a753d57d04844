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
	since    uint64 // the index of the first payload that is not in the snapshot
	titles   map[[2]string]string
	ended    map[string][]string // by session, the titles of calls that have ended since
}

func newLosses(view *lease.View) *losses {
	saved, is := view.Snapshot()
	return &losses{owner: view.Owner(), restored: view.Restored(), snapshot: is, since: saved.Payloads, titles: map[[2]string]string{}, ended: map[string][]string{}}
}

// note takes note of a payload.
func (l *losses) note(payload lease.Payload, request *tooldv1.AppendChangesRequest) {
	if l == nil || payload.Base {
		return // a base is made when the files are stored
	}
	for _, change := range request.GetChanges() {
		for _, entry := range change.GetEntries() {
			var event tooldv1.ExecuteResponse
			if proto.Unmarshal(entry.GetBody(), &event) != nil {
				continue // the daemon reports it
			}
			session := change.GetSessionId()
			if a := event.GetAccepted(); a != nil && !a.GetConcurrent() { // the others only read
				title, _, _ := strings.Cut(a.GetTitle(), "\n")
				l.titles[[2]string{session, a.GetToolUseId()}] = title
			}
			if r := event.GetToolResult(); r != nil && payload.Index >= l.since {
				if title, known := l.titles[[2]string{session, r.GetToolUseId()}]; known {
					l.ended[session] = append(l.ended[session], title)
				}
			}
		}
	}
}

// tell has the daemon tell each open session.
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
		text, err := json.Marshal(mirror.Moved{Code: "node_lost", Message: l.message(info.Name)})
		if err != nil {
			return err
		}
		if err := store.Apply(journal.Change{Log: info.Name, State: []journal.Put{{Key: mirror.MovedKey, Value: text}}}); err != nil {
			return err
		}
	}
	return nil
}

func (l *losses) message(session string) string {
	text := fmt.Sprintf("The node %q, which ran this workspace, was lost. ", l.owner)
	if l.restored {
		text = "This workspace was restored from a backup: what was done after the backup is gone. "
	}
	if l.snapshot {
		text += "The files are those of the last snapshot."
	} else {
		text += "No snapshot of the files was taken yet, so the workspace is empty."
	}
	titles := l.ended[session]
	if len(titles) == 0 {
		return text + " No call of this session has ended since then. Other sessions of the workspace may have changed files that are gone: read files again before you rely on them."
	}
	more := ""
	if len(titles) > mostNamed {
		more = fmt.Sprintf(", and %d calls before these", len(titles)-mostNamed)
		titles = titles[len(titles)-mostNamed:]
	}
	return text + " What these calls have changed since then is gone: " + strings.Join(titles, "; ") + more + ". Read files again before you rely on them."
}
