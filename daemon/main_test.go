package daemon_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toold/toold/tools/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	goleak.VerifyTestMain(m)
}
