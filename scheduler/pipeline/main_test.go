package pipeline

import (
	"os"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	os.Exit(m.Run())
}

// newRunner makes a runner that ends with the test.
func newRunner(t *testing.T) *sandbox.Runner {
	t.Helper()
	r, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the runner: %v", err)
		}
	})
	return r
}
