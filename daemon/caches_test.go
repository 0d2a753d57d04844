package daemon_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestUnusedCachesGo: the folders of caches stay as long as a session has them, however old it is, and go when none has had them
// for as long as the settings keep them.
func TestUnusedCachesGo(t *testing.T) {
	t.Run("a month", func(t *testing.T) { unusedCachesGo(t, `{}`, 30) })
	t.Run("two days", func(t *testing.T) { unusedCachesGo(t, `{"caches": {"unusedDays": 2}}`, 2) })
}

func unusedCachesGo(t *testing.T, settings string, days time.Duration) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	if err := os.Mkdir(filepath.Join(home, ".cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
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
	long := days * 24 * time.Hour
	h.retain(time.Now().Add(long + time.Hour))
	if got := folders(); got != 1 {
		t.Fatalf("an open session has %d folders of caches, want 1", got)
	}
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	h.retain(time.Now().Add(2 * long)) // it was used at the last look
	if got := folders(); got != 1 {
		t.Fatalf("there are %d folders of caches too early after they were used, want 1", got)
	}
	h.retain(time.Now().Add(2*long + 2*time.Hour))
	if got := folders(); got != 0 {
		t.Errorf("there are %d folders of caches too long after they were used, want none", got)
	}
}
