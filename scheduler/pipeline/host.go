// Questions about hosts, in the middle of a call: one of its processes is about to connect to a host
// that nothing names. The proxy holds the connection meanwhile, and the time limit of the call stands
// still.

package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toold/toold/scheduler/gate"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/net/egress"
)

// HostLimits are how long connections wait for answers.
type HostLimits struct {
	Connection time.Duration // each
	Call       time.Duration // all of one call together until its result, while at least one waits
}

// hosts are the hosts that the processes of one call may reach by answers. It is safe for concurrent
// use, and outlives the call with what the call leaves running.
type hosts struct {
	call *Call
	held hold

	mu      sync.Mutex
	answers map[string]sandbox.Answer // by host: what was answered for this call
}

// askingHosts returns the function by which the call's processes ask about hosts; nil: nothing is
// asked, since the call only reads or starts no process, its processes are not told apart, or the
// administrator decides.
func (c *Call) askingHosts(watch *stopwatch) func(context.Context, sandbox.Host) sandbox.Answer {
	conf := c.rights.Confining
	starts := c.parsed.effects.Opaque || c.parsed.effects.External != "" || len(c.parsed.effects.Commands) > 0
	if conf.HostsManaged || !starts || c.ReadOnly() || c.rights.outside(c.facts) || !conf.fully() {
		return nil
	}
	h := &hosts{call: c, answers: map[string]sandbox.Answer{}}
	h.held = hold{watch: watch, pass: c.order.pass, limits: c.session.HostLimits()}
	return h.ask
}

// ask returns whether a process may connect to the host, by what holds now, and asks if that does not
// decide it. What was answered for this call counts for more than the mode, and for less than rules
// that deny.
func (h *hosts) ask(ctx context.Context, to sandbox.Host) sandbox.Answer {
	for ctx.Err() == nil {
		rights := h.call.session.Rights(h.call)
		v, answer := rights.DecideConnection(to), h.Answered(to.Name)
		switch {
		case v.Decision == permission.Deny && !v.ByMode:
			return ""
		case answer != "":
			return answer
		case v.Decision == permission.Allow:
			return sandbox.Permitted
		case v.Decision == permission.Deny:
			return ""
		}
		if answer, sure := h.put(ctx, h.question(to, v, &rights)); sure {
			return answer
		}
	}
	return sandbox.Unanswered
}

// HostAnswers are what was answered about hosts for one call. It is safe for concurrent use.
type HostAnswers interface {
	Answered(host string) sandbox.Answer // empty: nothing was
	Note(host string, said sandbox.Answer)
}

// Note keeps an answer about the host for this call.
func (h *hosts) Note(host string, said sandbox.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[host] = said
}

// Answered returns what was answered about the host for this call; empty: nothing.
func (h *hosts) Answered(host string) sandbox.Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers[host]
}

// put puts the question while the connection is held. sure is unset if it has to be judged again.
func (h *hosts) put(ctx context.Context, q Question) (answer sandbox.Answer, sure bool) {
	ctx, release := h.held.begin(ctx)
	defer release()
	err := h.call.session.AskHost(ctx, h.call, q, h)
	_, isDenied := isNo(err)
	_, cannotAsk := errors.AsType[*fault.Error](err)
	switch {
	case err == nil:
		return sandbox.Permitted, true
	case errors.Is(err, ErrMoot):
		return "", false
	case isDenied:
		return sandbox.NotPermitted, true
	case cannotAsk:
		return "", true
	}
	return sandbox.Unanswered, true
}

// question returns the question about a host.
func (h *hosts) question(to sandbox.Host, v permission.Verdict, rights *Rights) Question {
	input, err := json.Marshal(struct {
		Host    string `json:"host"`
		Port    uint16 `json:"port"`
		Program string `json:"program,omitempty"`
	}{to.Name, to.Port, to.Program})
	if err != nil {
		panic("BUG: a host that is not JSON")
	}
	f := permission.ConnectionFacts(to.Name)
	v.Text = fmt.Sprintf("A program of this command that calls itself %q waits to connect to port %d of %s. %s A yes counts for all ports, a no for the rest of this call.", to.Program, to.Port, to.Name, v.Text)
	return Question{
		Tool: h.call.Name, Title: fmt.Sprintf("%s: connect to %s?", h.call.Title(), to), Input: string(input), Digest: DigestOf(string(input)),
		Facts: f, Verdict: v, Suggestions: permission.Suggest(f, v, rights.Anchors), Form: &tools.Form{}, Host: &to,
	}
}

// DecideConnection returns the verdict on a connection of a call's process to a host, by settings, rules
// and mode as they are in these rights.
func (r *Rights) DecideConnection(to sandbox.Host) permission.Verdict {
	network := r.Confining.Network
	refusal := (egress.Policy{Allowed: network.Allowed, Denied: network.Denied}).Check(to.Name, to.Port)
	switch {
	case refusal == nil:
		return permission.Verdict{Decision: permission.Allow}
	case refusal.Reason != egress.NotAllowed, r.Confining.HostsManaged:
		return permission.Verdict{Decision: permission.Deny}
	}
	return permission.DecideHost(to.Name, r.Policy)
}

// A hold lets the time of a call stand still while connections of its processes wait, gives its place of
// the machine's up, and bounds how long they do. It is the only one to pause the stopwatch while they do.
type hold struct {
	watch  *stopwatch
	pass   *gate.Pass // of the call; nil: it has none
	limits HostLimits

	mu      sync.Mutex
	waiting int           // connections
	since   time.Time     // when the first of them began
	spent   time.Duration // before
	resume  func()        // the stopwatch
	back    func()        // to its place of the machine's
}

// begin begins to hold one connection, until release is called. The context ends when it has been
// held for as long as it may be.
func (h *hold) begin(ctx context.Context) (_ context.Context, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.waiting++; h.waiting == 1 {
		h.since, h.resume, h.back = now, h.watch.pause(), h.pass.Away()
	}
	longest := h.limits.Connection
	if !h.watch.isOver() { // a background task goes on without
		longest = min(longest, h.limits.Call-h.spent-now.Sub(h.since))
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	return ctx, func() {
		cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.waiting--; h.waiting == 0 {
			h.spent += time.Since(h.since)
			h.back()
			h.resume()
		}
	}
}
