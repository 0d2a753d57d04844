package node_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/snapshot"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A cutLog is a log that does not answer once it is cut, whatever it is given for time, until it is healed.
type cutLog struct {
	log.Log
	cut    atomic.Bool
	healed chan struct{}
}

func (l *cutLog) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	if l.cut.Load() {
		<-l.healed
		return 0, log.ErrUnknown
	}
	return l.Log.Append(ctx, w, prev, data)
}

// TestStrict: a node that is cut off from the log ends what runs in a workspace with strict effects, though its daemon has nothing to
// append, before another node runs anything there. The workspace keeps that at its next owner, which was not asked for it.
func TestStrict(t *testing.T) {
	c := newCluster(t, "a", "b")
	cut := &cutLog{Log: c.log, healed: make(chan struct{})}
	heal := sync.OnceFunc(func() { close(cut.healed) })
	lives := func(config *node.Config) { config.StrictLives, config.StrictWait = 5*time.Second, 10*time.Second }
	a := c.start("a", lives, func(config *node.Config) { config.Log = cut })
	t.Cleanup(heal) // before the node ends
	a.creates = metadata.Pairs(identity.StrictKey, "true")
	k := a.attach(0)
	k.bash("1", "setsid sleep 1234 & echo begun; sleep 1235")
	k.started("1")
	files := filepath.Join(a.Dir, alices.ID(), "files")
	if len(inside(t, files)) == 0 {
		t.Fatal("nothing runs")
	}
	cut.cut.Store(true)
	k.bash("2", "true") // what it records waits
	c.dies("a")
	again := c.start("b", lives).attach(k.last)
	if left := inside(t, files); len(left) > 0 {
		t.Errorf("at the node that is cut off %q run on", left)
	}
	_ = k.end()
	heal()
	for a.Load().Workspaces > 0 { // it does not wait for the log any more
		runtime.Gosched()
	}
	wantStart(t, again.result("1"), "INTERRUPTED")
	view, err := lease.Open(t.Context(), lease.Store{Log: c.log}, alices)
	if err != nil || !view.Creation().StrictEffects || view.Owner() != "b" {
		t.Errorf("the workspace of %q has %+v, %v", view.Owner(), view.Creation(), err)
	}
}

// inside returns the processes that have the directory mounted as their workspace.
func inside(t *testing.T, files string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), files+" /workspace ") {
			found = append(found, file)
		}
	}
	return found
}

// TestCreatedFromGit: a new workspace begins with the files of a repository that the node allows, at a ref. After the loss of its node it
// has them again, though the repository is gone and the request asks for what is refused of a new workspace.
func TestCreatedFromGit(t *testing.T) {
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	script := `git init -q "$0" && cd "$0" && git config user.email a@b && git config user.name a && echo one >file && git add . && git commit -qm one && git tag v1 && echo two >file && git commit -qam two`
	if text, err := exec.Command("sh", "-c", script, repository).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	c := newCluster(t, "a", "b")
	c.snapshots = time.Hour
	allowed := func(config *node.Config) { config.Sources = []string{dir + "/"} }
	a := c.start("a", allowed)
	for _, refused := range []struct {
		key, value string
		code       codes.Code
		text       string
	}{
		{identity.GitKey, "https://elsewhere.example/x", codes.PermissionDenied, "not allowed"},
		{identity.GitKey, dir + "/../etc", codes.InvalidArgument, ".."},
		{identity.GitKey, dir + "/nothing", codes.FailedPrecondition, "repository"},
		{identity.SnapshotKey, "none", codes.NotFound, "no snapshot of that name"},
		{identity.GitRefKey, "v1", codes.InvalidArgument, "needs a repository"},
		{identity.StrictKey, "yes", codes.InvalidArgument, "true or false"},
	} {
		a.creates = metadata.Pairs(refused.key, refused.value)
		_, err := tooldv1.NewSessionServiceClient(a.conn).ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
		if status.Code(err) != refused.code || !strings.Contains(err.Error(), refused.text) {
			t.Errorf("%s %s: %v", refused.key, refused.value, err)
		}
	}
	if last, err := c.log.Last(t.Context(), alices); err != nil || last.Pos != 0 {
		t.Errorf("what was refused has begun the workspace: %v, %v", last, err)
	}
	a.creates = metadata.Pairs(identity.GitKey, repository, identity.GitRefKey, "v1")
	k := a.attach(0)
	k.bash("1", "cat file; git remote get-url origin; git describe --tags; echo more >file")
	if told := k.result("1"); told != "OK one\n"+repository+"\nv1" {
		t.Errorf("the result is %q", told)
	}
	c.dies("a")
	a.Kill()
	_ = k.end()
	if err := os.RemoveAll(repository); err != nil {
		t.Fatal(err)
	}
	b := c.start("b", allowed)
	b.creates = metadata.Pairs(identity.StrictKey, "yes", identity.GitKey, "https://elsewhere.example/x")
	again := b.attach(k.last)
	again.bash("2", "cat file")
	told := again.result("2")
	wantStart(t, told, "OK one")
	if !strings.Contains(told, "The files are those of the last snapshot") {
		t.Errorf("the model is told %q", told)
	}
}

// TestCreatedFromSnapshot: a workspace that an administrator has created begins with the files of a snapshot that has a name, and has strict effects where
// the node requires them.
func TestCreatedFromSnapshot(t *testing.T) {
	c := newCluster(t, "a")
	a := c.start("a")
	k := a.attach(0)
	k.bash("1", "echo golden >file; echo secret >~/secret")
	wantStart(t, k.result("1"), "OK")
	for !c.saved() {
		runtime.Gosched()
	}
	store := lease.Store{Log: c.log}
	view, err := lease.Open(t.Context(), store, alices)
	if err != nil {
		t.Fatal(err)
	}
	saved, _ := view.Snapshot()
	if err := snapshot.Nominate(t.Context(), c.objects, objects.Below(c.objects, alices.ID()+"/"), saved.Reference, "golden image"); err != nil {
		t.Fatal(err)
	}
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.log, c.objects = &log.Memory{}, onlyNamed(t, c.objects)
	store.Log = c.log
	if err := lease.Create(t.Context(), store, alices, lease.Creation{Snapshot: "golden image"}); err != nil {
		t.Fatal(err)
	}
	again := c.start("a", func(config *node.Config) { config.Strict = true }).attach(0)
	again.bash("1", "cat file; ls -A ~ | grep secret; true")
	if told := again.result("1"); told != "OK golden" {
		t.Errorf("the result is %q", told)
	}
	if view, err = lease.Open(t.Context(), store, alices); err != nil || view.Creation() != (lease.Creation{Snapshot: "golden image", StrictEffects: true}) {
		t.Errorf("at a node whose workspaces have strict effects it has %+v, %v", view.Creation(), err)
	}
	if err := lease.Create(t.Context(), store, alices, lease.Creation{}); err == nil {
		t.Error("a workspace was created twice")
	}
}

// onlyNamed returns a store with what belongs to no workspace.
func onlyNamed(t *testing.T, from objects.Store) objects.Store {
	t.Helper()
	to := objects.Dir(t.TempDir())
	for name, err := range from.List(t.Context(), "named/") {
		if err != nil {
			t.Fatal(err)
		}
		r, err := from.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Put(t.Context(), name, r); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	return to
}
