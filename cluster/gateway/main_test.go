package gateway

import (
	"fmt"
	"os"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) { // a daemon's
		return
	}
	if text := os.Getenv(aloneEnv); text != "" {
		if err := serveAlone(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	os.Exit(m.Run())
}
