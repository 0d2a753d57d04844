package node_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/node"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestSharedVolume: the files of a workspace on a volume that two nodes have are those of the moment after the loss of its node, without a
// snapshot, and what was done can be undone. They go on after a drain. A node without the volume does not take the workspace over.
func TestSharedVolume(t *testing.T) {
	c := newCluster(t, "a", "b", "d")
	volume := t.TempDir()
	shared := func(config *node.Config) {
		config.SharedVolume, config.StrictLives, config.StrictWait = volume, time.Minute, 100*time.Millisecond // a dead node's processes end with it
	}
	a, b := c.start("a", shared), c.start("b", shared)
	k := a.attach(0)
	k.use("1", "Write", `{"file_path": "/workspace/file", "content": "kept"}`)
	wantStart(t, k.result("1"), "OK")
	k.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
	k.bash("2", "echo begun >second; echo home >~/own; echo started; sleep 100")
	k.started("2")
	begun := filepath.Join(volume, "*", "files", "second")
	for found, _ := filepath.Glob(begun); len(found) == 0; found, _ = filepath.Glob(begun) {
		runtime.Gosched()
	}
	c.dies("a")
	a.Kill()
	_ = k.end()
	again := b.attach(k.last)
	if told := again.result("2"); !strings.HasPrefix(told, "INTERRUPTED") {
		t.Errorf("the interrupted call ends as %q", told)
	}
	again.bash("3", "cat file second ~/own")
	told := again.result("3")
	wantStart(t, told, "OK keptbegun\nhome")
	if !strings.Contains(told, `The node "a", which ran this workspace, was lost. The files are on a volume`) || strings.Contains(told, "snapshot") || strings.Contains(told, "gone") {
		t.Errorf("the model is told %q", told)
	}
	restored, err := tooldv1.NewSessionServiceClient(b.conn).Restore(t.Context(), &tooldv1.RestoreRequest{SessionId: "s", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "1"}})
	if err != nil || !slices.Contains(restored.GetRestored(), "/workspace/file") {
		t.Errorf("undone is %q, %v", restored.GetRestored(), err)
	}
	again.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
	again.bash("4", "echo third >third")
	wantStart(t, again.result("4"), "OK")
	if err := b.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	view, err := lease.Open(t.Context(), lease.Store{Log: c.log}, alices)
	if _, is := view.Snapshot(); err != nil || is || !view.Creation().StrictEffects {
		t.Errorf("the workspace has a snapshot: %v, and was created as %+v, %v", is, view.Creation(), err)
	}

	wantNoVolume(c)
	d := c.start("d", shared)
	d.creates = metadata.Pairs(identity.StrictKey, "false")
	last := d.attach(again.last)
	last.bash("5", "cat third; ls")
	if told := last.result("5"); told != "OK third\nthird" {
		t.Errorf("after a drain the file is %q", told)
	}
	if entries, err := os.ReadDir(volume); err != nil || len(entries) != 1 {
		t.Errorf("the volume has %v, %v", entries, err)
	}
}

// wantNoVolume checks that nodes without the volume, or with another one, do not take the workspace over.
func wantNoVolume(c *cluster) {
	c.t.Helper()
	without := c.start("d")
	_, err := tooldv1.NewSessionServiceClient(without.conn).ListSessions(c.t.Context(), &tooldv1.ListSessionsRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "shared volume") {
		c.t.Errorf("a node without the volume: %v", err)
	}
	without.Kill()
	empty := c.start("d", func(config *node.Config) { config.SharedVolume = c.t.TempDir() })
	_, err = tooldv1.NewSessionServiceClient(empty.conn).ListSessions(c.t.Context(), &tooldv1.ListSessionsRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "has no directory") {
		c.t.Errorf("a node with another volume: %v", err)
	}
	empty.Kill()
}
