// What operators see of the daemon: metrics, and what is reported of each call when it has ended.

package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/telemetry"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/mcp"
)

// watched is what is noted of a call until it has ended.
type watched struct {
	label    telemetry.Label
	accepted time.Time
	trace    string         // what those that it calls are traced under, as a traceparent; empty: nothing
	span     telemetry.Span // nil: none is made
}

// watchCall begins to watch a call of a tool, nil if there is none of that name, in the trace that its client has named.
func (d *Daemon) watchCall(tool tools.Tool, trace string) watched {
	w := watched{label: labelOf(tool), accepted: time.Now(), trace: trace}
	if d.Tracer != nil {
		w.span = d.Tracer.Begin(trace, w.accepted)
		w.trace = w.span.Traceparent()
	}
	return w
}

// tracedUnder returns what a call is traced under if its client has not named it: the running call that it is part of, else
// what came with the request of the main stream.
func (its *state) tracedUnder(parentKey string) string {
	if row := its.ledger.calls[parentKey]; row != nil {
		return row.watched.trace
	}
	if its.clients.main != nil {
		return its.clients.main.trace
	}
	return ""
}

// traceOf returns the traceparent of a request's metadata; empty: it has none.
func traceOf(ctx context.Context) string {
	sent, _ := metadata.FromIncomingContext(ctx)
	if all := sent.Get("traceparent"); len(all) == 1 {
		return telemetry.Traceparent(all[0])
	}
	return ""
}

// watch shows operators that calls have ended. It comes before the results are recorded, so that a client that has a result
// finds it counted.
func (rec *recorder) watch(endings []ending) {
	for i := range endings {
		e := &endings[i]
		var row *callRow
		var began bool
		rec.s.update(func(its *state) { row, began = its.ledger.calls[e.use.Key], its.ledger.live[e.use.Key] != nil })
		call := telemetry.Call{
			Session: rec.s.name, Use: e.use, Tool: row.Name, Label: row.watched.label, Accepted: row.watched.accepted, Ended: &e.ended,
		}
		telemetry.Log(rec.s.daemon.Log, &call)
		rec.s.daemon.status.recent.Ended(&call)
		rec.s.daemon.Metrics.Ended(&call)
		if row.watched.span != nil {
			call.Texts = func() (input, output string) { return rec.texts(e, began) }
			row.watched.span.End(&call)
		}
	}
}

// texts returns the input of a call that has begun, and its output, as they may be shown: without secrets, and shortened.
func (rec *recorder) texts(e *ending, began bool) (input, output string) {
	if began {
		input = rec.s.daemon.recorded(e.call.Given())
	}
	var all strings.Builder
	for _, block := range e.ended.Content {
		all.WriteString(block.Text)
		if all.Len() > 2*convert.ShownInput {
			break
		}
	}
	return input, convert.Shortened(rec.s.daemon.secrets.now().Text(all.String()), convert.ShownInput)
}

// labelOf returns the label of a tool; nil: the use named none of the session's.
func labelOf(tool tools.Tool) telemetry.Label {
	if tool == nil {
		return telemetry.Unknown
	}
	switch spec := tool.Spec(); spec.Origin {
	case tools.BuiltIn:
		return telemetry.Label(spec.Name)
	case tools.Program:
		return telemetry.Custom
	case tools.MCP:
		return telemetry.MCP
	default:
		return telemetry.Client
	}
}

// decisionOf returns how a question was closed, by the error that its call gets.
func decisionOf(err error) telemetry.Decision {
	no, is := errors.AsType[*fault.Error](err)
	switch {
	case err == nil:
		return telemetry.Allowed
	case is && no.Code == "client_denied":
		return telemetry.Denied
	}
	return telemetry.Withdrawn
}

// openMetrics begins the metrics, if there are any.
func (d *Daemon) openMetrics() {
	if d.Metrics == nil {
		return
	}
	names := []string{checkpoint.ToolName}
	for _, tool := range d.Tools {
		names = append(names, tool.Spec().Name)
	}
	d.Metrics.Serve(d.Version, names, d.metricState)
}

// countRPC returns the options by which the gRPC server counts its requests.
func (d *Daemon) countRPC() []grpc.ServerOption {
	if d.Metrics == nil {
		return nil
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(d.Metrics.RPC.UnaryServerInterceptor()), grpc.ChainStreamInterceptor(d.Metrics.RPC.StreamServerInterceptor()),
	}
}

// metricState returns what the metrics show of the present. States that nothing is in are there too.
func (d *Daemon) metricState() telemetry.State {
	now := telemetry.State{Journal: sizeOf(d.inState("journal")), Servers: map[telemetry.Server]int{}, Gate: d.shares.host.Load()}
	for _, of := range countServers(d.sessions.all()) {
		now.Servers[of.Server] = of.count
	}
	attached, detached := 0, 0
	for _, s := range d.sessions.all() {
		s.update(func(its *state) {
			now.Questions += its.questions.openUnder("")
			now.Running += its.ledger.running
			if its.clients.main != nil {
				attached++
			} else {
				detached++
			}
		})
	}
	d.sessions.mu.Lock()
	defer d.sessions.mu.Unlock()
	now.Sessions = map[string]int{
		"attached": attached, "detached": detached, "resting": len(d.sessions.resting), "not_restored": len(d.sessions.notRestored),
	}
	return now
}

// A serverCount is how many servers are in a state.
type serverCount struct {
	telemetry.Server
	count int
}

// countServers counts the servers of sessions, once for each session that uses them. States that none
// is in are there too.
func countServers(sessions []*session) (counts []serverCount) {
	for _, state := range mcp.States {
		counts = append(counts, serverCount{Server: telemetry.Server{Kind: "mcp", State: string(state)}})
	}
	for _, state := range []string{"starting", "ready", "failed"} {
		counts = append(counts, serverCount{Server: telemetry.Server{Kind: "language", State: state}})
	}
	add := func(kind, state string) {
		if i := slices.IndexFunc(counts, func(c serverCount) bool { return c.Kind == kind && c.State == state }); i >= 0 {
			counts[i].count++
		}
	}
	for _, s := range sessions {
		for _, server := range s.tools.servers.Servers() {
			add("mcp", string(server.State))
		}
		for _, server := range s.judge.languages.Servers() {
			add("language", server.State)
		}
	}
	return counts
}

// sizeOf returns the bytes of the files in a directory.
func sizeOf(dir string) (bytes int64) {
	entries, _ := os.ReadDir(dir) // what cannot be read has no size
	for _, entry := range entries {
		if info, err := os.Lstat(filepath.Join(dir, entry.Name())); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
