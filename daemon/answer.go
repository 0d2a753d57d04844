// What an answer may be and what follows from it: who may give one, the rules that it brings, and
// the approval of MCP servers that a workspace's .mcp.json or a session's own settings name.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/mcp"
)

// Bounds of the rules that answers bring, ours: far above what people need.
const (
	maxRemembered     = 16      // rules in one answer
	maxSessionRules   = 1000    // rules that a session keeps
	maxRememberedRule = 4 << 10 // bytes of a rule
)

// keeping is a rule that is to be kept, and where.
type keeping struct {
	remembered
	scope tooldv1.Scope
}

// parseRules reads the rules of an answer; the refusal explains why one cannot be kept.
func (ask *asker) parseRules(wire []*tooldv1.Remember) (rules []keeping, refused *apierror.Error) {
	if len(wire) > maxRemembered {
		return nil, apierror.Invalidf("invalid_rule", "remember", "An answer may bring %d rules to remember, and this one has %d.", maxRemembered, len(wire))
	}
	for _, r := range wire {
		list, known := convert.ListIn(r)
		if !known {
			return nil, apierror.Invalidf("invalid_rule", "remember.list", "A rule is remembered in the list \"allow\", \"ask\" or \"deny\", not %q.", convert.Short(r.GetList()))
		}
		k := keeping{remembered{list, r.GetRule()}, r.GetScope()}
		if len(k.Rule) > maxRememberedRule {
			return nil, apierror.Invalidf("invalid_rule", "remember.rule", "A rule to remember has %d bytes, and at most %d are taken.", len(k.Rule), maxRememberedRule)
		}
		if _, err := permission.ParseRule(k.List, k.Rule, permission.Origin{File: rememberedOrigin}); err != nil {
			return nil, apierror.Invalidf("invalid_rule", "remember.rule", "The rule cannot be remembered: %v.", err)
		}
		if err := ask.checkScope(k); err != nil {
			return nil, err
		}
		rules = append(rules, k)
	}
	return rules, nil
}

// anchorRules puts the session's roots in front of what was suggested about paths and goes into the
// user's file: there ./ is the root of whatever session reads it, and the answer was for this one
// only. Rules that were not suggested stay as they are.
func (ask *asker) anchorRules(rules []keeping, suggested []string) (list []keeping) {
	for _, k := range rules {
		tool, path, relative := strings.Cut(k.Rule, "(./")
		if !relative || tool == "Bash" || k.scope != tooldv1.Scope_SCOPE_USER || !slices.Contains(suggested, k.Rule) {
			list = append(list, k)
			continue
		}
		for _, root := range ask.s.meta.Roots {
			if !strings.ContainsAny(root, `*?[]\()!`) { // which mean something in a rule
				list = append(list, keeping{remembered{k.List, tool + "(/" + strings.TrimSuffix(root, "/") + "/" + path}, k.scope})
			}
		}
	}
	return list
}

// checkScope refuses what would be written where it does not count.
func (ask *asker) checkScope(k keeping) *apierror.Error {
	switch k.scope {
	case tooldv1.Scope_SCOPE_UNSPECIFIED, tooldv1.Scope_SCOPE_SESSION, tooldv1.Scope_SCOPE_USER:
		return nil
	case tooldv1.Scope_SCOPE_LOCAL, tooldv1.Scope_SCOPE_PROJECT:
		if k.List != permission.AllowList {
			return nil
		}
		root := ask.s.meta.Roots[0]
		if now, err := ask.s.daemon.settings.Trusted(root); err == nil && (now.Trusted || now.Empty) {
			return nil
		}
		return apierror.Preconditionf("not_trusted", "remember.scope", "The files of the workspace %s are not trusted, so an allow rule in them would count in no session but one that trusts them unseen. Look at them and run \"toold trust %s\" first, or remember the rule for the session or the user.", convert.Clean(root), convert.Clean(root))
	}
	return apierror.Invalidf("invalid_rule", "remember.scope", "The scope %d of a rule to remember is not known.", k.scope)
}

// keepRules keeps the rules and closes the open questions that they decide. Clients are notified of
// a rule that cannot be written.
func (ask *asker) keepRules(rules []keeping) {
	if len(rules) == 0 {
		return
	}
	for _, k := range rules {
		if err := ask.keepRule(k); err != nil {
			ask.s.notify(nil, pipeline.Noticed{Code: "remember_failed", Message: fmt.Sprintf("The rule %s could not be remembered: %v. The answer counts all the same.", k.Rule, err)})
		}
	}
	ask.rejudge(ask.s.judge.policy())
}

