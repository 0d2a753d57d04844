// Permission to start the MCP servers that a workspace's .mcp.json or a session's own settings
// name: asked for when a client attaches who can answer, and remembered for exactly that entry.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/mcp"
)

// approvalKey is under which a question is open that is about a server and no call.
func approvalKey(server settings.MCPServer) string {
	return approvals + server.Name + ":" + server.Digest + ":" + server.Approval
}

// approvals is what those keys begin with; those of calls begin otherwise.
const approvals = "server:"

// proposed is what a question shows of a server that is to be started: its entry as it is written.
type proposed struct {
	Server     string   `json:"server"`
	File       string   `json:"file"`
	Command    []string `json:"command,omitempty"`
	URL        string   `json:"url,omitempty"`
	Variables  []string `json:"variables,omitempty"`  // names of those that it gives the program
	Headers    []string `json:"headers,omitempty"`    // names
	References []string `json:"references,omitempty"` // names of the daemon's variables whose values it gets
}

// errGone is why a question about a server was withdrawn: no settings name its entry any more.
var errGone = errors.New("its entry has changed, is gone or was approved elsewhere")

// unapproved returns the servers that would be started if the user approved them.
func (st *policySnapshot) unapproved() (list []settings.MCPServer) {
	for _, server := range st.settings.MCPServers {
		if !server.Approved && st.rules.Removes(mcp.Prefix(server.Name)) == nil {
			list = append(list, server)
		}
	}
	return list
}

// proposes reports whether the server is one of those.
func (st *policySnapshot) proposes(server settings.MCPServer) bool {
	return slices.ContainsFunc(st.unapproved(), func(o settings.MCPServer) bool { return approvalKey(o) == approvalKey(server) })
}

// askApproval asks for the servers that are not approved, each once for as long as the session is open here, and takes
// back the questions about others.
func (ask *asker) askApproval() {
	servers := ask.s.judge.policy().unapproved()
	ask.retract(servers)
	for _, server := range servers {
		key := approvalKey(server)
		var known, able bool
		ask.s.update(func(its *state) {
			known, able = its.questions.proposed[key], ask.answerable(its)
			if !known && able {
				its.questions.proposed[key] = true
			}
		})
		switch {
		case known:
		case able:
			ask.s.goUnlessStopping(func(ctx context.Context) { ask.propose(ctx, server) })
		default:
			ask.notifyUnapproved(server)
		}
	}
}

// retract takes back the open questions about servers that are none of these: their entries have changed, are gone, or have
// been approved elsewhere.
func (ask *asker) retract(servers []settings.MCPServer) {
	ask.s.update(func(its *state) {
		for key, a := range its.questions.asked {
			about := func(server settings.MCPServer) bool { return approvalKey(server) == key }
			if a.use == nil && strings.HasPrefix(key, approvals) && !a.done && !slices.ContainsFunc(servers, about) {
				delete(its.questions.proposed, key)
				ask.withdraw(its, a, errGone, errGone.Error())
			}
		}
	})
}

// notifyUnapproved notifies a session without a client that can answer, once, of why a server is not there.
func (ask *asker) notifyUnapproved(server settings.MCPServer) {
	key := approvalKey(server) + ":told"
	var told bool
	ask.s.update(func(its *state) {
		told = its.questions.proposed[key]
		its.questions.proposed[key] = true
	})
	if told {
		return
	}
	way := "name it in enabledMcpjsonServers of your settings"
	if server.Workspace == "" {
		way = "write the same entry into mcpServers of your settings"
	}
	ask.s.notifier.notify(nil, pipeline.Noticed{Code: "mcp_server_unapproved", Details: serverNamed{server.Name}, Message: fmt.Sprintf(
		"The MCP server %s of %s is not started, since it is not approved. Attach with capabilities.answers to be asked, or %s.", server.Name, server.Origin, way)})
}

