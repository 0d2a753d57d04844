package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/fs/workspace"
)

// worktree makes the root one of a repository beside it.
func (r *room) worktree() {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.root, ".git")); err != nil {
		r.t.Fatal(err)
	}
	own := "main/.git/worktrees/w"
	r.plant(own+"/HEAD", "main/.git/config", "main/.git/hooks/x")
	for name, text := range map[string]string{"root/.git": "gitdir: " + r.at(own), own + "/gitdir": filepath.Join(r.root, ".git"), own + "/commondir": "../.."} {
		if err := os.WriteFile(r.at(name), []byte(text+"\n"), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestReader: what serves for longer than a call, and only looks, writes nothing but its caches and temporary files; what
// may act writes what a command may.
func TestReader(t *testing.T) {
	r := newRoom(t)
	r.worktree()
	r.plant("more/x")
	r.Write = []string{r.at("more")}
	places, err := workspace.Open([]string{r.root}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rights := Rights{
		Policy: permission.Policy{Rules: compiled(t, nil, r.root, permission.Anchors{})}, Places: places, ReadState: workspace.NewReadState(), Confining: r.Confining,
	}
	own := []string{"write /tmp from temp", "write /var/tmp from temp2", "write cache below state/cache", "write temp", "write temp2"}
	others := []string{"root", "main/.git", "more"}
	acts, looks := r.shown(rights.Worker(t.Context(), r.root, "").Policy), r.shown(rights.Reader(t.Context(), r.root, "").Policy)
	for _, name := range others {
		if !slices.Contains(acts, "write "+name) {
			t.Errorf("what acts has no %s to write in %q", name, acts)
		}
		if !slices.Contains(looks, "read "+name) {
			t.Errorf("what looks has no %s to read in %q", name, looks)
		}
	}
	written := slices.DeleteFunc(slices.Clone(looks), func(line string) bool { return line[:5] != "write" })
	if !slices.Equal(written, own) {
		t.Errorf("what looks may write %q, want %q", written, own)
	}
}
