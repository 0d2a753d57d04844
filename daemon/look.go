// Looking at sessions from beside their stream, also at those that are closed. It changes nothing, and does not know
// what for.

package daemon

import (
	"cmp"
	"encoding/json"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/exec/spool"
)

// A view is what can be read of a session. session is nil when it is closed.
type sessionView struct {
	daemon  *Daemon
	name    string
	log     *journal.Log
	outputs *spool.Dir
	session *session
	byID    map[string]string // of a closed session: newest key by the client's id
}

// view finds a session of who's.
func (x *sessionSet) view(who access.Principal, name string) (*sessionView, error) {
	if s, ok := x.find(name); ok && s.meta.owner() == who {
		return &sessionView{daemon: x.d, name: name, log: s.log, outputs: s.outputs, session: s}, nil
	}
	if !sessionName.MatchString(name) {
		return nil, unknownSession(name)
	}
	log, err := x.d.journal.Log(name)
	if err != nil || x.keptMeta(name).owner() != who {
		return nil, unknownSession(name)
	}
	outputs, err := x.outputs(name)
	if err != nil {
		return nil, err
	}
	rows, err := callRows(log)
	if err != nil {
		return nil, journalRefusal(err)
	}
	l := &sessionView{daemon: x.d, name: name, log: log, outputs: outputs, byID: map[string]string{}}
	newest := map[string]*callRow{}
	for key, row := range rows {
		if old := newest[row.ID]; !row.Free && (old == nil || old.compare(row) < 0) {
			newest[row.ID], l.byID[row.ID] = row, key
		}
	}
	return l, nil
}

// callRows reads what the journal keeps of a session's calls, by key.
func callRows(log *journal.Log) (map[string]*callRow, error) {
	kept, err := log.State(keyCall)
	if err != nil {
		return nil, err
	}
	rows := map[string]*callRow{}
	for key, text := range kept {
		row := &callRow{}
		if err := json.Unmarshal(text, row); err != nil {
			return nil, &journal.CorruptError{Path: key, Err: err}
		}
		rows[strings.TrimPrefix(key, keyCall)] = row
	}
	return rows, nil
}

// compare orders calls as they were accepted.
func (r *callRow) compare(other *callRow) int {
	return cmp.Or(cmp.Compare(r.Turn, other.Turn), cmp.Compare(r.Index, other.Index))
}

// roots returns the session's roots.
func (l *sessionView) roots() ([]string, error) {
	if l.session != nil {
		return l.session.meta.Roots, nil
	}
	if about := l.daemon.sessions.keptMeta(l.name); len(about.Roots) > 0 {
		return about.Roots, nil
	}
	return nil, apierror.New(codes.DataLoss, "journal_damaged", "The description of session %q cannot be read.", l.name)
}

// key finds the newest call with the client's id.
func (l *sessionView) key(id string) (key string, ok bool) {
	if l.session == nil {
		key, ok = l.byID[id]
		return key, ok
	}
	l.session.update(func(its *state) { key, ok = its.ledger.byID[id] })
	return key, ok
}

// wireOf reads a record.
func wireOf(record journal.Record) (*tooldv1.ExecuteResponse, error) {
	wire := &tooldv1.ExecuteResponse{}
	if err := proto.Unmarshal(record.Body, wire); err != nil {
		return nil, apierror.New(codes.DataLoss, "journal_damaged", "Record %d of this session cannot be read: %v.", record.Seq, err)
	}
	wire.Seq, wire.Time = record.Seq, timestamppb.New(record.Time)
	return wire, nil
}
