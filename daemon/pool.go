// Which tools a session has: what the daemon is built with, what settings name, what its MCP
// servers and its clients bring, put together by the pool package, and told to clients when it
// changes.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/pool"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/mcp"
)

// A dynamicTools is what comes and goes of a session's tools while it is open. It is not changed
// once it is made.
type dynamicTools struct {
	servers []tools.Tool // of MCP servers
	clients []tools.Tool
	active  []string // deferred tools that were activated
}

// pooled is a pool with what it was made of.
type pooled struct {
	*pool.Pool
	policy  *policySnapshot
	options *tooldv1.Options
	supply  *dynamicTools
}

// A catalog puts together the tools of the session that a judge judges.
type catalog struct {
	judge  *judge
	pooled atomic.Pointer[pooled] // as they were last put together; nil: not yet
}

// pool returns the tools of the session under these options. It takes the session's lock.
func (c *catalog) pool(options *tooldv1.Options) *pool.Pool {
	st := c.judge.policy()
	b := c.judge.basis() // after policy: loading settings may change it
	supplied := b.dynamic
	if p := c.pooled.Load(); p != nil && p.policy == st && p.options == options && p.supply == supplied {
		return p.Pool
	}
	list := slices.Concat(c.judge.daemon.Tools, st.programs, supplied.servers, supplied.clients)
	env := &tools.Env{Dir: b.shell.dir, Environ: b.shell.vars.under(st.settings).calls, Languages: c.judge.languages}
	conditions := pool.Conditions{Env: env, Preset: pool.Preset(st.settings.Preset), Removed: func(name string) string {
		if rule := st.rules.Removes(name); rule != nil {
			return fmt.Sprintf("The rule %s in %s denies it.", rule.Text, rule.Origin)
		}
		return ""
	}}
	if options.GetTools() != nil {
		conditions.Named = append([]string{}, options.GetTools().GetNames()...)
	}
	deferral := pool.Deferral{Above: st.settings.DeferAbove, Named: convert.Each(st.settings.Deferred, textOf), Active: supplied.active}
	if c.judge.meta.Anonymous { // a client that names a tool there knows it, and no prompt is made of its tools
		deferral.Above = -1
	}
	made := c.judge.daemon.sessions.pools.Assemble(pool.Offer(list, conditions), deferral)
	c.pooled.Store(&pooled{made, st, options, supplied})
	return made
}

// refreshedPool also asks again what a tool needs that may have come or gone beside the settings,
// such as a program.
func (c *catalog) refreshedPool(options *tooldv1.Options) *pool.Pool {
	c.pooled.Store(nil)
	return c.pool(options)
}

// changeDynamic changes what comes and goes. Clients are notified by announceTools.
func (t *toolset) changeDynamic(change func(*dynamicTools)) {
	next := *t.dynamic
	change(&next)
	t.dynamic = &next
}

// toolsChanged is what programs are told of a pool that has become another one.
type toolsChanged struct {
	Revision string   `json:"revision"`
	Added    []string `json:"added"`
	Removed  []string `json:"removed"`
}

// announced is what clients were told of a session's tools.
type announced struct {
	revision string // empty: they were told nothing yet
	names    []string
}

// announceTools notifies clients if the session's tools have changed since the last notice. It must
// not be called inside an update.
//
// Nothing is announced before a client can know the tools, nor while the tools are read that MCP
// servers had the last time: they would seem to be new.
func (h *toolHost) announceTools() {
	if view(h.s, func(its *state) bool { return its.toolset.offered }) && !h.servers.Reading() {
		h.refreshServers() // of which the last may have been read just now
		h.announce()
	}
}

// announce does it at once.
func (h *toolHost) announce() {
	h.announcing.Lock()
	defer h.announcing.Unlock()
	options := view(h.s, func(its *state) *tooldv1.Options { return its.options })
	now := h.refreshedPool(options)
	h.s.update(func(its *state) {
		before := its.toolset.announced
		if before.revision == now.Revision {
			return
		}
		is := now.Names()
		its.toolset.announced = announced{now.Revision, is}
		if before.revision == "" || its.stopping {
			return
		}
		details := toolsChanged{now.Revision, without(is, before.names), without(before.names, is)}
		its.ledger.append(entry(nil, pipeline.Noticed{Code: "tools_changed", Message: "The tools of this session have changed" + changesIn(details) + ".", Details: details}))
	})
}

