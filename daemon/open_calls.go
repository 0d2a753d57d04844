// What of a session is open: its calls and questions, read from their records.

package daemon

import (
	"maps"
	"slices"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// describeOpen describes the session with its open calls and questions.
func (s *session) describeOpen() (*tooldv1.GetSessionResponse, error) {
	response := &tooldv1.GetSessionResponse{Session: s.describe()}
	for _, key := range s.openKeys() {
		call, question, err := s.openCall(key)
		if err != nil {
			return nil, err
		}
		if call != nil {
			response.OpenCalls = append(response.OpenCalls, call)
		}
		if question != nil {
			response.OpenQuestions = append(response.OpenQuestions, question)
		}
	}
	response.OpenQuestions = append(response.OpenQuestions, s.asker.questionsBeside()...)
	return response, nil
}

// questionsBeside returns the open questions that are about no call, such as whether a server may be started.
func (ask *asker) questionsBeside() (list []*tooldv1.Question) {
	ask.s.update(func(its *state) {
		for _, key := range slices.Sorted(maps.Keys(its.questions.asked)) {
			if a := its.questions.asked[key]; a.use == nil && !a.done {
				list = append(list, questionOf(&pipeline.Use{}, a.question))
			}
		}
	})
	return list
}

// openKeys returns the keys of the calls that have not ended, in order.
func (s *session) openKeys() (keys []string) {
	s.update(func(its *state) {
		for key, row := range its.ledger.calls {
			if row.Open {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b string) int { return its.ledger.calls[a].compare(its.ledger.calls[b]) })
	})
	return keys
}

// openCall reads what a call's records say; nil, nil: it has ended meanwhile.
func (s *session) openCall(key string) (call *tooldv1.OpenCall, question *tooldv1.Question, err error) {
	records, err := s.log.Find(key)
	if err != nil {
		return nil, nil, journalRefusal(err)
	}
	for _, record := range records {
		wire, err := wireOf(record)
		if err != nil {
			return nil, nil, err
		}
		switch record.Kind {
		case kindAccepted:
			a := wire.GetAccepted()
			call = &tooldv1.OpenCall{
				ToolUseId: a.GetToolUseId(), Name: a.GetName(), Title: a.GetTitle(), Turn: wire.GetTurn(), TurnId: wire.GetTurnId(),
				State: tooldv1.CallState_CALL_STATE_ACCEPTED,
			}
		case kindStarted:
			if call != nil {
				call.State = tooldv1.CallState_CALL_STATE_RUNNING
			}
		case kindQuestion:
			question = wire.GetQuestion()
		case kindWithdrawn:
			question = nil
		case kindResult:
			return nil, nil, nil
		}
	}
	return call, question, nil
}
