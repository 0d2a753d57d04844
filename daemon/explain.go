package daemon

// Explain: the verdict on a call, from the very functions that Execute goes through, in a session that is there or in one
// that would be made. It does not know how a verdict comes about, nor how it is put into words.

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/background"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/workspace"
)

// Explain judges a call without running, asking or recording anything.
func (x *daemonServer) Explain(ctx context.Context, request *tooldv1.ExplainRequest) (*tooldv1.ExplainResponse, error) {
	if request.GetToolUse() == nil {
		return nil, refuse(codes.InvalidArgument, "invalid_tool_use", "There is no tool_use to explain.").at("tool_use")
	}
	if err := checkOptions(request.GetOptions(), x.daemon.Tools); err != nil {
		return nil, err
	}
	s, err := x.daemon.explaining(principalOf(ctx), request)
	if err != nil {
		return nil, err
	}
	st := s.stand()
	if err := checkSettings(st.settings, request.GetOptions()); err != nil {
		return nil, err
	}
	r := parseUse(request.GetToolUse())
	if r.wrong != nil {
		return invalid(r.wrong), nil
	}
	tool := s.offered(r.use.Name, s.options)
	if tool == nil {
		return invalid(s.unknownTool(r.use.Name, s.options)), nil
	}
	call, refused := pipeline.New(r.use, tool, s)
	if refused != nil {
		return invalid(refused.Fault), nil
	}
	explained, err := call.Explain(ctx)
	if err != nil {
		return invalid(fault.From(err)), nil
	}
	wire := explanationOf(explained)
	wire.Error, wire.Warnings = errorOf(explained.Fault), visibleAll(st.warnings)
	return wire, nil
}

// explaining gives the session that a call is explained in: one that is there, or the likeness of a new one, which is
// recorded nowhere.
func (d *Daemon) explaining(who principal, request *tooldv1.ExplainRequest) (*session, error) {
	likeness := &session{name: "explain", daemon: d, memory: workspace.NewMemory(), options: request.GetOptions(), cursors: map[string]int64{}}
	roots := request.GetRoots()
	if request.GetSessionId() != "" {
		s, err := d.openSession(who, request.GetSessionId())
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		likeness.name, likeness.meta, likeness.places, likeness.memory, likeness.outputs = s.name, s.meta, s.places, s.memory, s.outputs
		likeness.env, likeness.dir, likeness.tasks, likeness.remembered = s.env, s.dir, s.tasks, slices.Clone(s.remembered)
		likeness.exports = exports{maps.Clone(s.exports.Set), slices.Clone(s.exports.Unset)}
		likeness.options = merged(s.options, request.GetOptions())
		return likeness, nil
	}
	if len(roots) == 0 {
		roots = []string{d.Root}
	}
	places, err := openPlaces(roots, d.locks)
	if err != nil {
		return nil, err
	}
	if likeness.options == nil {
		likeness.options = &tooldv1.Options{}
	}
	likeness.tasks = background.NewSet(func(*background.Task) {})
	likeness.places, likeness.meta, likeness.dir = places, meta{Roots: places.Roots()}, places.Roots()[0]
	return likeness, nil
}

// unknownTool is the fault of a tool use whose tool is not offered.
func (s *session) unknownTool(name string, options *tooldv1.Options) *fault.Error {
	if rule := s.stand().rules.Removes(name); rule != nil && slices.Contains(s.daemon.toolNames(), name) {
		return fault.Invalidf("unknown_tool", "The rule %s in %s takes the tool %s out of this session. Nothing but a change of that rule brings it back.", rule.Text, rule.Origin, name)
	}
	return fault.Invalidf("unknown_tool", "There is no tool %q. The nearest are %s. ListTools gives all.", short(name), strings.Join(s.nearest(name, options), ", "))
}
