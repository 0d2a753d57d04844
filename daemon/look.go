// Looking at sessions from beside their stream, also at those that are closed. It changes nothing, and does not know
// what for.

package daemon

import (
	"cmp"
	"context"
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

// A sessionRequest is a request about a session, which it names.
type sessionRequest interface{ GetSessionId() string }

// A sessionView is what can be read of a session.
type sessionView struct {
	daemon  *Daemon
	name    string
	meta    meta
	log     *journal.Log
	session *session // nil: it is closed
}

// view returns the session that a request names, if the client owns it.
func (x *sessionSet) view(ctx context.Context, request sessionRequest) (*sessionView, error) {
	who, name := principalOf(ctx), request.GetSessionId()
	if s := x.owned(who, name); s != nil {
		return &sessionView{x.d, name, s.meta, s.log, s}, nil
	}
	log, err := x.d.journal.Log(name)
	about := x.keptMeta(name)
	if err != nil || about.owner() != who {
		return nil, unknownSession(name)
	}
	return &sessionView{x.d, name, about, log, nil}, nil
}

// owned returns the open session of that name if it belongs to the principal; nil otherwise.
func (x *sessionSet) owned(who access.Principal, name string) *session {
	if s, ok := x.find(name); ok && s.meta.owner() == who {
		return s
	}
	return nil
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
	if len(l.meta.Roots) == 0 {
		return nil, apierror.New(codes.DataLoss, "journal_damaged", "The description of session %q cannot be read.", l.name)
	}
	return l.meta.Roots, nil
}

// outputs opens the folder with what the session's calls have printed.
func (l *sessionView) outputs() (*spool.Dir, error) {
	if l.session != nil {
		return l.session.outputs, nil
	}
	return l.daemon.sessions.outputs(l.name)
}

// key returns the key of the newest call with the client's id.
func (l *sessionView) key(id string) (string, error) {
	var key string
	if l.session != nil {
		l.session.update(func(its *state) { key = its.ledger.byID[id] })
	} else {
		rows, err := callRows(l.log)
		if err != nil {
			return "", journalRefusal(err)
		}
		kept := ledger{calls: rows, byID: map[string]string{}}
		kept.findable()
		key = kept.byID[id]
	}
	if key == "" {
		return "", unknownCall(l.name, id)
	}
	return key, nil
}

// A story is what the records of a call come to.
type story struct {
	state             tooldv1.CallState
	accepted, started journal.Record // without a number: there is none
	question          journal.Record // the open one; without a number: there is none
}

func storyOf(records []journal.Record) story {
	s := story{state: tooldv1.CallState_CALL_STATE_ACCEPTED}
	for _, record := range records {
		switch record.Kind {
		case kindAccepted:
			s.accepted = record
		case kindQuestion:
			s.question = record
		case kindWithdrawn:
			s.question = journal.Record{}
		case kindStarted:
			s.started, s.state = record, tooldv1.CallState_CALL_STATE_RUNNING
		case kindResult:
			s.state = tooldv1.CallState_CALL_STATE_ENDED
		}
	}
	return s
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
