// What checkpoints do not keep, and say so.

package daemon_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestCredentialsAreNotKept: nothing of a file that holds credentials by its name is in the daemon's state, and that is
// said.
func TestCredentialsAreNotKept(t *testing.T) {
	h := serve(t)
	h.file(".env", "TOKEN=verysecret\n")
	h.file("id_ed25519", "verysecret\n")
	c := h.join("s", free())
	c.bash("e", "echo > .env; rm id_ed25519; echo x > plain")
	want(t, h.checkpoints("s"), []string{
		"e, .env changed, id_ed25519 removed, plain created, .env not kept: By its name it holds credentials., id_ed25519 not kept: By its name it holds credentials.",
	})
	done := h.restore(before("s", 1))
	want(t, len(done.GetNotRestored()), 2)
	want(t, len(done.GetRestored()), 1)
	kept := 0
	err := filepath.WalkDir(filepath.Join(h.state, "checkpoints"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		kept++
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v), want 0600", path, info.Mode(), err)
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "verysecret") {
			t.Errorf("%s holds what is secret", path)
		}
		return err
	})
	if err != nil || kept == 0 {
		t.Errorf("%d contents are kept (%v)", kept, err)
	}
}

// TestAskedFilesAreNotKept: what a rule asks about before it is read is not kept, also when the answer was yes, and the
// rest of the turn is undone.
func TestAskedFilesAreNotKept(t *testing.T) {
	h := prepare(t)
	h.start()
	asked, plain := h.file("asked", "verysecret\n"), h.file("plain", "one\n")
	if err := os.WriteFile(h.settings, []byte(`{"permissions":{"ask":["Read(/`+asked+`)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := h.join("s", free())
	c.use("e", "Bash", bashInput("echo two > asked; echo two > plain"))
	c.reply(c.until("e asks").GetQuestion(), tooldv1.Decision_DECISION_ALLOW)
	c.endTurn()
	c.until("turn 1")
	want(t, h.checkpoints("s"), []string{"e, asked changed, plain changed, asked not kept: A rule denies or asks about reading it."})
	done := h.restore(before("s", 1))
	want(t, len(done.GetNotRestored()), 1)
	holds(t, asked, "two\n")
	holds(t, plain, "one\n")
}

// TestTooMuchToKeep: a directory that holds too much is not kept, which is said, and what was named beside it is.
func TestTooMuchToKeep(t *testing.T) {
	h := serve(t)
	for n := range 2100 {
		h.file(fmt.Sprintf("big/%d", n), "x")
	}
	h.file("small/f", "one\n")
	c := h.join("s", free())
	c.bash("e", "rm -r big small")
	want(t, h.checkpoints("s"), []string{
		"e, big removed, small removed, small/f removed, big not kept: More than 2000 files and directories would have to be kept.",
	})
	done := h.restore(before("s", 1))
	want(t, len(done.GetNotRestored()), 1)
	holds(t, filepath.Join(h.root, "small/f"), "one\n")
}
