// Permission to start the MCP servers that a workspace's .mcp.json or a session's own settings
// name: asked for when a client attaches who can answer, and remembered for exactly that entry.

package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/mcp"
)

// approvalKey is under which a question is open that is about a server and no call; keys of calls begin otherwise.
func approvalKey(server settings.MCPServer) string {
	return "server:" + server.Name + ":" + server.Digest + ":" + server.Approval
}

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

// unapproved returns the servers that would be started if the user approved them.
func (st *policySnapshot) unapproved() (list []settings.MCPServer) {
	for _, server := range st.settings.MCPServers {
		if !server.Approved && st.rules.Removes(mcp.Prefix(server.Name)) == nil {
			list = append(list, server)
		}
	}
	return list
}

// askApproval asks for the servers that are not approved, each until a user has said no, and takes back the questions about others:
// their entries have changed, are gone, or were approved elsewhere. A session without a client that can answer is notified once.
func (ask *asker) askApproval() {
	ask.approving.Lock()
	defer ask.approving.Unlock()
	servers := ask.s.judge.policy().unapproved()
	var untold []settings.MCPServer
	ask.s.update(func(its *state) {
		for key, a := range its.questions.asked {
			about := func(server settings.MCPServer) bool { return approvalKey(server) == key }
			if a.server != nil && !a.done && !slices.ContainsFunc(servers, about) {
				ask.withdraw(its, a, errMoot, "its entry has changed, is gone or was approved elsewhere")
			}
		}
		for _, server := range servers {
			key := approvalKey(server)
			if its.stopping || its.questions.proposed[key] || its.questions.asked[key] != nil {
				continue
			}
			if a := ask.open(its, key, nil, proposal(server)); a != nil {
				a.server = &server
			} else if told := key + ":told"; !its.questions.proposed[told] {
				its.questions.proposed[told] = true
				untold = append(untold, server)
			}
		}
	})
	for _, server := range untold {
		way := "name it in enabledMcpjsonServers of your settings"
		if server.Workspace == "" {
			way = "write the same entry into mcpServers of your settings"
		}
		ask.s.notifier.notify(nil, pipeline.Noticed{Code: "mcp_server_unapproved", Details: serverNamed{server.Name}, Message: fmt.Sprintf(
			"The MCP server %s of %s is not started, since it is not approved. Attach with capabilities.answers to be asked, or %s.", server.Name, server.Origin, way)})
	}
}

// askAgain has open questions about servers put once more, for a stream that was not there when they were.
func (ask *asker) askAgain(its *state) {
	for _, a := range its.questions.asked {
		if a.use == nil && !a.done {
			ask.withdraw(its, a, pipeline.ErrMoot, "it is asked again")
		}
	}
}

// approve keeps the yes to a question about a server, and has the server started.
func (ask *asker) approve(a *asked) {
	server := a.server
	err := ask.s.daemon.settings.ApproveServer(cmp.Or(server.Workspace, ask.s.meta.Roots[0]), server.Approval, server.Digest)
	ask.s.update(func(its *state) {
		delete(its.questions.asked, a.key)
		its.questions.proposed[a.key] = err != nil
	})
	if err != nil {
		ask.s.daemon.Log.Warn("an approval could not be kept", zap.String("server", server.Name), zap.Error(err))
		ask.s.notifier.notify(nil, pipeline.Noticed{Code: "remember_failed", Details: serverNamed{server.Name}, Message: fmt.Sprintf("The approval of the MCP server %s could not be kept: %v.", server.Name, err)})
		return
	}
	ask.s.tools.reconcileServers()
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
		Verdict: permission.Verdict{Decision: permission.Ask, Level: permission.Dangerous, Text: reason, Sentences: []string{reason}, Reasons: []permission.Reason{{Code: permission.StartsServer, Detail: reason}}},
	}
}
