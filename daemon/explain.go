package daemon

// Explain: the verdict on a call, from the very functions that Execute goes through, in a session that is there or in one
// that would be made. It does not know how a verdict comes about, nor how it is put into words.

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/background"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/language"
	"github.com/toold/toold/tools/workspace"
)

// Explain judges a call without running, asking or recording anything.
func (x *daemonServer) Explain(ctx context.Context, request *tooldv1.ExplainRequest) (*tooldv1.ExplainResponse, error) {
	if request.GetToolUse() == nil {
		return nil, refuse(codes.InvalidArgument, "invalid_tool_use", "There is no tool_use to explain.").at("tool_use")
	}
	if err := x.daemon.checkOptions(request.GetOptions(), nil); err != nil {
		return nil, err
	}
	s, err := x.daemon.likeness(principalOf(ctx), request.GetSessionId(), request.GetRoots(), request.GetOptions())
	if err != nil {
		return nil, err
	}
	if asked := request.GetOptions(); asked.GetSettingsJson() != "" {
		defer x.daemon.settings.Forget(scopeOf(s.meta.Roots, s.state.options))
	}
	st := s.stand()
	if err := checkSettings(st.settings, request.GetOptions()); err != nil {
		return nil, err
	}
	r := parseUse(request.GetToolUse())
	if r.wrong != nil {
		return invalid(r.wrong), nil
	}
	tool := s.offered(r.use.Name, s.state.options)
	if tool == nil {
		return invalid(s.unknownTool(r.use.Name, s.state.options)), nil
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

// likeness gives what is like the session of that name, or like a new one with those roots when there is no name: it is
// recorded nowhere, and nobody hears of it.
func (d *Daemon) likeness(who principal, name string, roots []string, options *tooldv1.Options) (*session, error) {
	if options == nil {
		options = &tooldv1.Options{}
	}
	likeness := &session{name: "explain", daemon: d, memory: workspace.NewMemory(), state: newState()}
	likeness.state.options = options
	if name != "" {
		s, err := d.openSession(who, name)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		likeness.name, likeness.meta, likeness.places, likeness.memory, likeness.outputs, likeness.languages = s.name, s.meta, s.places, s.memory, s.outputs, s.languages
		likeness.state.shell.env, likeness.state.shell.dir, likeness.tasks, likeness.state.questions.remembered, likeness.state.toolset.supply = s.state.shell.env, s.state.shell.dir, s.tasks, slices.Clone(s.state.questions.remembered), s.state.toolset.supply
		likeness.state.shell.exports = exports{maps.Clone(s.state.shell.exports.Set), slices.Clone(s.state.shell.exports.Unset)}
		likeness.state.options = merged(s.state.options, options)
		return likeness, nil
	}
	if len(roots) == 0 {
		roots = []string{d.Root}
	}
	places, err := openPlaces(roots, d.locks)
	if err != nil {
		return nil, err
	}
	likeness.tasks = background.NewSet(func(*background.Task) {})
	likeness.places, likeness.meta, likeness.state.shell.dir = places, meta{Roots: places.Roots(), Owner: who}, places.Roots()[0]
	likeness.languages = language.NewSet(likeness.languageHost()) // which starts none for what is only explained
	return likeness, nil
}
