// What bounds checkpoints: bytes, age, and the order of calls.

package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestCheckpointBytes: above the limit the oldest contents go; their checkpoints say so and the rest can be put back.
func TestCheckpointBytes(t *testing.T) {
	h := prepare(t)
	h.limit(`"checkpoint_bytes": 2500`)
	h.start()
	path := h.file("f", strings.Repeat("0", 1000))
	h.file("other", "one\n")
	c := h.join("s", free())
	for n := range 4 {
		c.bash(fmt.Sprint(n), fmt.Sprintf("printf '%%01000d' %d > f", n+1))
	}
	c.bash("last", "echo two > other")
	if err := h.d.SweepCheckpoints(time.Now()); err != nil {
		t.Fatal(err)
	}
	if size := kept(t, h); size > 2500 || size < 2000 {
		t.Errorf("%d bytes are kept, want about 2500", size)
	}
	told := h.checkpoints("s")
	if !strings.Contains(told[4], "f not kept: Its content is not kept any more.") || strings.Contains(told[1], "not kept") {
		t.Errorf("%q, want the oldest not to be kept and the newest to be", told)
	}
	done := h.restore(before("s", 1))
	if len(done.GetNotRestored()) != 1 || !strings.Contains(done.GetNotRestored()[0].GetReason(), "not kept any more") {
		t.Errorf("not restored: %v", done.GetNotRestored())
	}
	holds(t, filepath.Join(h.root, "other"), "one\n")
	holds(t, path, fmt.Sprintf("%01000d", 4))
}

// TestCheckpointAge: what is too old is dropped, whole, and nothing of it is left.
func TestCheckpointAge(t *testing.T) {
	h := serve(t)
	h.file("f", "one\n")
	c := h.join("s", free())
	c.bash("e", "echo two > f")
	if err := h.d.SweepCheckpoints(time.Now().Add(29 * 24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	want(t, len(h.checkpoints("s")), 1)
	if err := h.d.SweepCheckpoints(time.Now().Add(31 * 24 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.bash("barrier", "echo three > g")
	want(t, h.checkpoints("s"), []string{"barrier, g created"})
	if err := h.d.SweepCheckpoints(time.Now()); err != nil {
		t.Fatal(err)
	}
	want(t, kept(t, h), int64(len("three\n")))
}

// kept is how many bytes of contents the daemon keeps.
func kept(t *testing.T, h *house) (size int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.state, "checkpoints", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// TestRestoreWaitsForItsTurn: what runs is left to finish first; if that changes what would be put back, nothing is.
func TestRestoreWaitsForItsTurn(t *testing.T) {
	g := gateTool()
	h := serve(t, g)
	path := h.file("f", "one\n")
	c := h.join("s", free())
	for n, meanwhile := range []string{"two\n", "three\n"} {
		id := fmt.Sprint("gate", n)
		c.bash("before "+id, "echo two > f")
		c.pass(id, writes)
		g.await(t, id)
		done := make(chan error, 1)
		go func() {
			_, err := h.sessions().Restore(context.Background(), before("s", 1))
			done <- err
		}()
		for !strings.HasSuffix(tell(c.until("restore-")), "accepted 0/1") { // and not the end of the one before
		}
		h.file("f", meanwhile)
		g.open(id)
		err := <-done
		if meanwhile == "two\n" {
			if err != nil {
				t.Fatal(err)
			}
			holds(t, path, "one\n")
		} else {
			refused(t, err, codes.FailedPrecondition, "plan_changed")
			holds(t, path, meanwhile)
		}
		c.endTurn()
	}
	told := strings.Join(story(h.records("s")), "\n")
	if gate, restored := strings.Index(told, "gate0 OK"), strings.LastIndex(told, "started\nrestore-"); gate < 0 || restored < gate {
		t.Errorf("it did not wait:\n%s", told)
	}
}

// TestManyNames: however many files calls have changed, an answer stays within what clients take, and says how many it
// leaves out; what is done is done to all.
func TestManyNames(t *testing.T) {
	h := serve(t)
	const files = 300
	for n := range files {
		h.file(fmt.Sprintf("many/%0240d", n), "x")
	}
	was := picture(t, h.root)
	c := h.join("s", free())
	for n := range 5 {
		c.bash(fmt.Sprint(n), fmt.Sprintf("cp -r many d%d", n))
	}
	c.bash("env", "echo x > .env")
	seen, request := 0, &tooldv1.ListCheckpointsRequest{SessionId: "s", Net: true}
	for pages := 1; ; pages++ {
		list := h.list(request)
		if size := proto.Size(list); size > 4<<20 {
			t.Errorf("a page has %d bytes", size)
		}
		if n := len(list.GetNet()) + int(list.GetMoreNet()); n != 5*(files+1)+1 {
			t.Errorf("the net has %d files, shown or not", n)
		}
		for _, checkpoint := range list.GetCheckpoints() {
			if n := len(checkpoint.GetFiles()) + int(checkpoint.GetMoreFiles()); n != files+1 && checkpoint.GetToolUseId() != "env" {
				t.Errorf("%s has %d files, shown or not", checkpoint.GetToolUseId(), n)
			}
			seen++
		}
		if request.PageToken = list.GetNextPageToken(); request.PageToken == "" {
			if pages < 2 {
				t.Error("all were on one page")
			}
			break
		}
	}
	want(t, seen, 6)
	dry := before("s", 1)
	dry.DryRun = true
	for _, done := range []*tooldv1.RestoreResponse{h.restore(dry), h.restore(before("s", 1))} {
		want(t, len(done.GetRestored())+int(done.GetMoreRestored()), 5*(files+1))
		want(t, len(done.GetNotRestored())+int(done.GetMoreNotRestored()), 1)
		want(t, done.GetUndoneCalls(), uint32(6))
		if size := proto.Size(done); size > 4<<20 || done.GetMoreRestored() == 0 {
			t.Errorf("the answer has %d bytes", size)
		}
	}
	for _, record := range h.records("s") {
		if size := proto.Size(record); size > 1<<20 {
			t.Errorf("%s has %d bytes", tell(record), size)
		}
	}
	if err := os.Remove(filepath.Join(h.root, ".env")); err != nil {
		t.Fatal(err)
	}
	want(t, picture(t, h.root), was)
}

// TestSweepAfterDamage: where rows were lost with a damaged journal, contents that no row names stay until they are old.
func TestSweepAfterDamage(t *testing.T) {
	h := prepare(t)
	lost := filepath.Join(h.state, "checkpoints", "aa", strings.Repeat("a", 64))
	for _, dir := range []string{filepath.Dir(lost), filepath.Join(h.state, "journal")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string) {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	put(filepath.Join(h.state, "journal", "journal.db.damaged-"+now.UTC().Format("20060102T150405.000000000Z")))
	put(lost)
	h.start() // only now: it sweeps once by itself
	for _, days := range []time.Duration{0, 29, 31} {
		if err := h.d.SweepCheckpoints(now.Add(days * 24 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(lost); (err == nil) != (days < 30) {
			t.Errorf("after %d days: %v", days, err)
		}
	}
}
