package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMountPointsGo: what is shown in a directory of the session's leaves nothing there, whoever else shows the same meanwhile,
// and what a process has made beside it stays.
func TestMountPointsGo(t *testing.T) {
	r := newRunner(t)
	s := newScene(t, Full)
	if got, err := r.Confinement(s.Policy); err != nil || got.Tier != Full {
		skip(t, "run this where users may make namespaces")
	}
	outside, err := os.MkdirTemp("/tmp", "toold-shown-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	_ = os.Chmod(outside, 0o755) //nolint:gosec // others may look
	shown, tree := filepath.Join(outside, "f"), filepath.Join(outside, "tree")
	if err := os.WriteFile(shown, []byte("shown\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(s.root, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	other := s
	s.Places = append(slices.Clone(s.Places), Place{Path: shown, Access: Read})
	other.Places = append(slices.Clone(s.Places), Place{Path: tree, Access: Read})
	p := s.start(t, r, "echo ready; read -r line <gate; cat "+shown+"; echo x >"+shown+" || echo made >/tmp/made")
	p.out.line(t, "ready")
	if q, exit := other.run(t, r, "cat "+shown+" && ls "+tree); exit.Code != 0 || q.out.String() != "shown\n" {
		t.Errorf("beside another: %+v, printed %q; on stderr: %s", exit, q.out, q.err)
	}
	if err := os.WriteFile(gate, []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); exit.Code != 0 || p.out.String() != "ready\nshown\n" {
		t.Errorf("exit %+v, printed %q; on stderr: %s", exit, p.out, p.err)
	}
	left, err := os.ReadDir(filepath.Join(s.base, "tmp"))
	if err != nil || len(left) != 1 || left[0].Name() != "made" {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if n := len(r.host.instances.points); n != 0 {
		t.Errorf("%d mount points are still counted", n)
	}
	if q, exit := s.run(t, r, "cat "+shown); exit.Code != 0 || q.out.String() != "shown\n" {
		t.Errorf("again: %+v, printed %q; on stderr: %s", exit, q.out, q.err)
	}
}
