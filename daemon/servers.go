// What works for a session for longer than a call: MCP servers, language servers, background tasks.
// Which servers there are follows from settings, and how they are confined from the session's
// rights.

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/program"
)

// A toolHost has the tools of a session: it looks them up, runs the servers behind them, and
// notifies clients when they change.
type toolHost struct {
	catalog
	s       *session
	servers *mcp.Set

	announcing  sync.Mutex // held while clients are told of other tools, so that the newest are told last
	reconciling sync.Mutex // held while MCP servers are held against settings
	refreshing  sync.Mutex // held while the tools of MCP servers are read, so that the newest stay
}

// openFleet prepares for the MCP servers of all sessions.
func (d *Daemon) openFleet() {
	d.fleet.Lists, d.fleet.IdleTimeout = d.inState("mcp"), d.limits.Idle.MCP
	if d.fleet.IdleTimeout == 0 {
		d.fleet.IdleTimeout = -1 // no limit
	}
}

// openServers makes the sets of servers of a session that is put together. None is started by that.
func (h *toolHost) openServers() {
	h.servers = h.s.daemon.fleet.Set(string(h.s.meta.owner()), mcp.Host{
		Version: h.s.daemon.Version, Roots: h.s.meta.Roots, Dir: h.s.meta.Roots[0], Environ: listed(daemonEnviron()),
		Open: h.boxOf, Changed: h.serversChanged,
		Notice: func(n mcp.Notice) {
			h.s.notify(nil, pipeline.Noticed{Code: n.Code, Message: n.Message, Details: serverNamed{n.Server}})
		},
	})
}

// languageHost is what language servers may ask of the session.
func (j *judge) languageHost(ctx context.Context) language.Host {
	return language.Host{
		Roots: j.meta.Roots, Servers: j.languageServers, Environ: j.baseEnviron,
		Box: func(program string) *sandbox.Box { return j.lasting(ctx, pipeline.Rights.Reader, program) },
	}
}

// closeServers ends all of them. Nothing is left of them when it returns.
func (h *toolHost) closeServers() {
	h.servers.Close()
	h.judge.languages.Close()
}

// serverNamed is the structured part of a notice about a server.
type serverNamed struct {
	Server string `json:"server"`
}

// startServers serves the MCP servers that settings name, and no others. It returns at once.
func (h *toolHost) startServers() {
	var first bool
	h.s.update(func(its *state) {
		first = !its.toolset.serving && !its.stopping
		its.toolset.serving = its.toolset.serving || first
	})
	if first {
		h.reconcileServers()
	}
}

// reconcileServers holds the MCP servers of a session that has begun to serve them against what
// settings name now. It must not be called inside an update.
func (h *toolHost) reconcileServers() {
	h.reconciling.Lock()
	defer h.reconciling.Unlock()
	st := h.judge.policy()
	serving := view(h.s, func(its *state) bool { return its.toolset.serving && !its.stopping })
	if !serving {
		return
	}
	var entries []mcp.Entry
	for _, server := range st.settings.MCPServers {
		if server.Approved && st.rules.Removes(mcp.Prefix(server.Name)) == nil {
			entries = append(entries, entryOf(server))
		}
	}
	h.servers.Serve(entries)
}

func entryOf(s settings.MCPServer) mcp.Entry {
	return mcp.Entry{
		Name: s.Name, Transport: s.Transport, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers, Timeout: s.Timeout,
		IdleTimeout: s.IdleTimeout, AlwaysLoad: s.AlwaysLoad, Shared: s.Shared, CacheTTL: s.CacheTTL, Confined: s.Confined,
		Origin: s.Origin.String(), Digest: s.Digest,
	}
}

// boxOf returns what the process of an MCP server is started with.
func (h *toolHost) boxOf(e mcp.Entry) *sandbox.Box {
	if !e.Confined {
		conf := h.judge.policy().confining
		return &sandbox.Box{Runner: conf.Runner, Filter: conf.Filter}
	}
	return h.judge.lasting(h.s.ctx, pipeline.Rights.Worker, e.Command)
}

// lasting returns a box of one kind by what holds now, in which the program can be seen if its path
// is absolute.
func (j *judge) lasting(ctx context.Context, kind func(r pipeline.Rights, ctx context.Context, dir, program string) *sandbox.Box, program string) *sandbox.Box {
	return kind(j.Rights(nil), ctx, j.meta.Roots[0], program)
}

