package node_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A heldLog appends nothing while it is held.
type heldLog struct {
	log.Log
	mu   sync.Mutex
	gate chan struct{} // nil: it is not held
}

func (l *heldLog) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate = make(chan struct{})
}

func (l *heldLog) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.gate)
	l.gate = nil
}

func (l *heldLog) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return prev, fmt.Errorf("%w: %w", log.ErrUnknown, ctx.Err())
		}
	}
	return l.Log.Append(ctx, w, prev, data)
}

// inside attaches to the session within the node, as a companion that gets the records behind a number.
func (m *machine) inside(after uint64) *talk {
	m.c.t.Helper()
	sockets, err := filepath.Glob(filepath.Join(m.Dir, "*/own/run/toold.sock"))
	if err != nil || len(sockets) != 1 {
		m.c.t.Fatalf("%d daemons, %v", len(sockets), err)
	}
	conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.c.t.Fatal(err)
	}
	m.c.t.Cleanup(func() { _ = conn.Close() })
	stream, err := tooldv1.NewToolServiceClient(conn).Execute(m.c.t.Context())
	if err != nil {
		m.c.t.Fatal(err)
	}
	k := &talk{t: m.c.t, m: m, stream: stream}
	k.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{
		SessionId: "s", AfterSeq: &after, Role: tooldv1.Role_ROLE_COMPANION,
	}}})
	k.until(func(r *tooldv1.ExecuteResponse) bool { return r.GetAttached() != nil })
	return k
}

// TestRecordsWaitInTheNode: a daemon sends records while they are stored, and its node passes them on when they are. What cannot
// be stored, since another node has taken the workspace over, never leaves the node.
func TestRecordsWaitInTheNode(t *testing.T) {
	c := newCluster(t, "a", "b")
	held := &heldLog{Log: c.log}
	a, b := c.start("a", func(config *node.Config) { config.Log = held }), c.start("b")
	k := a.attach(0)
	k.bash("1", "echo 1 >file")
	wantStart(t, k.result("1"), "OK")
	inside := a.inside(k.last)
	held.hold()
	k.use("2", "Read", `{"file_path":"/workspace/file"}`)
	inside.until(func(r *tooldv1.ExecuteResponse) bool { return r.GetAccepted().GetToolUseId() == "2" })
	c.dies("a")
	other := b.attach(k.last)
	held.release()
	for {
		r, err := k.stream.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("the old owner's stream has ended with %v", err)
			}
			break
		}
		if r.GetAccepted().GetToolUseId() == "2" || r.GetToolResult().GetToolUseId() == "2" {
			t.Errorf("the client was shown %v, which is not in the log", r)
		}
	}
	other.bash("2", "echo 2") // the id is free: the log has no such call
	wantStart(t, other.result("2"), "OK")
}
