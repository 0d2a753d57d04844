// What each principal has for itself, so that none takes another's share: so many sessions, a
// scheduler with so many slots, and so many bytes in memory. The counting of bytes is the quota
// package's.

package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler"
	"github.com/toold/toold/scheduler/gate"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
)

// remoteSessions is how often limits.sessions all principals of TCP together may have, since a
// certificate authority can name any number of them. The machine's own user has his besides.
const remoteSessions = 4

// crowding returns the principal's longest idle detached session when they have as many as the limit
// allows, one that a client has named only if there is no other; empty: there is room.
func (x *sessionSet) crowding(who access.Principal) (oldest string, err error) {
	var since time.Time
	own, remote, named := 0, 0, false
	count := func(name string, of meta, idle func() (since time.Time, unused bool)) {
		if of.owner().Remote() {
			remote++
		}
		if of.owner() != who {
			return
		}
		own++
		at, unused := idle()
		if earlier := at.Before(since) && named != of.Unnamed; unused && (oldest == "" || earlier || named && of.Unnamed) {
			oldest, since, named = name, at, !of.Unnamed
		}
	}
	for _, s := range x.all() {
		count(s.name, s.meta, s.attachments.idleSince)
	}
	for _, r := range x.allAtRest() {
		count(r.info.Name, r.meta, func() (time.Time, bool) { return r.used, true })
	}
	if own < x.d.limits.Sessions && (!who.Remote() || remote < x.d.limits.Sessions*remoteSessions) {
		return "", nil
	}
	if oldest == "" {
		return "", apierror.New(codes.ResourceExhausted, "too_many_sessions",
			"%d sessions are open and all are in use. Close one, or raise limits.sessions in the settings.", max(own, remote))
	}
	return oldest, nil
}

// shares are the schedulers of principals. Their methods are safe for concurrent use.
type shares struct {
	slots int        // of each: limits.max_running_calls
	host  *gate.Gate // of all together

	mu      sync.Mutex // guards the rest
	of      map[access.Principal]*share
	drained error // why nothing starts any more; nil while it does
}

type share struct {
	*scheduler.Scheduler
	queues int // that have not been released
}

func newShares(limits settings.Limits) *shares {
	host := gate.New(gate.Config{
		Slots: limits.Host.RunningCalls, Patience: limits.Host.Wait, Quick: limits.Host.Quick, Reserve: limits.Host.MemoryReserve,
		Machine: func() gate.Machine { return gate.ReadMachine("/") },
	})
	return &shares{slots: limits.MaxRunningCalls, host: host, of: map[access.Principal]*share{}}
}

// queue makes the queue of a session. It is released when the session has finished.
func (x *shares) queue(who access.Principal) *scheduler.Queue {
	x.mu.Lock()
	defer x.mu.Unlock()
	own := x.of[who]
	if own == nil {
		own = &share{Scheduler: scheduler.New(x.slots)}
		x.of[who] = own
		if x.drained != nil {
			own.Drain(x.drained)
		}
	}
	own.queues++
	return own.NewQueue(scheduler.Streaming, scheduler.DefaultConcurrency)
}

// release takes note that one of the principal's queues is closed. With the last his scheduler
// ends.
func (x *shares) release(who access.Principal) {
	x.mu.Lock()
	own := x.of[who]
	own.queues--
	last := own.queues == 0
	if last {
		delete(x.of, who)
	}
	x.mu.Unlock()
	if last {
		own.Close()
	}
}

func (x *shares) all() []*share {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.of))
}

// drain skips all that waits and whatever is added from now on.
func (x *shares) drain(cause error) {
	x.mu.Lock()
	if x.drained == nil {
		x.drained = cause
	}
	x.mu.Unlock()
	x.host.Shut(cause)
	for _, own := range x.all() {
		own.Drain(cause)
	}
}

// wait returns when nothing runs any more, or ctx has ended. Nothing starts meanwhile: it has been
// drained.
func (x *shares) wait(ctx context.Context) {
	for _, own := range x.all() {
		_ = own.Wait(ctx) // its error is that of ctx
	}
}

