package daemon

// Leave to start the MCP servers that a workspace's .mcp.json names: asked for when somebody attaches who can answer, and
// remembered for exactly that entry. What an entry starts, and what it may do, is not known here.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// approvalKey is under which a question is open that is about a server and no call.
func approvalKey(server settings.MCPServer) string {
	return "server:" + server.Name + ":" + server.Digest
}

// proposed is what a question shows of a server that is to be started.
type proposed struct {
	Server    string   `json:"server"`
	File      string   `json:"file"`
	Command   []string `json:"command,omitempty"`
	Variables []string `json:"variables,omitempty"` // names
	URL       string   `json:"url,omitempty"`
}

// askApproval asks for the servers of a workspace that nobody has approved, each once for as long as the session is open here.
func (s *session) askApproval(st *standing) {
	for _, server := range st.settings.MCPServers {
		key := approvalKey(server)
		s.mu.Lock()
		known := server.Approved || s.proposed[key]
		if !known && s.answerable() {
			s.proposed[key] = true
		}
		able := s.answerable()
		s.mu.Unlock()
		switch {
		case known:
		case able:
			s.Later(func(ctx context.Context) { s.propose(ctx, server) })
		default:
			s.tellUnapproved(server)
		}
	}
}

// tellUnapproved says once, to a session that nobody answers for, why a server is not there.
func (s *session) tellUnapproved(server settings.MCPServer) {
	key := approvalKey(server) + ":told"
	s.mu.Lock()
	told := s.proposed[key]
	s.proposed[key] = true
	s.mu.Unlock()
	if !told {
		s.notify(nil, pipeline.Noticed{Code: "mcp_server_unapproved", Details: serverNamed{server.Name}, Message: fmt.Sprintf(
			"The MCP server %s of %s is not started, since nobody has approved it. Attach with capabilities.answers to be asked, or name it in enabledMcpjsonServers of your settings.", server.Name, server.Origin)})
	}
}

// askAgain has open questions about servers put once more, for a stream that was not there when they were. mu is held.
func (s *session) askAgain() {
	for _, a := range s.asked {
		if a.use == nil && !a.done {
			s.withdraw(a, pipeline.ErrMoot, "it is asked again")
		}
	}
}

// propose asks whether a server may be started, and has it started after a yes.
func (s *session) propose(ctx context.Context, server settings.MCPServer) {
	switch err := s.leaveFor(ctx, server); {
	case err == nil:
	case fault.From(err).Code == "client_denied":
		return
	default: // nobody has answered; whoever attaches next is asked
		s.mu.Lock()
		delete(s.proposed, approvalKey(server))
		s.mu.Unlock()
		return
	}
	if err := s.daemon.settings.ApproveServer(server.Workspace, server.Name, server.Digest); err != nil {
		s.daemon.Log.Warn("an approval could not be kept", zap.String("server", server.Name), zap.Error(err))
		s.notify(nil, pipeline.Noticed{Code: "remember_failed", Details: serverNamed{server.Name}, Message: fmt.Sprintf("The approval of the MCP server %s could not be kept: %v.", server.Name, err)})
		return
	}
	s.employ(s.stand())
}

// leaveFor puts the question until it is answered or cannot be any more. The error says that there was no yes.
func (s *session) leaveFor(ctx context.Context, server settings.MCPServer) error {
	for {
		q := proposal(server)
		s.mu.Lock()
		a := s.put(approvalKey(server), nil, q)
		s.mu.Unlock()
		if a == nil {
			return cannotAsk(q)
		}
		select {
		case <-a.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.mu.Lock()
		if s.asked[a.key] == a {
			delete(s.asked, a.key)
		}
		err := a.err
		s.mu.Unlock()
		if !errors.Is(err, pipeline.ErrMoot) {
			return err
		}
	}
}

// proposal is the question.
func proposal(server settings.MCPServer) pipeline.Question {
	about := proposed{Server: server.Name, File: server.Origin.String(), URL: server.URL}
	does := "It would contact " + server.URL + "."
	if server.Command != "" {
		about.Command = append([]string{server.Command}, server.Args...)
		does = fmt.Sprintf("It would run `%s`, in the sandbox.", strings.Join(about.Command, " "))
	}
	for _, pair := range server.Env {
		name, _, _ := strings.Cut(pair, "=")
		about.Variables = append(about.Variables, name)
	}
	text, _ := json.Marshal(about) // strings always marshal
	reason := fmt.Sprintf("%s names the MCP server %s, and nobody has approved this entry. %s A yes holds until the entry changes.", server.Origin, server.Name, does)
	return pipeline.Question{
		ID: newID("server-"), Tool: "McpServer", Title: fmt.Sprintf("Start the MCP server %s of %s?", server.Name, filepath.Base(server.Workspace)),
		Input: string(text), Digest: pipeline.DigestOf(string(text) + server.Digest), Facts: &permission.Facts{}, Form: &tools.Form{},
		Verdict: permission.Verdict{Decision: permission.Ask, Level: permission.Dangerous, Reason: reason, Reasons: []string{reason}, Grounds: []permission.Ground{{Text: reason}}},
	}
}
