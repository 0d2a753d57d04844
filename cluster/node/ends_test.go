package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/backup"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// alices is the workspace of all tests.
var alices = log.Workspace{Principal: "alice", Name: "w"}

// TestRestored: a backup is made in the middle of a call, and restored where a node has newer files. Results of before are
// there, the call does not run again, files are those of the backup, and clients learn that numbers begin again.
func TestRestored(t *testing.T) {
	c := newCluster(t, "a")
	dir := shortDir(t)
	effect := filepath.Join(dir, alices.ID(), "files", "effect")
	in := func(config *node.Config) { config.Dir = dir }
	a := c.start("a", in)
	k := a.attach(0)
	k.bash("1", "echo kept >file; echo first result")
	wantStart(t, k.result("1"), "OK")
	for !c.saved() {
		runtime.Gosched()
	}
	k.bash("2", "echo newer >file; touch effect; sleep 100")
	k.started("2")
	for {
		if _, err := os.Stat(effect); err == nil {
			break
		}
		runtime.Gosched()
	}
	live := backup.Place{Log: c.log, Objects: c.objects}
	kept := backup.Place{Log: &log.Memory{}, Objects: objects.Dir(t.TempDir())}
	if err := backup.Copy(t.Context(), alices, live, kept); err != nil {
		t.Fatal(err)
	}
	k.bash("3", "echo after the backup")
	a.Kill()
	_ = k.end()

	restored := backup.Place{Log: &log.Memory{}, Objects: objects.Dir(t.TempDir())}
	if err := backup.Restore(t.Context(), alices, kept, restored); err != nil {
		t.Fatal(err)
	}
	c.log, c.objects = restored.Log, restored.Objects
	again := c.start("a", in).attach(0)
	if again.attached.GetEpoch() == k.attached.GetEpoch() {
		t.Error("numbers that clients have seen are taken for the same")
	}
	if told := again.result("1"); told != "OK first result" {
		t.Errorf("the result of before is %q", told)
	}
	wantStart(t, again.result("2"), "INTERRUPTED")
	again.bash("4", "cat file")
	told := again.result("4")
	wantStart(t, told, "OK kept")
	if !strings.Contains(told, "This workspace was restored from a backup: what was done after the backup is gone.") {
		t.Errorf("the model is told %q", told)
	}
	if _, err := os.Stat(effect); err == nil {
		t.Error("the call has run again")
	}
	epoch := again.attached.GetEpoch()
	again.m.SetDraining(true)
	_ = again.end()
	again.m.SetDraining(false)
	if later := again.m.attach(again.last); later.attached.GetEpoch() != epoch {
		t.Error("the numbers are others when the workspace was taken over once more")
	}
}

// TestDrainNamesWhatItEnds: a background task, and a call that takes longer than the drain waits. Their sessions go on.
func TestDrainNamesWhatItEnds(t *testing.T) {
	c := newCluster(t, "a", "b")
	core, logged := observer.New(zap.InfoLevel)
	a, b := c.start("a", func(config *node.Config) {
		config.Drain, config.Logger = 100*time.Millisecond, zap.New(core)
	}), c.start("b")
	k := a.attach(0)
	k.use("1", "Bash", `{"command": "sleep 1000", "run_in_background": true}`)
	wantStart(t, k.result("1"), "OK")
	k.bash("2", "sleep 2000")
	k.started("2")
	a.SetDraining(true)
	_ = k.end()
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]map[string]any{
		"the drain begins":    {"workspaces": int64(1)},
		"the drain has ended": {"given_up": uint64(1), "lost": uint64(0)},
	} {
		lines := logged.FilterMessage(message).All()
		for key, value := range want {
			if len(lines) != 1 || lines[0].ContextMap()[key] != value {
				t.Errorf("%q is logged as %v, want %s %v", message, lines, key, value)
			}
		}
	}
	task, call, _ := strings.Cut(a.Ended(), "\n")
	if !strings.HasPrefix(task, "w of alice, session s: background task ") || !strings.HasSuffix(task, ": sleep 1000") {
		t.Errorf("the task is named %q", task)
	}
	if !strings.HasPrefix(call, "w of alice, session s: call 2: ") || !strings.HasSuffix(call, "(sleep 2000)") {
		t.Errorf("the call is named %q", call)
	}
	again := b.attach(k.last)
	again.bash("3", "echo goes on")
	wantStart(t, again.result("3"), "OK goes on")
}

// TestDeleted: a workspace is deleted while a client uses it. Its owner loses it and keeps nothing, no other takes it, and a
// name that may be used again begins with an empty workspace.
func TestDeleted(t *testing.T) {
	c := newCluster(t, "a", "b")
	a := c.start("a", func(config *node.Config) { config.Verify = time.Millisecond })
	b := c.start("b")
	k := a.attach(0)
	k.bash("1", "echo text >file")
	wantStart(t, k.result("1"), "OK")
	store := lease.Store{Log: c.log}
	if err := lease.Delete(t.Context(), store, alices); err != nil {
		t.Fatal(err)
	}
	if err := k.end(); status.Code(err) != codes.NotFound || toold.Reason(err) != "workspace_deleted" {
		t.Errorf("the stream has ended with %v", err)
	}
	for _, m := range []*machine{a, b} {
		for { // the old owner's daemon may be about to end
			_, err := tooldv1.NewSessionServiceClient(m.conn).ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
			if status.Code(err) == codes.NotFound {
				break
			}
			if status.Code(err) != codes.Unavailable {
				t.Fatalf("%s answers %v", m.Name, err)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(a.Dir, alices.ID())); len(left) > 0 || err != nil {
		t.Errorf("%v, %v are left", left, err)
	}
	if err := lease.Renew(t.Context(), store, alices); err != nil {
		t.Fatal(err)
	}
	again := b.attach(0)
	again.bash("1", "ls -A; echo end")
	if told := again.result("1"); told != "OK end" {
		t.Errorf("the workspace holds %q", told)
	}
	if err := lease.Delete(t.Context(), store, log.Workspace{Principal: "alice", Name: "never"}); !errors.Is(err, lease.ErrNone) {
		t.Errorf("the error is %v", err)
	}
}
