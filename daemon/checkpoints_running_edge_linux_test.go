// What is recorded while a call runs, when the daemon is killed, its disk is full, or a program works against it.

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

// TestRecordingSurvivesKill: after kill -9 in the middle of a call what it has changed without naming it is put back.
func TestRecordingSurvivesKill(t *testing.T) {
	h := prepare(t)
	kill := h.spawn()
	h.needsFull()
	h.sh("mkdir d e; echo one > f; echo in > d/in; for n in {1..20}; do echo $n > e/$n; done")
	command := h.script("echo two > f; mv d moved; rm -r e; mkdir new; echo x > new/file; mkdir n2; mv new n2; echo ready; sleep 1000")
	then := tree(t, h.root)
	c := h.join("s", free())
	c.use("e", "Bash", bashInput(command))
	for ready := false; !ready; {
		ready = strings.Contains(c.until("").GetProgress().GetOutput().GetText(), "ready")
	}
	kill()
	h.start()
	if text := resultsOf(h.records("s"))["e"].GetContent()[0].GetText(); !strings.Contains(text, "toold undo") {
		t.Errorf("%q, want it to name the way back", text)
	}
	done := h.restore(before("s", 1))
	if got := tree(t, h.root); got != then {
		t.Errorf("undone, there is\n%s\nwant\n%s\n%v", got, then, done)
	}
	want(t, h.recordings(), 0)
}

// recordings returns how many recordings lie in the daemon's state.
func (h *house) recordings() int {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.state, "checkpoints", "run-*"))
	if err != nil {
		h.t.Fatal(err)
	}
	return len(found)
}

// TestRecordingOnAFullDisk: a call whose changes cannot be recorded any further goes on, and is told what was not kept.
func TestRecordingOnAFullDisk(t *testing.T) {
	h := prepareSmall(t)
	h.start()
	h.needsFull()
	large := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	small, path := h.file("small", "one\n"), h.file("large", large)
	command := h.script("echo two > small; echo two > large")
	c := h.join("s", free())
	ballast := filepath.Join(h.state, "ballast")
	fill(t, ballast)
	info, err := os.Stat(ballast)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(ballast, info.Size()-1<<20); err != nil { // room for the journal, and not for the file
		t.Fatal(err)
	}
	result := c.bash("full", command)
	want(t, result.GetOutcome(), tooldv1.Outcome_OUTCOME_OK)
	if note := told(result); !strings.Contains(note, "1 not kept") || !strings.Contains(note, "no space left on device") {
		t.Errorf("told %q", note)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	h.restore(before("s", 1))
	holds(t, small, "one\n")
	holds(t, path, "two\n")
}

// TestRecordingIsNotLedAstray: a program that swaps directories for links while it writes makes the daemon keep nothing
// that lies outside of the root, and no pipe blocks it.
func TestRecordingIsNotLedAstray(t *testing.T) {
	h := serve(t)
	h.needsFull()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("verysecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.file("script", fmt.Sprintf(`
import os, threading
os.mkdir("d"); os.mkdir("real"); open("real/f","w").write("ours"); over=False
def swap():
    while not over:
        for target in ("real", %q, "../"+os.path.basename(%[1]q), "/etc", "/proc/self/cwd/real"):
            try:
                os.symlink(target, "new"); os.rename("d", "old"); os.rename("new", "d")
                os.unlink("d"); os.rename("old", "d")
                os.mkfifo("d/f"); os.unlink("d/f")
            except OSError: pass
            for name in ("new", "d/f"):
                try: os.unlink(name)
                except OSError: pass
            if not os.path.exists("d"):
                try: os.mkdir("d")
                except OSError: pass
t=threading.Thread(target=swap); t.start()
for i in range(3000):
    try: os.close(os.open("d/f", os.O_WRONLY|os.O_NONBLOCK|(os.O_CREAT if i%%2 else 0)))
    except OSError: pass
over=True; t.join()
`, outside))
	c := h.join("s", free())
	if result := c.bash("attack", "python3 script"); result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
		t.Fatal(result)
	}
	err := filepath.WalkDir(filepath.Join(h.state, "checkpoints"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "verysecret") || strings.Contains(string(data), "root:x:") {
			t.Errorf("%s holds what lies outside of the root", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(outside, "f"), "verysecret\n")
}

// TestHiddenNames: a program that hides the names of what it changes is told of.
func TestHiddenNames(t *testing.T) {
	h := serve(t)
	h.needsFull()
	h.file("f", "one\n")
	h.file("script", `import os
pid=os.fork()
if pid==0: os.read(os.open("/proc/self/stat",0),1); open("/proc/%d/cwd/f"%os.getppid(),"w").write("two")
else: os.waitpid(pid,0)
`)
	c := h.join("s", free())
	if note := told(c.bash("hidden", "python3 script")); !strings.Contains(note, "1 not kept: "+h.real()+" (a program hid the name of what it changed).") {
		t.Errorf("told %q", note)
	}
}

// TestChangesAfterTheCall: what a process changes that goes on when its call has ended counts as another program's.
func TestChangesAfterTheCall(t *testing.T) {
	h := serve(t)
	h.needsFull()
	h.file("f", "one\n")
	c := h.join("s", free())
	h.sh("mkfifo go done")
	h.file("wait", "read -r _ < go; echo three > f; echo > done")
	c.bash("later", h.script("echo two > f")+"; sh wait >/dev/null 2>&1 &")
	h.sh("echo > go; cat done")
	dry := h.restore(&tooldv1.RestoreRequest{SessionId: "s", Point: &tooldv1.RestoreRequest_Turn{Turn: 1}, DryRun: true})
	want(t, len(dry.GetConflicts()), 1)
	want(t, h.below(dry.GetConflicts()[0]), "f")
}