// baseEnviron is the client's environment with what settings say.
func (j *judge) baseEnviron() []string {
	return j.basis().shell.vars.under(j.latest().settings).base
}

// serversChanged takes over the tools that MCP servers have now, and notifies clients.
func (h *toolHost) serversChanged() {
	h.refreshServers()
	h.announceTools()
}

// refreshServers takes over the tools that MCP servers have now.
func (h *toolHost) refreshServers() {
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	list := h.servers.Tools()
	h.s.update(func(its *state) { its.toolset.changeDynamic(func(next *dynamicTools) { next.servers = list }) })
}

// awaitServers returns when the tools of every MCP server of the session are known, or it has failed,
// or ctx ends.
func (h *toolHost) awaitServers(ctx context.Context) {
	h.startServers()
	h.servers.Await(ctx)
	h.s.update(func(its *state) { its.toolset.offered = true })
	h.serversChanged() // which may not have heard of it yet
	if h.servers.Reading() {
		h.announce() // the client gets a list without them
	}
}

// languageServers are the usual ones with what settings say of them.
func (j *judge) languageServers() []language.Server {
	said := j.policy().settings.LSP
	list := language.Defaults()
	for _, l := range said {
		at := slices.IndexFunc(list, func(d language.Server) bool { return d.Language == l.Language })
		if at < 0 && !l.Off {
			list = append([]language.Server{{Language: l.Language}}, list...)
			at = 0
		}
		switch {
		case l.Off && at >= 0:
			list = slices.Delete(list, at, at+1)
		case !l.Off:
			if l.Command != nil {
				list[at].Command = l.Command
			}
			if l.Extensions != nil {
				list[at].Extensions = l.Extensions
			}
		}
	}
	return list
}

// programs makes the tools that settings name as programs, and warns of what is wrong with others.
func (st *policySnapshot) makePrograms() {
	for _, p := range st.settings.Programs {
		tool, err := program.Tool(program.Program{
			Name: p.Name, Description: p.Description, InputSchema: p.InputSchema, Command: p.Command, ReadOnly: p.ReadOnly,
			Timeout: p.Timeout, CacheTTL: p.CacheTTL, Origin: p.Origin.String(),
		})
		if err != nil {
			st.warnings = append(st.warnings, settings.Warning{Code: settings.Wrong, Text: err.Error()})
		} else {
			st.programs = append(st.programs, tool)
		}
	}
}

// diagnosticsTime is how long an edit's result waits for diagnostics; part of the contract.
const diagnosticsTime = time.Second

// Watch notes what language servers have to say of the files that an edit is about to change. The
// function returns, once they are changed, what is new of that, in words; nil: there is nothing to
// wait for.
func (h *toolHost) Watch(ctx context.Context, c *pipeline.Call) func(context.Context) string {
	st := h.judge.policy()
	if !st.settings.DiagnosticsAfterEdit {
		return nil
	}
	began := time.Now()
	var watching []*language.Watching
	var files []string
	for _, real := range c.Written() {
		if !h.judge.languages.Runs(real) {
			continue
		}
		before := textAt(c.Files(), real)
		if w := h.judge.languages.Watch(ctx, real, before); w != nil {
			watching, files = append(watching, w), append(files, real)
		}
	}
	if len(files) == 0 {
		return nil
	}
	left := diagnosticsTime - time.Since(began)
	return func(ctx context.Context) string {
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		var found []language.Diagnostic
		for i, w := range watching {
			found = append(found, w.New(ctx, textAt(c.Files(), files[i]))...)
		}
		return newDiagnostics(slices.DeleteFunc(found, func(d language.Diagnostic) bool { return st.rules.DeniesRead(d.Path, nil) != nil }))
	}
}

// textAt is a file's text as the call sees it; nil: there is none.
func textAt(files *workspace.View, real string) []byte {
	content, err := files.Look(workspace.NameOf(real))
	if err != nil || !content.Path.Exists {
		return nil
	}
	return content.Data
}

// shownDiagnostics is how many an edit's result lists. Ours: a model fixes the first ones first.
const shownDiagnostics = 20

