package main

// Everyday work where the kernel gives no namespaces, as in most containers: the same scripts, by a daemon that can make none.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// withoutNamespaces puts a program in the way of toold that takes the right to make namespaces from it: one of users in which
// there may be none of any kind.
func withoutNamespaces(t *testing.T) {
	t.Helper()
	toold, err := exec.LookPath("toold")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
exec unshare --user --map-current-user --keep-caps sh -c '
	for kind in /proc/sys/user/max_*_namespaces; do echo 0 >$kind || exit; done
	exec "$0" "$@"' %q "$@"
`, toold)
	if err := os.WriteFile(filepath.Join(dir, "toold"), []byte(script), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	was := os.Getenv("PATH")
	_ = os.Setenv("PATH", dir+":"+was)               //nolint:usetesting // t.Setenv allows no parallel tests
	t.Cleanup(func() { _ = os.Setenv("PATH", was) }) //nolint:usetesting // the same
	if out, err := exec.Command("toold", "version").CombinedOutput(); err != nil {
		skip(t, fmt.Sprintf("run this where users may make namespaces, or there are none: %v\n%s", err, out))
	}
}

// tier is the one that calls get which may write.
func (h *house) tier(t *testing.T) tooldv1.SandboxTier {
	t.Helper()
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return info.GetSandbox()
}

func TestOrdinaryWorkWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	h := ordinary(t)
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	made := h.attach(t, in(h.room(t, "says", map[string]string{"work.sh": "echo made >made"}), nil)).run("1", "sh work.sh").GetConfinement()
	for who, c := range map[string]*tooldv1.Confinement{"the daemon": {Tier: info.GetSandbox(), NotCovered: info.GetNotCovered()}, "a result": made} {
		if said := strings.Join(c.GetNotCovered(), " "); c.GetTier() != tooldv1.SandboxTier_SANDBOX_TIER_FAST || !strings.Contains(said, "Protected paths") || !strings.Contains(said, "The cause: ") {
			t.Errorf("%s says %v, not covered %q", who, c.GetTier(), c.GetNotCovered())
		}
	}
	works(t, h, 4)
}
