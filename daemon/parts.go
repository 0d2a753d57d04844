// Calls that a running call makes as parts of itself, such as the commands of Shell.

package daemon

import (
	"fmt"
	"strings"

	"github.com/toold/toold/daemon/convert"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// A partOf is what a call's row keeps of it while it is a part that its parent waits for.
type partOf struct {
	ended chan<- pipeline.Ended // of size 1, so that the end of the call does not wait
}

// isPart reports whether a call that has not ended is a part that its parent waits for.
func (s *session) isPart(c *pipeline.Call) bool {
	return view(s, func(its *state) bool {
		row := its.ledger.calls[c.Key]
		return row != nil && row.part != nil
	})
}

// runParts runs calls as parts of a running call and returns their ends when all have ended. They
// end when their parent is stopped.
func (s *session) runParts(parent *pipeline.Call, parts []tools.Part) []tools.PartEnd {
	own := view(s, func(its *state) *turn { return its.ledger.turns[parent.Use.Turn] })
	waiting := make([]chan pipeline.Ended, len(parts))
	for i, part := range parts {
		waiting[i] = make(chan pipeline.Ended, 1)
		r := parseUse(&tooldv1.ToolUse{
			Id: fmt.Sprintf("%s/%d", parent.Use.ID, i), Name: part.Name, ParentToolUseId: parent.Use.ID,
			Arguments: &tooldv1.ToolUse_InputJson{InputJson: string(part.Input)},
		})
		r.part = &partOf{waiting[i]}
		s.intake.alone(func(in inlet) {
			key, again, err := in.accept(r, func(string) *turn { return own })
			if err != nil || key == "" || again {
				waiting[i] <- pipeline.Refuse(fault.Failedf("not_taken", "The command could not be taken as the call %q: another call has that id, or it could not be recorded. Nothing was run.", convert.Short(r.use.ID)))
			}
		})
	}
	ends := make([]tools.PartEnd, len(parts))
	for i, ended := range waiting {
		select {
		case e := <-ended:
			ends[i] = endOfPart(e)
		case <-s.ctx.Done():
			ends[i] = tools.PartEnd{How: tools.PartStopped, Reason: "The session has ended."}
		}
	}
	return ends
}

func endOfPart(e pipeline.Ended) tools.PartEnd {
	end := tools.PartEnd{Structured: e.Structured}
	switch e.Outcome {
	case pipeline.Invalid, pipeline.Denied:
		end.How = tools.PartRefused
	case pipeline.TimedOut:
		end.How = tools.PartTimedOut
	case pipeline.Cancelled, pipeline.Aborted, pipeline.Interrupted, pipeline.Discarded:
		end.How = tools.PartStopped
	}
	var text []string
	for _, block := range e.Content {
		if block.Text != "" {
			text = append(text, block.Text)
		}
	}
	if end.Text = strings.Join(text, "\n"); e.Fault != nil {
		end.Reason = e.Fault.Message
	}
	return end
}
