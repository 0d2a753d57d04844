// Tools that a client runs itself: registered by its stream, carried out there, and otherwise like
// any other.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/quota"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

const (
	maxClientTools  = 128       // of a session; ours, far above what clients have
	maxDescribed    = 512 << 10 // bytes of descriptions and schemas that one stream may register
	maxDescription  = 16 << 10  // bytes; more than any model is given of one tool
	clientToolTime  = 10 * time.Minute
	clientToolLimit = 24 * time.Hour
)

// An clientTool is a tool that a stream has registered. Its session is set before it is offered.
type clientTool struct {
	tool    tools.Tool
	shape   string // of those with the same one, any can carry a call out that was judged for another
	bytes   int64  // of its definition
	session *session
	at      *stream
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) // what model APIs take

// clientToolsOf makes tools of what a client registers. The refusal explains what is wrong with
// one.
func clientToolsOf(list []*tooldv1.ClientTool) (made []*clientTool, err error) {
	if len(list) > maxClientTools {
		return nil, apierror.Invalidf("invalid_client_tool", "attach.client_tools", "%d client tools were sent, and at most %d are taken.", len(list), maxClientTools)
	}
	names, size := convert.Each(list, (*tooldv1.ClientTool).GetName), 0
	for i, wire := range list {
		size += len(wire.GetDescription()) + len(wire.GetInputSchemaJson())
		o, why := clientToolOf(wire)
		if slices.Contains(names[:i], wire.GetName()) {
			why = "its name is there twice"
		}
		if size > maxDescribed {
			why = fmt.Sprintf("with it the descriptions and schemas of the client's tools have more than %d bytes together", maxDescribed)
		}
		if why != "" {
			return nil, apierror.Invalidf("invalid_client_tool", fmt.Sprintf("attach.client_tools[%d]", i), "The client tool %q cannot be taken: %s.", convert.Short(wire.GetName()), why)
		}
		o.bytes = definitionBytes(list[i : i+1])
		made = append(made, o)
	}
	return made, nil
}

// clientToolOf makes one; why, a clause, is what is wrong with it.
func clientToolOf(wire *tooldv1.ClientTool) (o *clientTool, why string) {
	if why := misfit(wire); why != "" {
		return nil, why
	}
	spec := tools.Spec{
		Name: wire.GetName(), Description: wire.GetDescription(), Origin: tools.Client, ReadOnly: wire.GetReadOnly(), Destructive: !wire.GetReadOnly(),
		TimeLimit: clientToolTime, MaxTime: clientToolLimit, OnInterrupt: tools.Stop,
	}
	if wire.GetTimeout() != nil {
		spec.TimeLimit = wire.GetTimeout().AsDuration()
	}
	effects := tools.Effects{}
	if !wire.GetReadOnly() {
		effects = tools.Effects{External: "the client", Opaque: true, StartsNone: true, Reason: "it is a tool of the client's own"}
	}
	schema := cmp.Or(wire.GetInputSchemaJson(), `{"type":"object"}`)
	o = &clientTool{shape: fmt.Sprint(wire.GetReadOnly(), schema)}
	tool, err := tools.NewExternal(spec, json.RawMessage(schema), tools.Funcs[json.RawMessage]{
		Effects: func(json.RawMessage) tools.Effects { return effects },
		Run: func(ctx context.Context, env *tools.Env, input json.RawMessage) (tools.Result, error) {
			return o.session.requests.runOnClient(ctx, env, o, input)
		},
	})
	if err != nil {
		return nil, convert.Visible(err.Error())
	}
	o.tool = tool
	return o, ""
}

// misfit returns, as a clause, what is wrong with a client's tool beside its schema; empty:
// nothing.
func misfit(wire *tooldv1.ClientTool) string {
	timeout := wire.GetTimeout()
	switch {
	case !toolName.MatchString(wire.GetName()):
		return "a name has 1 to 64 letters, digits, _ and -"
	case strings.HasPrefix(wire.GetName(), "mcp__"):
		return "names that begin with mcp__ are those of MCP servers"
	case strings.TrimSpace(wire.GetDescription()) == "":
		return "it has no description, by which a model learns what it is for"
	case len(wire.GetDescription()) > maxDescription:
		return fmt.Sprintf("its description has %d bytes, and at most %d are taken", len(wire.GetDescription()), maxDescription)
	case timeout != nil && (timeout.CheckValid() != nil || timeout.AsDuration() <= 0 || timeout.AsDuration() > clientToolLimit):
		return fmt.Sprintf("its timeout is not between 0 and %s", clientToolLimit)
	}
	return ""
}

// register adds the tools of a stream, and passes it the requests for them of streams that are
// gone.
func (r *requester) register(its *state, st *stream) {
	for _, o := range st.tools {
		name := o.tool.Spec().Name
		o.session, o.at = r.s, st
		there := slices.DeleteFunc(its.toolset.clientTools[name], func(other *clientTool) bool { return !its.clients.reaches(other.at) }) // this is in their place
		its.toolset.clientTools[name] = append(there, o)
	}
	if len(st.tools) == 0 {
		return
	}
	for e := range its.clients.requests {
		if e.kind == runTool && e.over == nil && !its.clients.reaches(e.to) {
			r.reassign(its, e)
		}
	}
	its.toolset.refreshClientTools()
}

