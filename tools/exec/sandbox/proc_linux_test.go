package sandbox

import (
	"os/exec"
	"testing"
)

// TestMarkerWhileAProgramBegins: a process has its marker also while it begins one program after the other.
func TestMarkerWhileAProgramBegins(t *testing.T) {
	loop := exec.Command("/bin/sh", "-c", `exec /bin/sh -c "$0" "$0"`, `exec /bin/sh -c "$0" "$0"`)
	loop.Env = []string{MarkerName + "=it"}
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loop.Process.Kill(); _ = loop.Wait() }() // it is ended by that, as it should
	m := member{pid: loop.Process.Pid}
	for m.marker() == "" { // it is the test's own program still
	}
	for range 5_000 {
		if got := m.marker(); got != "it" {
			t.Fatalf("the marker is %q", got)
		}
	}
}

// TestNoEnvironment: a process that has none is not waited for.
func TestNoEnvironment(t *testing.T) {
	bare := exec.Command("/usr/bin/env", "-i", "/bin/sleep", "1000")
	bare.Env = []string{MarkerName + "=it"}
	if err := bare.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bare.Process.Kill(); _ = bare.Wait() }()
	m := member{pid: bare.Process.Pid}
	for m.marker() != "" {
	}
}