// askAgain has open questions about servers put once more, for a stream that was not there when they were.
func (ask *asker) askAgain(its *state) {
	for _, a := range its.questions.asked {
		if a.use == nil && !a.done {
			ask.withdraw(its, a, pipeline.ErrMoot, "it is asked again")
		}
	}
}

// propose asks whether a server may be started, and has it started after a yes.
func (ask *asker) propose(ctx context.Context, server settings.MCPServer) {
	switch err := ask.awaitApproval(ctx, server); {
	case err == nil:
	case errors.Is(err, errGone), fault.From(err).Code == "client_denied":
		return
	default: // no answer: the next client that attaches is asked
		ask.s.update(func(its *state) { delete(its.questions.proposed, approvalKey(server)) })
		return
	}
	root := cmp.Or(server.Workspace, ask.s.meta.Roots[0])
	if err := ask.s.daemon.settings.ApproveServer(root, server.Approval, server.Digest); err != nil {
		ask.s.daemon.Log.Warn("an approval could not be kept", zap.String("server", server.Name), zap.Error(err))
		ask.s.notifier.notify(nil, pipeline.Noticed{Code: "remember_failed", Details: serverNamed{server.Name}, Message: fmt.Sprintf("The approval of the MCP server %s could not be kept: %v.", server.Name, err)})
		return
	}
	ask.s.tools.reconcileServers()
}

// awaitApproval puts the question until it is answered or cannot be any more. The error says that there was no yes.
func (ask *asker) awaitApproval(ctx context.Context, server settings.MCPServer) error {
	for {
		q := proposal(server)
		key := approvalKey(server)
		a := view(ask.s, func(its *state) *asked { return ask.open(its, key, nil, q) })
		if a == nil {
			return ask.cannotAsk(q)
		}
		if st := ask.s.judge.policy(); !st.proposes(server) { // it may have gone before there was a question to take back
			ask.retract(st.unapproved())
		}
		select {
		case <-a.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		ask.s.update(func(its *state) {
			if its.questions.asked[key] == a {
				delete(its.questions.asked, key)
			}
			err = a.err
		})
		if !errors.Is(err, pipeline.ErrMoot) && !ask.isBack(server, err) {
			return err
		}
	}
}

// isBack reports whether a question was withdrawn for a reason that no longer holds, and is not open otherwise.
func (ask *asker) isBack(server settings.MCPServer, err error) bool {
	if !errors.Is(err, errGone) || !ask.s.judge.policy().proposes(server) {
		return false
	}
	return view(ask.s, func(its *state) bool {
		key := approvalKey(server)
		asked := its.questions.proposed[key]
		its.questions.proposed[key] = true
		return !asked
	})
}

// proposal is the question.
func proposal(server settings.MCPServer) pipeline.Question {
	w := server.Written
	about := proposed{
		Server: server.Name, File: server.Origin.String(), Command: w.Command, URL: w.URL,
		Variables: w.Variables, Headers: w.Headers, References: w.References,
	}
	does := "It would contact " + w.URL + "."
	if len(w.Command) > 0 {
		does = fmt.Sprintf("It would run `%s`, in the sandbox.", strings.Join(w.Command, " "))
	}
	if len(w.References) > 0 {
		does += " It would get the values that the daemon has of " + strings.Join(w.References, ", ") + "."
	}
	text, _ := json.Marshal(about) // strings always marshal
	reason := fmt.Sprintf("%s names the MCP server %s, and this entry is not approved. %s A yes holds until the entry changes.", server.Origin, server.Name, does)
	of := filepath.Base(server.Workspace)
	if server.Workspace == "" {
		of = settings.SessionText
	}
	return pipeline.Question{
		ID: newID("server-"), Tool: "McpServer", Title: fmt.Sprintf("Start the MCP server %s of %s?", server.Name, of),
		Input: string(text), Digest: pipeline.DigestOf(string(text) + server.Digest), Facts: &permission.Facts{}, Form: &tools.Form{},
		Verdict: permission.Asking(permission.Dangerous, permission.Reason{Code: permission.StartsServer, Detail: reason}),
	}
}