// reassign passes a request to run a tool to the newest stream that has the tool; false: there is
// none.
func (r *requester) reassign(its *state, e *clientRequest) bool {
	if e.kind != runTool {
		return false
	}
	for _, o := range slices.Backward(its.toolset.clientTools[e.use.Name]) {
		if o.shape == e.shape && its.clients.reaches(o.at) {
			e.to, e.sent = o.at, false
			e.to.wakeUp()
			return true
		}
	}
	return false
}

// dropTools forgets what a stream has offered.
func (r *requester) dropTools(its *state, st *stream) {
	for _, o := range st.tools {
		name := o.tool.Spec().Name
		its.toolset.clientTools[name] = slices.DeleteFunc(its.toolset.clientTools[name], func(other *clientTool) bool { return other == o })
		if len(its.toolset.clientTools[name]) == 0 {
			delete(its.toolset.clientTools, name)
		}
	}
	if len(st.tools) > 0 {
		_, bytes := r.toolBytes(its, nil)
		_ = r.s.account.Hold(quota.Tools, bytes) // which is no more than before
		its.toolset.refreshClientTools()
	}
}

// refreshClientTools puts the clients' tools into the pool, of each name the newest.
func (t *toolset) refreshClientTools() {
	t.changeDynamic(func(next *dynamicTools) {
		next.clients = nil
		for _, list := range t.clientTools {
			next.clients = append(next.clients, list[len(list)-1].tool)
		}
	})
}

// toolBytesWith returns how many bytes of definitions the session has with those of offers, and
// refuses too many tools. Those of a main stream come in the place of what the last one offered.
func (r *requester) toolBytesWith(its *state, offers []*clientTool, companion bool) (bytes int64, err error) {
	displaced := its.clients.main
	if companion {
		displaced = nil
	}
	count, bytes := r.toolBytes(its, displaced)
	for _, o := range offers {
		bytes += o.bytes
	}
	if count+len(offers) > maxClientTools {
		return 0, apierror.New(codes.ResourceExhausted, "too_many_tools", "With these the session would have more than %d client tools.", maxClientTools).At("attach.client_tools")
	}
	return bytes, nil
}

// toolBytes returns how many tools the streams that can be reached offer, but for one stream, and
// the bytes of their definitions.
func (r *requester) toolBytes(its *state, except *stream) (count int, bytes int64) {
	for _, list := range its.toolset.clientTools {
		for _, o := range list {
			if its.clients.reaches(o.at) && (except == nil || o.at != except) {
				count, bytes = count+1, bytes+o.bytes
			}
		}
	}
	return count, bytes
}

// runOnClient has a client carry a call out that was judged for what o offers.
func (r *requester) runOnClient(ctx context.Context, env *tools.Env, o *clientTool, input json.RawMessage) (tools.Result, error) {
	if len(input) > maxDelegated {
		return tools.Result{}, fault.Invalidf("too_large", "The input has %d bytes, and a client is sent at most %d at once. Hand large content over in a file.", len(input), maxDelegated)
	}
	key := strings.TrimPrefix(env.CallID, r.s.name+".")
	e := view(r.s, func(its *state) *clientRequest { return r.request(its, key, o, input) })
	if e == nil {
		r.s.queue.Stop(key, errClientGone)
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}
	answer, err := r.await(ctx, e, &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_ClientToolCancel{ClientToolCancel: &tooldv1.ClientToolCancel{
		ToolUseId: e.use.ID, Reason: "its call was stopped",
	}}})
	if err != nil {
		return tools.Result{}, err
	}
	return convert.ResultIn(answer.(*tooldv1.ClientToolResult))
}

// maxDelegated is how many bytes of input go into one message to a client: most take messages of 4
// MiB.
const maxDelegated = 3 << 20

// request sends the client what it is to do; nil: no client offers that any more.
func (r *requester) request(its *state, key string, o *clientTool, input json.RawMessage) *clientRequest {
	use := its.ledger.live[key].use
	e := newClientRequest(runTool, key, use, o.at, &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_ClientToolUse{ClientToolUse: &tooldv1.ClientToolUse{
		ToolUseId: use.ID, Name: use.Name, InputJson: string(input),
	}}})
	e.shape = o.shape
	if !r.reassign(its, e) && !slices.Contains(its.toolset.clientTools[use.Name], o) {
		return nil
	}
	its.clients.commit(e)
	return e
}

// carriedOut takes a client's result of a tool of its own.
func (st *stream) carriedOut(wire *tooldv1.ClientToolResult) {
	if !st.answer(runTool, wire) {
		st.session.noticef("unknown_call", convert.Short(wire.GetToolUseId()), "No call %q waits for a result of this client; what was sent is dropped.", convert.Short(wire.GetToolUseId()))
	}
}

// advanced takes how far a client's tool has come.
func (st *stream) advanced(wire *tooldv1.ClientToolProgress) {
	s := st.session
	e := view(s, func(its *state) *clientRequest { return st.requestFor(its, runTool, wire) })
	if e != nil {
		step := wire.GetStep()
		s.recorder.stepped(e.key, tools.Step{Message: convert.Shortened(step.GetMessage(), convert.ShownReason), Done: max(0, step.GetDone()), Total: max(0, step.GetTotal())})
	}
}