// close stops everything, and returns when it has.
func (x *shares) close() {
	for _, own := range x.all() {
		own.Close()
	}
}

// quotaRetry is when a client that met the limit of several sessions may try again: what a vanished
// client has left is given back after disconnectGrace, and an unused anonymous session is closed
// after houseTick.
const quotaRetry = maintenanceTick

// newLedger returns the ledger for the limits. released is called when clients have given bytes
// back.
func newLedger(limits settings.Limits, released func(bytes int64)) *quota.Ledger {
	of := func(b settings.HeldBytes) quota.Limits {
		return quota.Limits{quota.Session: b.Session, quota.Principal: b.Principal, quota.Daemon: b.All}
	}
	return quota.New(map[quota.Kind]quota.Limits{
		quota.Buffers: of(limits.Buffers), quota.Options: of(limits.Options), quota.Tools: of(limits.ToolDefinitions),
	}, released)
}

// besideHeld is what the daemon takes beside what clients have it hold: itself, and messages under
// way. Ours.
const besideHeld = 128<<20 + spareHeap

// limitMemory has the collector work harder once the daemon takes more than what its limits let
// clients have it hold, instead of at twice of what is alive. An operator's GOMEMLIMIT counts.
func limitMemory(limits settings.Limits) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limits.Buffers.All + limits.Options.All + limits.ToolDefinitions.All + limits.SearchBytes + besideHeld)
	}
}

// optionBytes is what options and the client's environment count together.
func optionBytes(o *tooldv1.Options, env map[string]string) int64 {
	size := proto.Size(o)
	for name, value := range env {
		size += len(name) + len(value)
	}
	return int64(size)
}

// definitionBytes is what the definitions of client tools count.
func definitionBytes(list []*tooldv1.ClientTool) (size int64) {
	for _, wire := range list {
		size += int64(len(wire.GetName()) + len(wire.GetDescription()) + len(wire.GetInputSchemaJson()))
	}
	return size
}

// fitsNew refuses an Attach that makes a session when it brings more than the limits allow, before
// anything is made.
func (d *Daemon) fitsNew(who access.Principal, a *tooldv1.Attach) error {
	if d.sessions.has(a.GetSessionId()) {
		return nil
	}
	account := d.ledger.Open(string(who))
	defer account.Close()
	return fitting(account, definitionBytes(a.GetClientTools()), optionBytes(a.GetOptions(), a.GetEnv()))
}

// fits refuses an Attach that brings more than the limits allow, before anything of the session is
// changed.
func (r *requester) fits(offers []*clientTool, a *tooldv1.Attach) error {
	return view(r.s, func(its *state) error {
		bytes, err := r.toolBytesWith(its, offers, a.GetRole() == tooldv1.Role_ROLE_COMPANION)
		if err != nil {
			return err
		}
		return fitting(r.s.account, bytes, optionBytes(merged(its.options, a.GetOptions()), its.shell.envWith(a)))
	})
}

// fitting refuses what an account has no room for: bytes of definitions of tools, and of options
// and environment.
func fitting(account *quota.Account, tools, options int64) error {
	if over := account.Fits(quota.Options, options); over != nil {
		return quotaRefusal(over, "attach.options")
	}
	if over := account.Fits(quota.Tools, tools); over != nil {
		return quotaRefusal(over, "attach.client_tools")
	}
	return nil
}

// reserve reserves what a stream brings beside options, which the session has taken already.
func (r *requester) reserve(its *state, st *stream, a *tooldv1.Attach) error {
	bytes, err := r.toolBytesWith(its, st.tools, st.companion)
	if err != nil {
		return err
	}
	if over := r.s.account.Hold(quota.Options, optionBytes(its.options, its.shell.envWith(a))); over != nil {
		return quotaRefusal(over, "attach.env")
	}
	if over := r.s.account.Hold(quota.Tools, bytes); over != nil {
		_ = r.s.account.Hold(quota.Options, optionBytes(its.options, its.shell.vars.client)) // which is no more
		return quotaRefusal(over, "attach.client_tools")
	}
	return nil
}

