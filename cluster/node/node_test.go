package node_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// program is the toold that the tests' nodes run.
var program string

func TestMain(m *testing.M) {
	container.Init()
	dir, err := os.MkdirTemp("", "toold-node-test")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "toold")
	build := exec.Command("go", "build", "-o", program, "./cmd/toold")
	build.Dir = "../.."
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Fprintln(os.Stderr, string(text))
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// TestDrained: a session goes on at another node with its files, its numbers and its directory.
func TestDrained(t *testing.T) {
	c := newCluster(t, "a", "b")
	a, b := c.start("a"), c.start("b")
	k := a.attach(0)
	k.bash("1", "mkdir sub && cd sub && echo text >file && pwd")
	wantStart(t, k.result("1"), "OK /workspace/sub")
	if _, err := tooldv1.NewSessionServiceClient(b.conn).ListSessions(t.Context(), &tooldv1.ListSessionsRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the other node answers %v", err)
	}
	k.bash("2", "sleep 0.5; echo slow")
	k.started("2")
	a.SetDraining(true)
	wantStart(t, k.result("2"), "OK slow")
	if ended := a.Ended(); ended != "" {
		t.Errorf("%q is said to be ended", ended)
	}
	if err := k.end(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream has ended with %v", err)
	}
	if _, err := tooldv1.NewSessionServiceClient(a.conn).ListSessions(t.Context(), &tooldv1.ListSessionsRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("the drained node answers %v", err)
	}
	again := b.attach(k.last)
	if again.attached.GetEpoch() != k.attached.GetEpoch() {
		t.Error("the numbers are others at the other node")
	}
	again.bash("3", "cat file; pwd")
	if told := again.result("3"); told != "OK text\n/workspace/sub" {
		t.Errorf("the result is %q", told)
	}
	if again.last <= k.last {
		t.Errorf("the numbers go on with %d behind %d", again.last, k.last)
	}
	if load := a.Load(); load.Workspaces != 0 {
		t.Errorf("the drained node has %d workspaces", load.Workspaces)
	}
}

// TestLost: a node dies in the middle of a call. The call ends as interrupted and is not run again; the files are those of
// the last snapshot.
func TestLost(t *testing.T) {
	c := newCluster(t, "a", "b")
	a, b := c.start("a"), c.start("b")
	effects := filepath.Join(t.TempDir(), "effects")
	k := a.attach(0)
	k.bash("1", "echo kept >file")
	wantStart(t, k.result("1"), "OK")
	for !c.saved() {
		runtime.Gosched()
	}
	k.bash("1b", "echo gone >gone; sleep 0.1") // no rest follows in which the files would be stored
	k.bash("2", "echo lost >file; echo once >>"+effects+"; sleep 100")
	wantStart(t, k.result("1b"), "OK")
	k.started("2")
	c.dies("a")
	a.Kill()
	_ = k.end()
	again := b.attach(k.last)
	wantStart(t, again.result("2"), "INTERRUPTED")
	again.bash("3", "cat file")
	told := again.result("3")
	wantStart(t, told, "OK kept")
	if !strings.Contains(told, `The node "a", which ran this workspace, was lost. The files are those of the last snapshot.`) || !strings.Contains(told, "echo gone") {
		t.Errorf("the model is told %q", told)
	}
}

// TestLostCallHasNothingToUndo: what calls had changed since the last snapshot of a lost node is neither offered for undo nor
// undone, also of a call that was interrupted and of a session that was closed, and also after another move. What they had
// changed before is.
func TestLostCallHasNothingToUndo(t *testing.T) {
	c := newCluster(t, "a", "b", "d")
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	k := a.attach(0)
	k.use("1", "Write", `{"file_path": "/workspace/file", "content": "kept"}`)
	wantStart(t, k.result("1"), "OK")
	k.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
	for !c.saved() {
		runtime.Gosched()
	}
	k.use("2", "Write", `{"file_path": "/workspace/gone", "content": "text"}`)
	k.bash("3", "echo lost >file; sleep 100")
	wantStart(t, k.result("2"), "OK")
	k.started("3")
	other := k.m.attachTo("closed", 0)
	other.use("4", "Write", `{"file_path": "/workspace/other", "content": "text"}`)
	wantStart(t, other.result("4"), "OK")
	if _, err := tooldv1.NewSessionServiceClient(a.conn).CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "closed"}); err != nil {
		t.Fatal(err)
	}
	c.dies("a")
	a.Kill()
	_ = k.end()
	again := b.attach(k.last)
	if told := again.result("3"); !strings.HasPrefix(told, "INTERRUPTED") || strings.Contains(told, "undo") {
		t.Errorf("the interrupted call ends as %q", told)
	}
	again.use("5", "Write", `{"file_path": "/workspace/new", "content": "text"}`)
	wantStart(t, again.result("5"), "OK")
	wantUndo(t, b)
	if err := b.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.attach(again.last)
	wantUndo(t, d)
	restored, err := tooldv1.NewSessionServiceClient(d.conn).Restore(t.Context(), &tooldv1.RestoreRequest{SessionId: "s", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "1"}})
	if err != nil || !slices.Equal(restored.GetRestored(), []string{"/workspace/file", "/workspace/new"}) {
		t.Errorf("undone is %q, %v", restored.GetRestored(), err)
	}
}

