package daemon_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestUnusedCachesGo: the folders of caches stay as long as a session has them, however old it is, and go when none has had them
// for a month.
func TestUnusedCachesGo(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	if err := os.Mkdir(filepath.Join(home, ".cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := prepare(t)
	h.start()
	h.join("s", free())
	folders := func() int {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(h.state, "caches", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	const month = 30 * 24 * time.Hour
	h.retain(time.Now().Add(month + time.Hour))
	if got := folders(); got != 1 {
		t.Fatalf("an open session has %d folders of caches, want 1", got)
	}
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	h.retain(time.Now().Add(2 * month)) // it was used at the last look
	if got := folders(); got != 1 {
		t.Fatalf("there are %d folders of caches less than a month after they were used, want 1", got)
	}
	h.retain(time.Now().Add(2*month + 2*time.Hour))
	if got := folders(); got != 0 {
		t.Errorf("there are %d folders of caches a month after they were used, want none", got)
	}
}
