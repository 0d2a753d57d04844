package node_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/s3test"
)

// TestS3: a workspace whose files and large records are in a store that speaks S3 goes on at another node after its node was drained, and after
// that one was lost. A file is in parts there.
func TestS3(t *testing.T) {
	server := s3test.Start(t)
	c := newCluster(t, "a", "b", "d")
	store, err := objects.OpenS3(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.objects = store
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	k := a.attach(0)
	k.bash("1", "head -c 17M /dev/urandom >file; sha256sum <file")
	sum := k.result("1")
	k.use("2", "Write", `{"file_path": "/workspace/payload", "content": "`+strings.Repeat("large ", 100_000)+`"}`)
	wantStart(t, k.result("2"), "OK")
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, name := range server.Names(t) {
		kinds[strings.Split(name, "/")[1]]++
	}
	if kinds["snapshots"] != 1 || kinds["payloads"] == 0 {
		t.Errorf("the store has %v", kinds)
	}
	k = b.attach(k.last)
	k.bash("3", "sha256sum <file")
	if got := k.result("3"); got != sum {
		t.Errorf("after a drain the file is %q, want %q", got, sum)
	}
	for !c.saved() {
		runtime.Gosched()
	}
	c.dies("b")
	b.Kill()
	_ = k.end()
	k = d.attach(0) // which reads the payload
	k.bash("4", "sha256sum <file; wc -c <payload")
	wantStart(t, k.result("4"), sum+"\n600000")
}