// wantUndo checks what TestLostCallHasNothingToUndo can undo at a node.
func wantUndo(t *testing.T, m *machine) {
	t.Helper()
	sessions := tooldv1.NewSessionServiceClient(m.conn)
	for session, want := range map[string][]string{"s": {"5", "1"}, "closed": nil} {
		list, err := sessions.ListCheckpoints(t.Context(), &tooldv1.ListCheckpointsRequest{SessionId: session})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, checkpoint := range list.GetCheckpoints() {
			got = append(got, checkpoint.GetToolUseId())
		}
		if !slices.Equal(got, want) {
			t.Errorf("of session %s %q can be undone, want %q", session, got, want)
		}
	}
	for _, request := range []*tooldv1.RestoreRequest{
		{SessionId: "s", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "2"}},
		{SessionId: "s", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "3"}},
		{SessionId: "s", Point: &tooldv1.RestoreRequest_Turn{Turn: 2}},
		{SessionId: "closed", Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: "4"}},
	} {
		_, err := sessions.Restore(t.Context(), request)
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), `The node "a", on which it ran, was lost`) {
			t.Errorf("%v: %v", request, err)
		}
	}
}

// TestRestarted: a node that was killed and is started again goes on with its files, which are newer than any snapshot.
func TestRestarted(t *testing.T) {
	c := newCluster(t, "a")
	c.snapshots = time.Hour
	dir := shortDir(t)
	in := func(config *node.Config) { config.Dir = dir }
	a := c.start("a", in)
	k := a.attach(0)
	k.bash("1", "echo kept >file")
	wantStart(t, k.result("1"), "OK")
	k.bash("2", "echo begun >>file; sleep 100")
	k.started("2")
	a.Kill()
	again := c.start("a", in).attach(k.last)
	wantStart(t, again.result("2"), "INTERRUPTED")
	again.bash("3", "head -1 file")
	if told := again.result("3"); told != "OK kept" {
		t.Errorf("the result is %q", told)
	}
	if err := again.m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !c.saved() {
		t.Error("the files were not stored when the workspace was given up")
	}
}

// TestHoleInTheLog: a log that has lost a segment in the middle is taken over all the same, with numbers of its own.
func TestHoleInTheLog(t *testing.T) {
	c := newCluster(t, "a", "b")
	a := c.start("a")
	k := a.attach(0)
	for _, id := range []string{"1", "2", "3"} {
		k.bash(id, "echo "+id)
		wantStart(t, k.result(id), "OK")
	}
	c.dies("a")
	a.Kill()
	w, pos := log.Workspace{Principal: "alice", Name: "w"}, log.Pos(0)
	var kept [][]byte
	for s, err := range c.log.Read(t.Context(), w, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, s.Data)
	}
	kept = slices.Delete(kept, len(kept)/2, len(kept)/2+1)
	c.log = &log.Memory{}
	for _, data := range kept {
		var err error
		if pos, err = c.log.Append(t.Context(), w, pos, data); err != nil {
			t.Fatal(err)
		}
	}
	again := c.start("b").attach(0)
	if again.attached.GetEpoch() == k.attached.GetEpoch() {
		t.Error("the numbers are taken for the same")
	}
	again.bash("4", "echo 4")
	wantStart(t, again.result("4"), "OK 4")
}

// A brokenStore stores nothing while it is broken.
type brokenStore struct {
	objects.Store
	broken atomic.Bool
	failed chan struct{} // one slot
}

func (s *brokenStore) Put(ctx context.Context, name string, r io.Reader) error {
	if s.broken.Load() {
		select {
		case s.failed <- struct{}{}:
		default:
		}
		return errors.New("the store is broken")
	}
	return s.Store.Put(ctx, name, r)
}