// changesIn puts what has come and gone into a clause.
func changesIn(c toolsChanged) (text string) {
	if len(c.Added) > 0 {
		text += "; added: " + someOf(c.Added)
	}
	if len(c.Removed) > 0 {
		text += "; removed: " + someOf(c.Removed)
	}
	return text
}

// someOf names the first of a list in a sentence, and counts the rest.
func someOf(names []string) string {
	if more := len(names) - shownSome; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownSome], ", "), more)
	}
	return strings.Join(names, ", ")
}

// shownSome is how many names stand in a sentence.
const shownSome = 10

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return slices.Contains(others, name) })
}

// activate adds deferred tools to those that the session has, and returns those that are new among
// them.
func (h *toolHost) activate(its *state, names []string) (fresh []string) {
	before := its.toolset.dynamic.active
	if fresh = without(names, before); len(fresh) > 0 {
		its.toolset.changeDynamic(func(next *dynamicTools) { next.active = slices.Concat(before, fresh) })
		h.s.Later(func(context.Context) { h.announceTools() })
	}
	return fresh
}

// optionsOf returns the options of the call's turn.
func (h *toolHost) optionsOf(c *pipeline.Call) *tooldv1.Options {
	return view(h.s, func(its *state) *tooldv1.Options {
		if t := its.ledger.turns[c.Use.Turn]; t != nil {
			return t.options
		}
		return its.options
	})
}

// find finds the tool of that exact name in the pool that the options leave; nil: there is none.
func (c *catalog) find(name string, options *tooldv1.Options) tools.Tool {
	e := c.pool(options).Find(name)
	if e != nil && !e.Has() && !e.Forbidden && e.Spec.Available != nil {
		e = c.refreshedPool(options).Find(name)
	}
	if e.Has() {
		return e.Tool
	}
	return nil
}

// lookUp finds the tool for a call, or what stands for it while its MCP server is starting; nil:
// there is none.
func (h *toolHost) lookUp(name string, options *tooldv1.Options) tools.Tool {
	if tool := h.find(name, options); tool != nil {
		return tool
	}
	if !strings.HasPrefix(name, "mcp__") {
		return nil
	}
	if h.pool(options).Find(name) == nil && h.mayBeStarting(name) {
		return &pending{h.s, name, options}
	}
	h.refreshServers() // its server may have listed it just now
	return h.find(name, options)
}

func (d *Daemon) toolNames() []string { return convert.Each(d.Tools, nameOf) }

func nameOf(tool tools.Tool) string { return tool.Spec().Name }

// unknownTool is the fault of a tool use whose tool the session does not have.
func (c *catalog) unknownTool(name string, options *tooldv1.Options) *fault.Error {
	p := c.pool(options)
	e := p.Find(name)
	switch {
	case e == nil && len(p.Names()) == 0:
		return fault.Invalidf("unknown_tool", "There is no tool %q, and no other.", convert.Short(name))
	case e == nil:
		text := fmt.Sprintf("There is no tool %q. The nearest are %s.", convert.Short(name), strings.Join(p.Nearest(name), ", "))
		if len(p.Deferrable()) > 0 {
			text += " ToolSearch finds others."
		}
		return fault.Invalidf("unknown_tool", "%s", text)
	case e.Forbidden:
		return fault.Invalidf("unknown_tool", "This session has no tool %s. %s Do without it: only the user can change that.", name, e.Unavailable)
	case e.Deferred:
		return fault.Invalidf("unknown_tool", "The tool %s is known by its name alone so far. Activate it with ToolSearch and the query %q, and call it with what its description and schema then say.", name, "select:"+name)
	}
	return fault.Invalidf("unknown_tool", "This session has no tool %s. %s", name, e.Unavailable)
}

// ListTools returns the tools that a session sees, or a new one on the default root would see.
func (t *toolServer) ListTools(ctx context.Context, request *tooldv1.ListToolsRequest) (*tooldv1.ListToolsResponse, error) {
	if request.GetFormat() < 0 || request.GetFormat() > tooldv1.ToolFormat_TOOL_FORMAT_AGENT_TOOLSET {
		return nil, apierror.Invalidf("invalid_format", "format", "format has the value %d, which this daemon does not know.", request.GetFormat())
	}
	c, err := t.listing(ctx, request)
	if err != nil {
		return nil, err
	}
	p := c.refreshedPool(c.judge.basis().options)
	response := &tooldv1.ListToolsResponse{DeferredPrompt: p.Prompt(), Revision: p.Revision}
	for _, e := range p.Entries {
		if e.Listed() || request.GetIncludeUnavailable() {
			response.Tools = append(response.Tools, convert.Tool(e, request.GetIncludeUnavailable()))
		}
	}
	for _, e := range p.Dropped {
		if request.GetIncludeUnavailable() {
			response.Tools = append(response.Tools, convert.Tool(e, true))
		}
	}
	if format, some := convert.FormatIn(request.GetFormat()); some {
		response.DefinitionsJson, err = p.Definitions(format)
	}
	return response, cmp.Or(err, shortenList(response))
}

