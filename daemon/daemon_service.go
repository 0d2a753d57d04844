// DaemonService: the daemon itself. Explain judges a call by the very functions that Execute goes
// through, in a session that is there or in one that would be made.

package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/metrics"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// served names what is served. The last is only where a program can take the place of another.
var served = []string{
	"answers", "background", "batches", "buffers", "checkpoints", "client_tools", "companion", "dashboard", "deferred_tools", "discard", "explain", "file_changes", "forms", "hooks", "interrupt",
	"model_events", "native_results", "ordered_results", "program_tools", "progress", "read_output", "remember", "resume", "rules", "settings", "sibling_abort", "watch", "watch_sessions", "yield", "upgrade",
}

type daemonServer struct {
	tooldv1.UnimplementedDaemonServiceServer
	daemon *Daemon
}

// features names what is served, for clients that want to know before they ask.
func (d *Daemon) features() []string {
	if d.Successor == nil {
		return served[:len(served)-1]
	}
	return served
}

// GetInfo returns what this daemon is.
func (x *daemonServer) GetInfo(ctx context.Context, _ *tooldv1.GetInfoRequest) (*tooldv1.GetInfoResponse, error) {
	d := x.daemon
	info := &tooldv1.GetInfoResponse{
		Version: d.Version, Pid: int32(os.Getpid()), Started: timestamppb.New(d.started), Features: d.features(),
		DefaultRoot: convert.Clean(d.Root), Epoch: d.journal.Epoch(),
		Listeners: d.endpoints.listening(), Principal: convert.Clean(string(principalOf(ctx))),
		Limits: &tooldv1.Limits{
			MaxRunningCalls: uint32(d.limits.MaxRunningCalls), OpenCalls: uint32(d.limits.OpenCalls), Sessions: uint32(d.limits.Sessions),
			Drain: durationpb.New(d.limits.Drain), SessionIdle: durationpb.New(d.limits.Idle.Session), OutputBytes: uint64(d.limits.OutputBytes),
		},
	}
	held := d.reclaimer.searches.Held()
	info.SearchMemory = &tooldv1.SearchMemory{
		Files: uint64(held.Files), Directories: uint64(held.Directories), TextBytes: uint64(held.Text),
		Bytes: uint64(held.Bytes), LimitBytes: uint64(d.reclaimer.searches.Limit()), Building: held.Building,
	}
	info.WaitingShells = uint32(d.runner.Waiting())
	info.Warnings, info.WarningDetails = convert.Warnings(d.warned(principalOf(ctx)))
	confinement, err := d.runner.Confinement(sandbox.Policy{Tier: sandbox.Full})
	if err != nil {
		confinement = sandbox.Confinement{Tier: sandbox.None, NotCovered: []string{convert.Visible(err.Error()) + "."}}
	}
	info.Sandbox, info.NotCovered = convert.Tier(confinement.Tier), convert.Each(confinement.NotCovered, convert.Visible)
	if d.IdleExit > 0 {
		info.Limits.IdleExit = durationpb.New(d.IdleExit)
	}
	if !principalOf(ctx).Remote() {
		info.StateDir = convert.Clean(d.StateDir)
	}
	info.Health = d.healthNow()
	for _, of := range countServers(slices.DeleteFunc(d.sessions.all(), func(s *session) bool { return s.meta.owner() != principalOf(ctx) })) {
		if of.count > 0 {
			info.Servers = append(info.Servers, &tooldv1.ServerCount{Kind: of.Kind, State: of.State, Count: uint32(of.count)})
		}
	}
	info.Sessions = uint32(len(d.sessions.allAtRest()))
	for _, s := range d.sessions.all() {
		info.Sessions++
		s.update(func(its *state) { info.RunningCalls += uint32(len(its.ledger.live)) })
	}
	return info, nil
}

// healthNow returns how the daemon does.
func (d *Daemon) healthNow() *tooldv1.Health {
	times, rate := d.status.recent.Phases()
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(memory)
	h := &tooldv1.Health{
		CallsPerSecond: rate, JournalBytes: uint64(sizeOf(d.inState("journal"))), MemoryBytes: memory[0].Value.Uint64() - memory[1].Value.Uint64(),
	}
	for _, t := range times {
		h.Phases = append(h.Phases, &tooldv1.PhaseTime{
			Phase: t.Phase.String(), Calls: uint32(t.Calls), P50: durationpb.New(t.P50), P99: durationpb.New(t.P99),
		})
	}
	return h
}

// warned returns what a client is warned of: what was found at the start, and those of his sessions
// that are not back yet.
func (d *Daemon) warned(who access.Principal) []settings.Warning {
	warnings := slices.Concat(convert.Each(d.warnings, inDaemon), d.settings.Load(settings.Scope{}).Warnings)
	if d.NotUpgraded != nil {
		warnings = append(warnings, settings.Warning{Code: settings.NotUpgraded, Text: fmt.Sprintf("the last upgrade has failed, and the daemon goes on as it was: %v", d.NotUpgraded)})
	}
	if err := d.journal.Damaged(); err != nil {
		warnings = append(warnings, inDaemon(fmt.Sprintf("a part of the journal cannot be read (%v): restart toold, and what can be read is put into a new one", err)))
	}
	if d.journal.Full() {
		warnings = append(warnings, inDaemon("the disk that holds the journal is full: calls that were accepted are recorded to their end, new ones are refused until there is room"))
	}
	warnings = append(warnings, convert.Each(d.endpoints.restore(), inDaemon)...)
	d.sessions.mu.Lock()
	missing := maps.Clone(d.sessions.notRestored)
	d.sessions.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if d.sessions.keptMeta(name).owner() == who {
			warnings = append(warnings, inDaemon(fmt.Sprintf("session %q could not be brought back yet: %v", name, missing[name].why)))
		}
	}
	return warnings
}

// Shutdown ends the daemon, and so what others have running in it: that is for the machine's own
// user.
func (x *daemonServer) Shutdown(ctx context.Context, request *tooldv1.ShutdownRequest) (*tooldv1.ShutdownResponse, error) {
	if principalOf(ctx).Remote() {
		return nil, apierror.New(codes.PermissionDenied, "not_local", "A daemon is ended over its Unix socket, not over TCP.")
	}
	if request.GetIfIdle() {
		if err := x.daemon.life.drainIdle(); err != nil {
			return nil, err
		}
		return &tooldv1.ShutdownResponse{}, nil
	}
	if request.GetNow() {
		x.daemon.Stop()
	}
	x.daemon.Drain()
	return &tooldv1.ShutdownResponse{}, nil
}

// inDaemon is a warning about the daemon itself.
func inDaemon(text string) settings.Warning {
	return settings.Warning{Code: settings.InDaemon, Text: text}
}

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

// judgeFor returns the judge of the session that a request names, or of the one that would be made
// when it names none, under the options of the request.
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

// imagined returns the judge of a session that would be made with those roots, or with the default
// root when there are none.
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
		tasks:     background.NewSet(background.Events{}),
	}.judge(basis{options: merged(&tooldv1.Options{}, options), shell: shell{dir: places.Roots()[0], vars: &variables{}}, dynamic: &dynamicTools{}})
	j.languages = language.NewSet(j.languageHost(context.Background())) // which starts none for what is only explained
	return j, nil
}
