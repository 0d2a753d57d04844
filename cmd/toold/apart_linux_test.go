package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adopting is held while the process of the tests does not adopt orphans.
var adopting sync.Mutex

// apart starts toold on a terminal of its own, not as a child of what has started the tests' clients: it is an orphan, which
// this process does not adopt either, though a sandbox that it has made wants that.
func apart(t *testing.T, environ []string, dir string, args ...string) *console {
	t.Helper()
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		skip(t, "install util-linux")
	}
	x, theirs := newTerminal(t, environ, dir, args...)
	x.cmd.Path, x.cmd.Args = setsid, append([]string{"setsid", "--fork", "--ctty", x.cmd.Path}, args...)
	x.cmd.SysProcAttr, x.cmd.Stdout = nil, theirs
	unadopted(t, func() {
		x.start(theirs)
		if err := x.cmd.Wait(); err != nil {
			t.Fatalf("setsid: %v", err)
		}
	})
	return x
}

// apart runs toold, not as a child of what has started the tests' clients, and waits for its end, which has to be a good one.
func (h *house) apart(t *testing.T, dir string, args ...string) {
	t.Helper()
	theirs := self(t, t.Context(), h.environ, dir, args...)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("setsid", append([]string{"--fork", "sh", "-c", `"$@"; echo "exit $?"`, "sh", theirs.Path}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = theirs.Dir, theirs.Env, in, in
	unadopted(t, func() {
		if err := cmd.Run(); err != nil {
			t.Fatalf("setsid: %v", err)
		}
	})
	_ = in.Close()
	if text, err := io.ReadAll(out); err != nil || !strings.HasSuffix(string(text), "exit 0\n") {
		t.Fatalf("toold %q: %v\n%s", args, err, text)
	}
}

// unadopted does something while this process does not adopt orphans.
func unadopted(t *testing.T, do func()) {
	t.Helper()
	adopting.Lock()
	defer adopting.Unlock()
	var adopts int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&adopts)), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	do()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(adopts), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}