// maxListed is how many bytes a list may have: most clients take messages of 4 MiB.
const maxListed = 3 << 20

// shortenList leaves out of a list that is too long what it says twice, and what the session does
// not have. The error means that it is too long all the same.
func shortenList(list *tooldv1.ListToolsResponse) error {
	said := list.GetDefinitionsJson() != ""
	for _, tool := range list.GetTools() {
		if proto.Size(list) <= maxListed {
			return nil
		}
		if said || tool.GetDeferred() || tool.GetUnavailable() != "" {
			tool.Description, tool.InputSchemaJson = "", ""
		}
	}
	if size := proto.Size(list); size > maxListed {
		return apierror.New(codes.ResourceExhausted, "too_many_tools", "The tools of this session are described in %d bytes, and a list has at most %d. Name fewer in options.tools, or describe those of settings and client in fewer words.", size, maxListed)
	}
	return nil
}

// listing returns the tools that are listed: those of the session of that name, when its MCP
// servers have had time to start, or those that a new session would have.
func (t *toolServer) listing(ctx context.Context, request sessionRequest) (*catalog, error) {
	if request.GetSessionId() == "" {
		j, err := t.daemon.imagined(principalOf(ctx), nil, nil)
		return &catalog{judge: j}, err
	}
	s, err := t.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	s.tools.awaitServers(ctx)
	return &s.tools.catalog, nil
}

// listWait is how long a list waits for MCP servers that start. Those that come later are told by a
// Notice.
const listWait = 5 * time.Second

// pending stands for a tool that is not there yet. Its calls run alone: whether the tool only reads
// is not known.
type pending struct {
	session *session
	name    string
	options *tooldv1.Options
}

// Spec returns what is known of the tool.
func (p *pending) Spec() tools.Spec {
	return tools.Spec{Name: p.name, Origin: tools.MCP, TimeLimit: time.Minute, OpenWorld: true}
}

// Parse takes everything: the schema is still to come.
func (p *pending) Parse(input json.RawMessage) (tools.Action, error) {
	return &waiting{pending: p, input: input}, nil
}

// A waiting action becomes one of the tool when its state is checked.
type waiting struct {
	*pending
	input json.RawMessage
	real  tools.Action
}

func (w *waiting) Effects() tools.Effects {
	return tools.Effects{External: "an MCP server", Opaque: true, Reason: "it is a tool of an MCP server"}
}

func (w *waiting) TimeLimit() time.Duration { return 0 }

// Check waits for the server, and then checks as the tool does.
func (w *waiting) Check(ctx context.Context, env *tools.Env) (tools.Preview, error) {
	w.session.tools.awaitServers(ctx)
	if err := context.Cause(ctx); err != nil {
		return tools.Preview{}, err
	}
	tool, err := w.tool(ctx)
	if err != nil {
		return tools.Preview{}, err
	}
	if w.real, err = tool.Parse(w.input); err != nil {
		return tools.Preview{}, err
	}
	return w.real.Check(ctx, env)
}

// tool returns the tool, for which servers that did not start are tried once more. The error is
// why it is not there.
func (w *waiting) tool(ctx context.Context) (tools.Tool, error) {
	if tool := w.session.tools.find(w.name, w.options); tool != nil {
		return tool, nil
	}
	for _, server := range w.session.tools.servers.Servers() {
		if server.State == mcp.Ready || server.State == mcp.IdleStopped || !strings.HasPrefix(w.name, mcp.Prefix(server.Name)+"__") {
			continue
		}
		if err := w.session.tools.servers.Revive(ctx, server.Name); err != nil {
			return nil, err
		}
	}
	w.session.tools.serversChanged() // which may not have heard of it yet
	if tool := w.session.tools.find(w.name, w.options); tool != nil {
		return tool, nil
	}
	return nil, w.session.tools.unknownTool(w.name, w.options)
}

func (w *waiting) Run(ctx context.Context, env *tools.Env) (tools.Result, error) {
	return w.real.Run(ctx, env)
}