// envWith is the client's environment as it is once the Attach is taken.
func (h *shell) envWith(a *tooldv1.Attach) map[string]string {
	if a.GetRole() == tooldv1.Role_ROLE_COMPANION || len(a.GetEnv()) == 0 {
		return h.vars.client
	}
	return a.GetEnv()
}

// reserveBuffers reserves the bytes of all buffers of the session. The error is the fault of the
// text that would pass a limit.
func (r *requester) reserveBuffers(bytes int64) error {
	over := r.s.account.Hold(quota.Buffers, bytes)
	if over == nil {
		return nil
	}
	r.s.daemon.reclaimer.released(over.Wanted) // the text that came is garbage
	retry, details := "", overQuotaDetails{Status: "RESOURCE_EXHAUSTED", Scope: over.Scope.String(), Limit: over.Limit, Held: over.Held, Wanted: over.Wanted}
	if over.Scope != quota.Session {
		retry = fmt.Sprintf(" It can be sent again in %.0f s, when others may have left.", quotaRetry.Seconds())
		details.RetryAfter = quotaRetry.Seconds()
	}
	return fault.Invalidf("buffer_too_large", "Its text in the editor was not taken: %s. Save and close some there.%s", quotaText(over), retry).At("/content").With(details)
}

// overQuotaDetails say, for programs, which limit was reached. The status is what a method would
// have been refused with.
type overQuotaDetails struct {
	Status     string  `json:"status"`
	Scope      string  `json:"scope"`
	Limit      int64   `json:"limit_bytes"`
	Held       int64   `json:"held_bytes"`
	Wanted     int64   `json:"wanted_bytes"`
	RetryAfter float64 `json:"retry_after_seconds,omitempty"` // unset: waiting does not help
}

// quotaRefusal returns the refusal of a request of which field holds what would pass a limit.
func quotaRefusal(e *quota.Exceeded, field string) error {
	advice := "Send fewer or shorter ones."
	about := []protoadapt.MessageV1{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: e.Scope.String(), Description: e.Error()}}}}
	if e.Scope != quota.Session {
		advice = fmt.Sprintf("Close sessions, send fewer or shorter ones, or try again in %.0f s.", quotaRetry.Seconds())
		about = append(about, &errdetails.RetryInfo{RetryDelay: durationpb.New(quotaRetry)})
	}
	refused := apierror.New(codes.ResourceExhausted, "quota_exceeded", "Not taken: %s. %s", quotaText(e), advice).At(field)
	refused.Details = about
	return refused
}

// quotaText returns what would pass which limit, as a clause.
func quotaText(e *quota.Exceeded) string {
	key := [...]string{quota.Buffers: "buffer", quota.Options: "option", quota.Tools: "tool"}[e.Kind]
	scope := [...]string{quota.Session: "session", quota.Principal: "principal", quota.Daemon: "all"}[e.Scope]
	whose := [...]string{quota.Session: "this session", quota.Principal: "all your sessions", quota.Daemon: "the sessions of all users"}[e.Scope]
	return fmt.Sprintf("with %d bytes more the %s of %s would pass the limit of %d (limits.%s_%s_bytes)", e.Wanted, e.Kind, whose, e.Limit, scope, key)
}

// Enter has the call enter the machine's gate. What is expected of it is what the principal's own calls
// with the key took. A call that is nested in one that is inside runs in that one's place, since that
// may be waiting for it.
func (i *intake) Enter(c *pipeline.Call, key string) *gate.Pass {
	if c.Use.Parent != "" && view(i.s, func(its *state) bool { return its.ledger.insideLoad(&c.Use) }) {
		return nil
	}
	return i.s.daemon.shares.host.Enter(i.s.name, string(i.s.meta.owner())+"\n"+key)
}

// insideLoad reports whether a call is nested, at any depth, in one that has passed the machine's gate.
func (l *ledger) insideLoad(use *pipeline.Use) bool {
	above := l.live[l.byID[use.Parent]]
	return use.Parent != "" && above != nil && above.loads
}