// TestDrainWaitsForTheObjectStore: a drained node keeps a workspace until its files are stored.
func TestDrainWaitsForTheObjectStore(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.snapshots = time.Hour
	store := &brokenStore{Store: c.objects, failed: make(chan struct{}, 1)}
	store.broken.Store(true)
	a, b := c.start("a", func(config *node.Config) { config.Objects = store }), c.start("b")
	k := a.attach(0)
	k.bash("1", "echo text >file")
	wantStart(t, k.result("1"), "OK")
	a.SetDraining(true)
	<-store.failed
	if load := a.Load(); load.Workspaces != 1 {
		t.Errorf("the node has %d workspaces while it cannot store the files", load.Workspaces)
	}
	store.broken.Store(false)
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := b.attach(k.last)
	again.bash("2", "cat file")
	if told := again.result("2"); told != "OK text" {
		t.Errorf("the result is %q", told)
	}
}

// TestUnusableProgram: a node that could serve nothing does not begin.
func TestUnusableProgram(t *testing.T) {
	config := node.Config{Name: "a", Dir: shortDir(t), Program: "/bin/false", Log: &log.Memory{}, Objects: objects.Dir(t.TempDir()), Logger: zap.NewNop()}
	if _, err := node.Open(config); err == nil || !strings.Contains(err.Error(), "/bin/false --version in a container") {
		t.Errorf("the error is %v", err)
	}
	if entries, err := os.ReadDir(config.Dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left", entries, err)
	}
}

// TestCommandsLeadNowhere: a command without a sandbox cannot have the node write or read elsewhere, and finds no mirror.
func TestCommandsLeadNowhere(t *testing.T) {
	c := newCluster(t, "a")
	a := c.start("a")
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := a.attach(0, func(o *tooldv1.Options) { o.SettingsJson = new(`{"sandbox": {"enabled": false}}`) })
	connect := `perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new("/.toold/run/mirror"); print "read ", $s ? sysread($s, $b, 9) // "error" : "nothing", "\n"'`
	script := "cd /.toold && " + connect + " && rm -rf run/other state/memory && ln -s " + victim + " run/other && ln -s " + outside + " state/memory && ls -l run/other; rm -f settings.json || cat settings.json"
	k.bash("1", "echo "+base64.StdEncoding.EncodeToString([]byte(script))+" | base64 -d | sh") // the daemon refuses what it can read
	told := k.result("1")
	wantStart(t, told, "OK")
	if !strings.Contains(told, "run/other -> "+victim) || !strings.Contains(told, `{"drain": "5s"}`) || !strings.Contains(told, "read 0") && !strings.Contains(told, "read error") {
		t.Errorf("the command printed %q", told)
	}
	a.SetDraining(true)
	_ = k.end()
	a.SetDraining(false)
	again := a.attach(k.last)
	again.bash("2", "echo alive")
	wantStart(t, again.result("2"), "OK alive")
	if text, err := os.ReadFile(victim); err != nil || string(text) != "as it was" {
		t.Errorf("the file elsewhere holds %q, %v", text, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("the directory elsewhere holds %v, %v", entries, err)
	}
}

// saved reports whether the workspace's files are stored as they are after all that the log has.
func (c *cluster) saved() bool {
	c.t.Helper()
	view, err := lease.Open(c.t.Context(), lease.Store{Log: c.log}, log.Workspace{Principal: "alice", Name: "w"})
	if err != nil {
		c.t.Fatal(err)
	}
	last, is := view.Snapshot()
	return is && last.Payloads == view.Count()
}

// TestFenced: a node that others take for dead has its workspace taken, and acts no more for it.
func TestFenced(t *testing.T) {
	c := newCluster(t, "a", "b")
	a, b := c.start("a"), c.start("b")
	k := a.attach(0)
	k.bash("1", "echo 1 >file")
	wantStart(t, k.result("1"), "OK")
	c.dies("a")
	other := b.attach(k.last)
	other.bash("2", "echo 2 >second; sleep 100")
	other.started("2")
	k.bash("3", "echo 3 >third")
	if err := k.end(); status.Code(err) != codes.Unavailable {
		t.Errorf("the old owner's stream has ended with %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(a.Dir, "*/files/third")); len(found) > 0 {
		t.Error("the old owner has run a call")
	}
	for {
		_, err := tooldv1.NewSessionServiceClient(a.conn).ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
		if status.Code(err) == codes.FailedPrecondition {
			break
		}
		if status.Code(err) != codes.Unavailable { // which an RPC gets that meets the end of the daemon
			t.Fatalf("the old owner answers %v", err)
		}
	}
}
