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
	options := view(s, func(its *state) *tooldv1.Options { return its.options })
	if request.GetOptions().GetSettingsJson() != "" {
		defer x.daemon.settings.Forget(scopeOf(s.meta.Roots, options))
	}
	st := s.stand()
	if err := checkSettings(st.settings, request.GetOptions()); err != nil {
		return nil, err
	}
	r := parseUse(request.GetToolUse())
	if r.wrong != nil {
		return invalid(r.wrong), nil
	}
	tool := s.offered(r.use.Name, options)
	if tool == nil {
		return invalid(s.unknownTool(r.use.Name, options)), nil
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
	own := newState()
	own.options = options
	likeness := &session{name: "explain", daemon: d, memory: workspace.NewMemory()}
	if name != "" {
		s, err := d.openSession(who, name)
		if err != nil {
			return nil, err
		}
		likeness.name, likeness.meta, likeness.places, likeness.memory = s.name, s.meta, s.places, s.memory
		likeness.outputs, likeness.languages, likeness.tasks = s.outputs, s.languages, s.tasks
		s.update(func(its *state) {
			own.shell.env, own.shell.dir = its.shell.env, its.shell.dir
			own.shell.exports = exports{maps.Clone(its.shell.exports.Set), slices.Clone(its.shell.exports.Unset)}
			own.questions.remembered, own.toolset.supply = slices.Clone(its.questions.remembered), its.toolset.supply
			own.options = merged(its.options, options)
		})
		likeness.update(func(its *state) { *its = own })
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
	likeness.places, likeness.meta, own.shell.dir = places, meta{Roots: places.Roots(), Owner: who}, places.Roots()[0]
	likeness.languages = language.NewSet(likeness.languageHost()) // which starts none for what is only explained
	likeness.update(func(its *state) { *its = own })
	return likeness, nil
}
