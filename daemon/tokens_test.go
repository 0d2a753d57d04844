// The token file, as it is made and as it is read.

package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/daemon/access"
)

// TestFreshTokens: a daemon makes the file that is not there, for its user alone, and its one token opens.
func TestFreshTokens(t *testing.T) {
	h := prepare(t)
	path := filepath.Join(h.state, "tokens")
	address := h.open(access.TCP{Tokens: path})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want a file that others cannot read", info, err)
	}
	token, err := access.ReadToken(path)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := h.as(address, token).info(t.Context()); err != nil || who.GetPrincipal() != "token:default" {
		t.Errorf("%v, %v", who.GetPrincipal(), err)
	}
	h.stop()
	h.open(access.TCP{Tokens: path})
	if again, err := access.ReadToken(path); err != nil || again != token {
		t.Errorf("the next daemon made another token (%v)", err)
	}
}