func newDiagnostics(found []language.Diagnostic) string {
	if len(found) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("New diagnostics after this edit:")
	for _, d := range found[:min(len(found), shownDiagnostics)] {
		b.WriteString("\n" + d.String())
	}
	if more := len(found) - shownDiagnostics; more > 0 {
		fmt.Fprintf(&b, "\n(%d more are not shown; the LSP tool lists those of a file)", more)
	}
	return b.String()
}

// mayBeStarting reports whether a server that has not listed its tools for this session may bring the
// tool of that name.
func (h *toolHost) mayBeStarting(name string) bool {
	h.startServers()
	return slices.ContainsFunc(h.servers.Servers(), func(server mcp.Status) bool {
		return slices.Contains([]mcp.State{mcp.NotStarted, mcp.Starting, mcp.Failed}, server.State) && strings.HasPrefix(name, mcp.Prefix(server.Name)+"__")
	})
}

// sessionTasks are the processes that calls have left running.
type sessionTasks struct {
	s   *session
	set *background.Set
}

// taskEnd is what a Notice "task_ended" carries for programs.
type taskEnd struct {
	TaskID   string `json:"task_id"`
	ExitCode int    `json:"exit_code"` // -1 when a signal has ended it, or a script had left it running
	Signal   string `json:"signal,omitempty"`
	Output   string `json:"output_path"`
}

// keyOf is the key of the call that has started the task.
func (t *sessionTasks) keyOf(task *background.Task) string {
	return strings.TrimPrefix(task.Call, t.s.name+".")
}

// taskStarted returns the change of state that goes with a call which has left the task behind:
// after a restart its end is told. nil when it has ended already.
func (t *sessionTasks) taskStarted(id string) []journal.Put {
	for _, task := range t.running() {
		if task.ID == id {
			return []journal.Put{putState(keyTask+id, task.Command)}
		}
	}
	return nil
}

// taskEnded records that a task has ended, so that no client need poll.
func (t *sessionTasks) taskEnded(task *background.Task) {
	exit, _ := task.Exit()
	end := taskEnd{TaskID: task.ID, ExitCode: exit.Code, Signal: exit.Signal, Output: task.Output.Path()}
	how := fmt.Sprintf(" with exit code %d", exit.Code)
	if exit.Signal != "" {
		how = " by " + exit.Signal
	} else if exit.Code < 0 {
		how = "" // a script had left it running
	}
	left := pipeline.AsideText(exit, t.s.daemon.user.advised)
	t.s.update(func(its *state) {
		its.used = time.Now()
		t.s.asker.withdrawHosts(its, t.keyOf(task))
		notice := pipeline.Noticed{
			Code: "task_ended", CallID: its.ledger.idOf(t.keyOf(task)), Details: end,
			Message: strings.TrimSpace(fmt.Sprintf("The background task %s (%s) has ended%s. %s", task.ID, task.Command, how, left)),
		}
		its.ledger.append(entry(nil, notice, journal.Put{Key: keyTask + task.ID}))
		its.ledger.wakeWaiters()
	})
	t.s.ports.review()
}

// running returns the tasks that have not ended.
func (t *sessionTasks) running() []*background.Task {
	return slices.DeleteFunc(t.set.List(), func(task *background.Task) bool {
		_, ended := task.Exit()
		return ended
	})
}

// describeTasks lists the tasks that run, with their ports.
func (t *sessionTasks) describeTasks(its *state, ports map[*background.Task][]tools.Port) []*tooldv1.BackgroundTask {
	return convert.Each(t.running(), func(task *background.Task) *tooldv1.BackgroundTask {
		call := cmp.Or(its.ledger.calls[t.keyOf(task)], &callRow{}) // it may be kept no more
		return &tooldv1.BackgroundTask{
			TaskId: task.ID, Command: convert.Shortened(task.Command, convert.ShownInput), Age: durationpb.New(time.Since(task.Started)),
			OutputPath: convert.Clean(task.Output.Path()), ToolUseId: call.ID, Turn: call.Turn,
			Ports: convert.Each(ports[task], convert.Port),
		}
	})
}

// taskOf returns the running task that the call with this key has left behind; nil: there is none.
func (t *sessionTasks) taskOf(key string) *background.Task {
	for _, task := range t.running() {
		if t.keyOf(task) == key {
			return task
		}
	}
	return nil
}
