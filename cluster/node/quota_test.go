package node_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/natstest"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/quota"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestQuota: a session too many is refused, the one that is there may come back, and a workspace's daemon runs no more calls at once
// than the principal's quota has left, without which the workspace is not taken over.
func TestQuota(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	c := newCluster(t, "a", "b")
	accounts, err := quota.Open(t.Context(), js, 1, "a", quota.Amounts{Sessions: 1, Calls: 3})
	if err != nil {
		t.Fatal(err)
	}
	a := c.start("a", func(config *node.Config) { config.Quota = accounts })
	k := a.attach(0)
	info, err := tooldv1.NewDaemonServiceClient(a.conn).GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || info.GetLimits().GetMaxRunningCalls() != 3 {
		t.Errorf("the daemon's limits are %v, %v", info.GetLimits(), err)
	}
	other, err := tooldv1.NewToolServiceClient(a.conn).Execute(t.Context())
	if err == nil {
		_, err = other.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a session too many: %v", err)
	}
	theirs, err := quota.Open(t.Context(), js, 1, "b", quota.Amounts{Sessions: 1, Calls: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	b := c.start("b", func(config *node.Config) { config.Quota = theirs })
	other, err = tooldv1.NewToolServiceClient(b.conn).Execute(t.Context())
	if err == nil {
		_, err = other.Recv()
	}
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the node that does not own the workspace, with the quota in use: %v", err)
	}
	a.creates = metadata.Pairs(identity.SessionKey, "s")
	again := a.attach(k.last)
	again.bash("1", "echo here")
	wantStart(t, again.result("1"), "OK here")
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := quota.SetLimits(t.Context(), js, 1, "alice", quota.Limits{Calls: new(1)}); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := quota.Open(t.Context(), js, 1, "b", quota.Amounts{})
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	accounts.Close()
	if n, _, err := elsewhere.Calls(t.Context(), "alice", 5); n != 1 || err != nil {
		t.Fatalf("%d calls, %v", n, err)
	}
	accounts, err = quota.Open(t.Context(), js, 1, "a", quota.Amounts{})
	if err != nil {
		t.Fatal(err)
	}
	defer accounts.Close()
	a = c.start("a", func(config *node.Config) { config.Quota = accounts })
	if _, err := tooldv1.NewDaemonServiceClient(a.conn).GetInfo(t.Context(), &tooldv1.GetInfoRequest{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a workspace without a call: %v", err)
	}
}
