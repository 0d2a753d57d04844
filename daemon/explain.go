package daemon

// Explain: the verdict on a call, from the very functions that Execute goes through, in a session that is there or in one
// that would be made.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
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
	s, err := x.daemon.explaining(request)
	if err != nil {
		return nil, err
	}
	if err := checkSettings(s.stand().settings, request.GetOptions()); err != nil {
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
	wire.Error = errorOf(explained.Fault)
	return wire, nil
}

// explaining gives the session that a call is explained in: one that is there, or the likeness of a new one, which is
// recorded nowhere.
func (d *Daemon) explaining(request *tooldv1.ExplainRequest) (*session, error) {
	likeness := &session{name: "explain", daemon: d, memory: workspace.NewMemory(), options: request.GetOptions(), cursors: map[string]int64{}}
	roots := request.GetRoots()
	if request.GetSessionId() != "" {
		s, err := d.openSession(request.GetSessionId())
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

func invalid(err *fault.Error) *tooldv1.ExplainResponse {
	return &tooldv1.ExplainResponse{Error: errorOf(err), Decision: tooldv1.Decision_DECISION_DENY, Reasons: []string{visible(err.Message)}}
}

func explanationOf(e pipeline.Explanation) *tooldv1.ExplainResponse {
	v := e.Verdict
	wire := &tooldv1.ExplainResponse{
		Valid: true, Concurrent: e.Concurrent, ReadOnly: e.Effects.ReadOnly(), Level: levelOf(v.Level), Grounds: groundsOf(v.Grounds),
		Decision:    map[permission.Decision]tooldv1.Decision{permission.Allow: tooldv1.Decision_DECISION_ALLOW, permission.Ask: tooldv1.Decision_DECISION_ASK, permission.Deny: tooldv1.Decision_DECISION_DENY}[v.Decision],
		Suggestions: suggestionsOf(e.Suggestions), PermissionMode: tooldv1.PermissionMode(e.Mode + 1), Effects: effectsOf(e),
	}
	for _, h := range e.Hooks {
		wire.Reasons = append(wire.Reasons, visible(fmt.Sprintf("The PreToolUse hook in %s is asked first; what it will say is not known.", h.Origin)))
	}
	for _, g := range v.Grounds {
		wire.Reasons = append(wire.Reasons, visible(g.Text))
	}
	if v.ByMode {
		wire.Reasons = append(wire.Reasons, fmt.Sprintf("The permission mode %s makes of that: %s.", e.Mode, v.Decision))
	}
	return wire
}

// effectsOf puts what a call would do into lines.
func effectsOf(e pipeline.Explanation) (lines []string) {
	for _, c := range e.Effects.Commands {
		if c.ForkBomb {
			continue
		}
		line := "runs " + c.Text
		switch {
		case c.ReadOnly:
			line += " (only reads)"
		case c.DenyOnly:
			line += " (behind " + c.Via + ", which only deny and ask rules look through)"
		case c.Transparent:
			line += " (looked through)"
		}
		lines = append(lines, visible(line))
	}
	for _, a := range e.Facts.Accesses {
		verb, where := "reads ", a.Named
		if a.Write {
			verb = "writes "
		}
		if a.Real != a.Named {
			where += " -> " + a.Real
		}
		if !a.Inside {
			where += " (outside)"
		}
		lines = append(lines, visible(verb+where))
	}
	for _, host := range e.Facts.Hosts {
		lines = append(lines, visible("contacts "+host))
	}
	return lines
}

// unknownTool is the fault of a tool use whose tool is not offered.
func (s *session) unknownTool(name string, options *tooldv1.Options) *fault.Error {
	return fault.Invalidf("unknown_tool", "There is no tool %q. The nearest are %s. ListTools gives all.", short(name), strings.Join(s.nearest(name, options), ", "))
}
