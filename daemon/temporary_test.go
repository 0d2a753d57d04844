package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestTemporaryMadeLater: a session whose directories for temporary files could not be made, as on a full disk, has them as soon
// as they can be.
func TestTemporaryMadeLater(t *testing.T) {
	h := prepare(t)
	own := filepath.Join(h.state, "temp", "s")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	info, err := tooldv1.NewDaemonServiceClient(h.conn).GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.GetSandbox() == tooldv1.SandboxTier_SANDBOX_TIER_NONE {
		t.Skip("run this where processes can be confined")
	}
	c := h.join("s", free())
	c.use("1", "Bash", `{"command":"true"}`)
	c.endTurn()
	c.results()
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	c.use("2", "Bash", `{"command":"true"}`)
	c.endTurn()
	c.results()
	if _, err := os.Stat(filepath.Join(own, "tmp")); err != nil {
		t.Error(err)
	}
}