func (ask *asker) keepRule(k keeping) error {
	if k.scope == tooldv1.Scope_SCOPE_USER && ask.s.daemon.Node { // the session is what the user has there
		k.scope = tooldv1.Scope_SCOPE_SESSION
	}
	if level, file := convert.LevelIn(k.scope); file {
		file, err := ask.s.daemon.settings.Remember(ask.s.meta.Roots[0], level, k.List, k.Rule)
		ask.s.daemon.runner.Spare(file) // what began while it was written has not made it either
		return err
	}
	var pending *journal.Pending
	var err error
	ask.s.update(func(its *state) {
		rules, rule := its.questions.remembered, k.remembered
		switch {
		case slices.Contains(rules, rule): // it is there already
		case len(rules) >= maxSessionRules:
			err = fmt.Errorf("the session remembers %d rules already", len(rules))
		default:
			its.questions.remembered = append(rules, rule)
			pending = its.ledger.keep(putState(keyRules, its.questions.remembered))
		}
	})
	if pending != nil {
		_, err = pending.Wait()
	}
	return err
}

// mayAnswer refuses an answer of a process that belongs to what has started the session's client.
// Each answer is logged with the process that gives it.
func (ask *asker) mayAnswer(from access.Ancestry, wire *tooldv1.Answer) *apierror.Error {
	pid := from.PID()
	by := view(ask.s, func(its *state) access.Owner { return its.clients.owner })
	fields := []zap.Field{
		zap.String("session", ask.s.name), zap.String("question", convert.Short(wire.GetQuestionId())), zap.Stringer("decision", wire.GetDecision()),
		zap.Int("pid", pid), zap.String("program", access.ProgramOf(pid)),
	}
	if by.Holds(from) {
		ask.s.daemon.Log.Warn("an answer was refused: own_question", append(fields, zap.Int("client", by.Client.PID), zap.Int("parent", by.Parent.PID))...)
		return apierror.Preconditionf("own_question", "", "Process %d was started by process %d, which has also started the client that the question is about. Answer from a terminal of your own, or in that client.", pid, by.Parent.PID)
	}
	ask.s.daemon.Log.Info("an answer", fields...)
	return nil
}

// approvals begins the keys of the questions about servers; keys of calls begin otherwise.
const approvals = "server:"

// approvalKey is under which a question about a server is open.
func approvalKey(server settings.MCPServer) string {
	return approvals + server.Name + ":" + server.Digest + ":" + server.Approval
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

// askApproval asks for the servers that are not approved, each until a user has said no, and takes
// back the questions about others: their entries have changed, are gone, or were approved
// elsewhere. A session without a client that can answer is notified once.
func (ask *asker) askApproval() {
	ask.approving.Lock()
	defer ask.approving.Unlock()
	servers := ask.s.judge.policy().unapproved()
	var untold []settings.MCPServer
	ask.s.update(func(its *state) {
		for key, a := range its.questions.asked {
			about := func(server settings.MCPServer) bool { return approvalKey(server) == key }
			if strings.HasPrefix(key, approvals) && !a.done && !slices.ContainsFunc(servers, about) {
				ask.withdraw(its, a, errMoot, "its entry has changed, is gone or was approved elsewhere")
			}
		}
		for _, server := range servers {
			key := approvalKey(server)
			if its.stopping || its.questions.proposed[key] || its.questions.asked[key] != nil {
				continue
			}
			if ask.open(its, ask.ofServer(server), proposal(server)) != nil {
				continue
			}
			if told := key + ":told"; !its.questions.proposed[told] {
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
		ask.s.notify(nil, pipeline.Noticed{Code: "mcp_server_unapproved", Details: serverNamed{server.Name}, Message: fmt.Sprintf(
			"The MCP server %s of %s is not started, since it is not approved. Attach with capabilities.answers to be asked, or %s.", server.Name, server.Origin, way)})
	}
}

// ofServer is the subject of the question about a server: a yes is kept and starts it, and after a
// no it is not asked about again.
func (ask *asker) ofServer(server settings.MCPServer) subject {
	key := approvalKey(server)
	return subject{key: key, answered: func(its *state, no *fault.Error) func() {
		if no != nil {
			its.questions.proposed[key] = true
			return nil
		}
		return func() { ask.s.goUnlessStopping(func(context.Context) { ask.approve(key, server) }) }
	}}
}

// approve keeps the yes to a question about a server, and has the server started.
func (ask *asker) approve(key string, server settings.MCPServer) {
	ask.approving.Lock() // so that no older look at the settings opens the question again
	err := ask.s.daemon.settings.ApproveServer(cmp.Or(server.Workspace, ask.s.meta.Roots[0]), server.Approval, server.Digest)
	ask.s.update(func(its *state) {
		delete(its.questions.asked, key)
		its.questions.proposed[key] = err != nil
	})
	ask.approving.Unlock()
	if err != nil {
		ask.s.daemon.Log.Warn("an approval could not be kept", zap.String("server", server.Name), zap.Error(err))
		ask.s.notify(nil, pipeline.Noticed{Code: "remember_failed", Details: serverNamed{server.Name}, Message: fmt.Sprintf("The approval of the MCP server %s could not be kept: %v.", server.Name, err)})
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
		Verdict: permission.Asking(permission.Dangerous, permission.Reason{Code: permission.StartsServer, Detail: reason}),
	}
}
