package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInput(t *testing.T) {
	r := newRunner(t)
	large := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB, far over what a pipe holds
	tests := []struct {
		name, script string
		input        []byte
		want         string
	}{
		{"text", `cat; echo "[end]"`, []byte("first\nlast"), "first\nlast[end]\n"},
		{"line by line", `read -r a; read -r b; echo "$b $a"`, []byte("one\ntwo\n"), "two one\n"},
		{"empty", `cat; echo "[end]"`, []byte{}, "[end]\n"},
		{"none", `[ /dev/stdin -ef /dev/null ] && cat && echo "[end]"`, nil, "[end]\n"},
		{"large", `cat`, large, string(large)},
		{"large and not read", `echo done`, large, "done\n"},
		{"closed unread", `exec <&-; echo done`, large, "done\n"},
		{"cannot be changed", `exec 2>/dev/null; echo more >&0 || echo more >/dev/stdin || cat`, []byte("as it was"), "as it was"},
		{"inherited", `(cat); cat; echo "[end]"`, []byte("once"), "once[end]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, failures := newSink(), newSink()
			p, err := r.Start(Command{
				ID: "c", Path: bash, Args: []string{"bash", "-c", tt.script}, Dir: "/", Env: Environ(os.Environ()),
				Input: tt.input, Stdout: out, Stderr: failures,
			})
			if err != nil {
				t.Fatal(err)
			}
			if exit := p.Wait(); exit.Code != 0 || out.String() != tt.want {
				t.Errorf("%s: code %d, out %.100q, err %q; want %.100q", tt.script, exit.Code, out, failures, tt.want)
			}
		})
	}
}

// Where the kernel has no files in memory, or no room for one, a file without a name serves.
func TestInputOnDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := onDisk([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(f); err != nil || got.String() != "content" {
		t.Errorf("it holds %q (%v)", got.String(), err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("the folder holds %v (%v)", left, err)
	}
}

// Inputs are closed with the start of their processes, also when nothing was started.
func TestInputIsNotKeptOpen(t *testing.T) {
	r := newRunner(t)
	for _, dir := range []string{"/", filepath.Join(t.TempDir(), "absent")} {
		p, err := r.Start(Command{
			ID: "c", Path: bash, Args: []string{"bash", "-c", "true"}, Dir: dir, Input: []byte("x"), Stdout: newSink(), Stderr: newSink(),
		})
		if (err == nil) != (dir == "/") {
			t.Fatalf("in %s: %v", dir, err)
		}
		if err == nil {
			p.Wait()
		}
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.Contains(to, "memfd:input") {
			t.Errorf("descriptor %s is still %s", fd.Name(), to)
		}
	}
}
