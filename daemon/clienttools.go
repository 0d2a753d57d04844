package daemon

// Tools that a client runs itself: registered by its stream, carried out there, and otherwise like any other. It does not
// know what they do.

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

const (
	maxClientTools  = 128      // of a session; ours, far above what clients have
	maxDescription  = 16 << 10 // bytes; more than any model is given of one tool
	clientToolTime  = 10 * time.Minute
	clientToolLimit = 24 * time.Hour
)

// A clientTool is one that a stream has registered. Guarded by the session's mu.
type clientTool struct {
	tool tools.Tool
	at   *stream // which may be gone for a while
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) // what model APIs take

func clientToolNames(list []*tooldv1.ClientTool) (names []string) {
	for _, tool := range list {
		names = append(names, tool.GetName())
	}
	return names
}

// clientToolsOf makes tools of what a client registers, which run by run. The refusal says what is wrong with one.
func clientToolsOf(list []*tooldv1.ClientTool, run func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error)) (made []tools.Tool, err error) {
	if len(list) > maxClientTools {
		return nil, refuse(codes.InvalidArgument, "invalid_client_tool", "%d client tools were sent, and at most %d are taken.", len(list), maxClientTools).at("attach.client_tools")
	}
	names := clientToolNames(list)
	for i, wire := range list {
		tool, why := clientToolOf(wire, run)
		if slices.Contains(names[:i], wire.GetName()) {
			why = "its name is there twice"
		}
		if why != "" {
			return nil, refuse(codes.InvalidArgument, "invalid_client_tool", "The client tool %q cannot be taken: %s.", short(wire.GetName()), why).at(fmt.Sprintf("attach.client_tools[%d]", i))
		}
		made = append(made, tool)
	}
	return made, nil
}

// clientToolOf makes one; why, a clause, says what is wrong with it.
func clientToolOf(wire *tooldv1.ClientTool, run func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error)) (tool tools.Tool, why string) {
	spec := tools.Spec{
		Name: wire.GetName(), Description: wire.GetDescription(), Origin: tools.Client, ReadOnly: wire.GetReadOnly(), Destructive: !wire.GetReadOnly(),
		TimeLimit: clientToolTime, MaxTime: clientToolLimit, OnInterrupt: tools.Stop,
	}
	effects := tools.Effects{}
	if !wire.GetReadOnly() {
		effects = tools.Effects{Foreign: "the client", Opaque: true, Reason: "it is a tool of the client's own"}
	}
	if wire.GetTimeout() != nil {
		spec.TimeLimit = wire.GetTimeout().AsDuration()
	}
	schema := json.RawMessage(wire.GetInputSchemaJson())
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	switch {
	case !toolName.MatchString(spec.Name):
		return nil, "a name has 1 to 64 letters, digits, _ and -"
	case strings.HasPrefix(spec.Name, "mcp__"):
		return nil, "names that begin with mcp__ are those of MCP servers"
	case len(spec.Description) > maxDescription:
		return nil, fmt.Sprintf("its description has %d bytes, and at most %d are taken", len(spec.Description), maxDescription)
	case wire.GetTimeout() != nil && (wire.GetTimeout().CheckValid() != nil || spec.TimeLimit <= 0 || spec.TimeLimit > clientToolLimit):
		return nil, fmt.Sprintf("its timeout is not between 0 and %s", clientToolLimit)
	}
	tool, err := tools.NewForeign(spec, schema, tools.Funcs[json.RawMessage]{
		Effects: func(json.RawMessage) tools.Effects { return effects }, Run: run,
	})
	if err != nil {
		return nil, visible(err.Error())
	}
	return tool, ""
}

// register takes over the tools that a stream offers, and the errands that are under way for them. mu is held.
func (s *session) register(st *stream) {
	for _, tool := range st.offers {
		name := tool.Spec().Name
		s.clientTools[name] = &clientTool{tool, st}
		for e := range s.errands {
			if e.tool == name && e.to != st {
				e.to = st
				st.post(e.use, e.wire)
			}
		}
	}
	if len(st.offers) > 0 {
		s.supplyClientTools()
	}
}

// dropClientTools forgets the tools that a stream has offered and no other has taken over. mu is held.
func (s *session) dropClientTools(st *stream) {
	before := len(s.clientTools)
	for name, tool := range s.clientTools {
		if tool.at == st {
			delete(s.clientTools, name)
		}
	}
	if len(s.clientTools) != before {
		s.supplyClientTools()
	}
}

func (s *session) supplyClientTools() {
	s.changeSupply(func(next *supply) {
		next.clients = nil
		for _, tool := range s.clientTools {
			next.clients = append(next.clients, tool.tool)
		}
	})
}

// crowdedByTools says whether the session would have too many client tools with those of st. mu is held.
func (s *session) crowdedByTools(st *stream) bool {
	count := len(s.clientTools)
	for _, tool := range st.offers {
		if s.clientTools[tool.Spec().Name] == nil {
			count++
		}
	}
	return count > maxClientTools
}

// delegate has a client carry a call out.
func (s *session) delegate(ctx context.Context, env *tools.Env, input json.RawMessage) (tools.Result, error) {
	key := strings.TrimPrefix(env.CallID, s.name+".")
	e, over := s.commission(key, input)
	if e == nil {
		s.queue.Stop(key, errClientGone)
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}
	answer, err := s.await(ctx, e, over)
	if err != nil {
		return tools.Result{}, err
	}
	return resultIn(answer.(*tooldv1.ClientToolResult))
}

// commission sends the client what it is to do, and gives what tells it that it need not any more; nil: there is no such
// client any more.
func (s *session) commission(key string, input json.RawMessage) (e *errand, over *tooldv1.ExecuteResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := s.live[key].use
	registered := s.clientTools[use.Name]
	if registered == nil {
		return nil, nil
	}
	e = newErrand(key, use, registered.at)
	e.tool = use.Name
	e.wire = &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_ClientToolUse{ClientToolUse: &tooldv1.ClientToolUse{
		ToolUseId: use.ID, Name: use.Name, InputJson: string(input),
	}}}
	over = &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_ClientToolCancel{ClientToolCancel: &tooldv1.ClientToolCancel{
		ToolUseId: use.ID, Reason: "its call was stopped",
	}}}
	s.send(e)
	return e, over
}

// carriedOut takes a client's result of a tool of its own.
func (st *stream) carriedOut(wire *tooldv1.ClientToolResult) {
	if !st.answer(wire.GetToolUseId(), runsTool, wire) {
		st.session.notify(nil, pipeline.Noticed{
			Code: "unknown_call", CallID: short(wire.GetToolUseId()),
			Message: fmt.Sprintf("No call %q waits for a result of this client; what was sent is dropped.", short(wire.GetToolUseId())),
		})
	}
}

// advanced takes how far a client's tool has come.
func (st *stream) advanced(wire *tooldv1.ClientToolProgress) {
	if key, ok := st.busyWith(wire.GetToolUseId(), runsTool); ok {
		st.session.stepped(key, tools.Step{Message: shortened(wire.GetStep().GetMessage(), shownReason), Done: wire.GetStep().GetDone(), Total: wire.GetStep().GetTotal()})
	}
}

// failedTool is the fault of a call that its client says has failed: in the words of its result.
func failedTool(text string) *fault.Error {
	if text == "" {
		text = "The client's tool has failed and does not say why."
	}
	return fault.Failedf("tool_failed", "%s", shortened(text, maxAnswer))
}
