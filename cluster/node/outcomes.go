package node

import (
	"math"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// The results of calls are counted as they pass the mirror, since a workspace's daemon serves no metrics of its own: it ends with each
// move. What it appends may have megabytes, of which only the outcome is read.

// The numbers of the fields on the way to it.
var (
	resultField  = (&tooldv1.ExecuteResponse{}).ProtoReflect().Descriptor().Fields().ByName("tool_result").Number()
	outcomeField = (&tooldv1.ToolResult{}).ProtoReflect().Descriptor().Fields().ByName("outcome").Number()
)

// outcomeIn returns the outcome of the result that an encoded ExecuteResponse is; false: it is something else.
func outcomeIn(event []byte) (tooldv1.Outcome, bool) {
	result, is := field(event, resultField, protowire.BytesType)
	if !is {
		return 0, false
	}
	outcome, is := field(result, outcomeField, protowire.VarintType)
	if !is {
		return tooldv1.Outcome_OUTCOME_UNSPECIFIED, true
	}
	n, _ := protowire.ConsumeVarint(outcome)
	return tooldv1.Outcome(min(n, math.MaxInt32)), true
}

// field returns the value of the first field of that number and type in an encoded message; for bytes without their length.
func field(message []byte, want protowire.Number, of protowire.Type) (value []byte, is bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, false
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return nil, false
		}
		if number == want && kind == of {
			if of == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(message)
				return value, true
			}
			return message[:n], true
		}
		message = message[n:]
	}
	return nil, false
}

// outcomes counts results by outcome: one that this version does not know counts as unspecified.
type outcomes [tooldv1.Outcome_OUTCOME_DISCARDED + 1]atomic.Uint64

func (o *outcomes) count(changes []*tooldv1.JournalChange) {
	for _, change := range changes {
		for _, entry := range change.GetEntries() {
			outcome, is := outcomeIn(entry.GetBody())
			if !is {
				continue
			}
			if outcome < 0 || int(outcome) >= len(o) {
				outcome = tooldv1.Outcome_OUTCOME_UNSPECIFIED
			}
			o[outcome].Add(1)
		}
	}
}

// Results returns how many calls of the node's workspaces have ended with an outcome.
// One that this version does not know has none.
func (n *Node) Results(outcome tooldv1.Outcome) uint64 {
	if outcome < 0 || int(outcome) >= len(n.counters.results) {
		return 0
	}
	return n.counters.results[outcome].Load()
}
