// What clients have the daemon hold in memory: how many bytes each thing counts, and the words in which a client learns
// that a limit is reached. The counting is the quota package's.

package daemon

import (
	"fmt"

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
	"github.com/toold/toold/tools/fault"
)

// quotaRetry is when a client that met the limit of several sessions may try again: what a vanished client has left is
// given back after disconnectGrace, and an unused anonymous session is closed after houseTick.
const quotaRetry = maintenanceTick

// newLedger returns the ledger for the limits. released is called when clients have given bytes back.
func newLedger(limits settings.Limits, released func(bytes int64)) *quota.Ledger {
	of := func(b settings.HeldBytes) quota.Limits {
		return quota.Limits{quota.Session: b.Session, quota.Principal: b.Principal, quota.Daemon: b.All}
	}
	return quota.New(map[quota.Kind]quota.Limits{
		quota.Buffers: of(limits.Buffers), quota.Options: of(limits.Options), quota.Tools: of(limits.ToolDefinitions),
	}, released)
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

// fitsNew refuses an Attach that makes a session when it brings more than the limits allow, before anything is made.
func (d *Daemon) fitsNew(who access.Principal, a *tooldv1.Attach) error {
	if _, known := d.sessions.find(a.GetSessionId()); known {
		return nil
	}
	account := d.ledger.Open(string(who))
	defer account.Close()
	return fitting(account, definitionBytes(a.GetClientTools()), optionBytes(a.GetOptions(), a.GetEnv()))
}

// fits refuses an Attach that brings more than the limits allow, before anything of the session is changed.
func (r *requester) fits(offers []*clientTool, a *tooldv1.Attach) error {
	return view(r.s, func(its *state) error {
		bytes, err := r.toolBytesWith(its, offers, a.GetRole() == tooldv1.Role_ROLE_COMPANION)
		if err != nil {
			return err
		}
		return fitting(r.s.account, bytes, optionBytes(merged(its.options, a.GetOptions()), its.shell.envWith(a)))
	})
}

// fitting refuses what an account has no room for: bytes of definitions of tools, and of options and environment.
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
		_ = r.s.account.Hold(quota.Options, optionBytes(its.options, its.shell.env)) // which is no more
		return quotaRefusal(over, "attach.client_tools")
	}
	return nil
}

// envWith is the client's environment as it is once the Attach is taken.
func (h *shell) envWith(a *tooldv1.Attach) map[string]string {
	if a.GetRole() == tooldv1.Role_ROLE_COMPANION || len(a.GetEnv()) == 0 {
		return h.env
	}
	return a.GetEnv()
}

// reserveBuffers reserves the bytes of all buffers of the session. The error is the fault of the text that would pass a limit.
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

// overQuotaDetails say, for programs, which limit was reached. The status is what a method would have been refused with.
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
