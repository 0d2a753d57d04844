// What principals may use of the whole cluster at once.

package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/quota"
	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// quotaRetry is when a client that was refused may try again: others release what they use at any time.
const quotaRetry = 10 * time.Second

// heldCalls are how many calls a workspace's daemon may run at once.
type heldCalls struct {
	most    int    // 0: the daemon's default
	release func() // gives them back to the quota; nil: none are held
}

// takeCalls takes from the principal's quota what the workspace's daemon may run at once.
func (u *unit) takeCalls() (err error) {
	if u.node.Quota == nil {
		return nil
	}
	most := max(16, 4*runtime.NumCPU()) // as a daemon's default
	u.calls.most, u.calls.release, err = u.node.Quota.Calls(u.lost, u.w.Principal, most)
	return err
}

// releaseCalls returns them, also in the bucket: the next owner of the workspace takes them. It may be called more than once.
func (u *unit) releaseCalls() {
	if u.calls.release != nil {
		u.calls.release()
		u.node.flushQuota(u.w.Principal)
	}
}

// flushTime is how long the end of a stream or of a workspace waits for the quotas.
const flushTime = time.Second

// flushQuota writes what was released of a principal before its client can ask for it at another node.
func (n *Node) flushQuota(principal string) {
	ctx, cancel := context.WithTimeout(n.lost, flushTime)
	defer cancel()
	n.Quota.Flush(ctx, principal)
}

// callsLimit is that of the daemon's settings.
func (u *unit) callsLimit() string {
	if u.calls.most == 0 {
		return ""
	}
	return fmt.Sprintf(`, "max_running_calls": %d`, u.calls.most)
}

// countSession counts the session of a stream, until release is called. named is called with each event of the daemon: the
// first one names the session.
func (n *Node) countSession(ctx context.Context, call identity.Call) (named func(*relay.Frame) (*relay.Frame, error), release func(), err error) {
	if n.Quota == nil {
		return nil, func() {}, nil
	}
	key := func(session string) string {
		if session == "" {
			return ""
		}
		return call.Workspace + "\x00" + session
	}
	held, err := n.Quota.Session(ctx, call.Principal, key(call.Session))
	if err != nil {
		return nil, func() {}, refusal(err)
	}
	first := true
	named = func(frame *relay.Frame) (*relay.Frame, error) {
		if !first {
			return frame, nil
		}
		first = false
		data := frame.Bytes()
		frame.Free()
		event := &tooldv1.ExecuteResponse{}
		if err := proto.Unmarshal(data, event); err != nil {
			return nil, err
		}
		held.Name(key(event.GetAttached().GetSessionId()))
		return relay.Encoded(data), nil
	}
	release = func() {
		held.Release()
		if n.Draining() {
			n.flushQuota(call.Principal)
		}
	}
	return named, release, nil
}

// overQuota returns the refusal of what would pass a quota; nil: err is about something else.
func overQuota(err error) error {
	exceeded, is := errors.AsType[*quota.Exceeded](err)
	if !is {
		return nil
	}
	refused := apierror.New(codes.ResourceExhausted, "quota_exceeded", "Not taken: %v. Close some, or try again in %.0f s.", exceeded, quotaRetry.Seconds())
	refused.Details = []protoadapt.MessageV1{
		&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "principal", Description: exceeded.Error()}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(quotaRetry)},
	}
	return refused
}
