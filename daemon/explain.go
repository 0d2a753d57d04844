// Explain: the verdict on a call, from the very functions that Execute goes through, in a session that is there or in
// one that would be made.

package daemon

import (
	"context"
	"strings"

	"github.com/toold/toold/daemon/convert"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// Explain judges a call without running, asking or recording anything.
func (x *daemonServer) Explain(ctx context.Context, request *tooldv1.ExplainRequest) (*tooldv1.ExplainResponse, error) {
	if request.GetToolUse() == nil {
		return nil, apierror.Invalidf("invalid_tool_use", "tool_use", "There is no tool_use to explain.")
	}
	if err := x.daemon.checkOptions(request.GetOptions(), nil); err != nil {
		return nil, err
	}
	j, err := x.daemon.judgeFor(ctx, request)
	if err != nil {
		return nil, err
	}
	options := j.basis().options
	if request.GetOptions().GetSettingsJson() != "" {
		defer x.daemon.settings.Forget(scopeOf(j.meta.Roots, options))
	}
	st := j.policy()
	if err := checkSettings(st.settings, request.GetOptions()); err != nil {
		return nil, err
	}
	r := parseUse(request.GetToolUse())
	if r.wrong != nil {
		return convert.Invalid(r.wrong), nil
	}
	known := catalog{judge: j}
	tool := known.find(r.use.Name, options)
	switch {
	case tool == nil && request.GetSessionId() == "" && strings.HasPrefix(r.use.Name, "mcp__") && known.pool(options).Find(r.use.Name) == nil:
		return convert.Invalid(fault.Invalidf("unknown_tool", "There is no tool %q here: tools of MCP servers are known only in a session. Name one that is open.", convert.Short(r.use.Name))), nil
	case tool == nil:
		return convert.Invalid(known.unknownTool(r.use.Name, options)), nil
	}
	explained, err := pipeline.Explain(ctx, r.use, tool, j)
	if err != nil {
		return convert.Invalid(fault.From(err)), nil
	}
	wire := convert.Explanation(explained)
	wire.Warnings, wire.WarningDetails = convert.Warnings(st.warnings)
	return wire, nil
}

// judgeFor returns the judge of the session that a request names, or of the one that would be made when it names none, under the
// options of the request.
func (d *Daemon) judgeFor(ctx context.Context, request *tooldv1.ExplainRequest) (*judge, error) {
	if request.GetSessionId() == "" {
		return d.imagined(principalOf(ctx), request.GetRoots(), request.GetOptions())
	}
	s, err := d.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	return s.judge.with(request.GetOptions()), nil
}

// imagined returns the judge of a session that would be made with those roots, or with the default root when there are none.
func (d *Daemon) imagined(who access.Principal, roots []string, options *tooldv1.Options) (*judge, error) {
	if len(roots) == 0 {
		roots = []string{d.Root}
	}
	places, err := openPlaces(roots, d.locks)
	if err != nil {
		return nil, err
	}
	j := scope{
		daemon: d, name: "explain", meta: meta{Roots: places.Roots(), Owner: who}, places: places, readState: workspace.NewReadState(),
		temporary: d.tempOf("+explain"), // a name that no session can have
		tasks:     background.NewSet(func(*background.Task) {}),
	}.judge(basis{options: merged(&tooldv1.Options{}, options), shell: shell{dir: places.Roots()[0]}, dynamic: &dynamicTools{}})
	j.languages = language.NewSet(j.languageHost(context.Background())) // which starts none for what is only explained
	return j, nil
}
