// What of a session is open: its calls and questions, read from their records.

package daemon

import (
	"maps"
	"slices"

	"github.com/toold/toold/daemon/convert"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// describeOpen describes the session with its open calls and questions.
func (s *session) describeOpen() (*tooldv1.GetSessionResponse, error) {
	response := &tooldv1.GetSessionResponse{Session: s.describe()}
	for _, key := range s.openKeys() {
		if err := s.addOpen(response, key); err != nil {
			return nil, err
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
				list = append(list, convert.Question(&pipeline.Use{}, a.question))
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

// addOpen adds what a call's records say; nothing: it has ended meanwhile.
func (s *session) addOpen(response *tooldv1.GetSessionResponse, key string) error {
	records, err := s.log.Find(key)
	if err != nil {
		return journalRefusal(err)
	}
	told := storyOf(records)
	if told.state == tooldv1.CallState_CALL_STATE_ENDED {
		return nil
	}
	if told.accepted.Seq > 0 {
		wire, err := wireOf(told.accepted)
		if err != nil {
			return err
		}
		a := wire.GetAccepted()
		response.OpenCalls = append(response.OpenCalls, &tooldv1.OpenCall{
			ToolUseId: a.GetToolUseId(), Name: a.GetName(), Title: a.GetTitle(), Turn: wire.GetTurn(), TurnId: wire.GetTurnId(), State: told.state,
		})
	}
	if told.question.Seq > 0 {
		wire, err := wireOf(told.question)
		if err != nil {
			return err
		}
		response.OpenQuestions = append(response.OpenQuestions, wire.GetQuestion())
	}
	return nil
}
