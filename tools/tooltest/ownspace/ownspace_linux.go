// Package ownspace runs tests again in namespaces of their own, in which they may mount file systems
// or have each address of the Internet. It does not know what is tested.
package ownspace

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inside is the variable that names the test in the process with namespaces of its own.
const inside = "TOOLD_TEST_OWNSPACE"

// Inside reports whether the test runs in the process that Again has started for it.
func Inside(t *testing.T) bool { return os.Getenv(inside) == t.Name() }

// Again runs the whole test again in a process with new namespaces (CLONE_NEWNS, CLONE_NEWNET), with
// environ beside its own environment, and with files from descriptor 3 on. It reports true in that
// process. In the first process it returns false when the other has ended, and ends the test as the
// other did: the caller returns then.
func Again(t *testing.T, namespaces uintptr, environ []string, files ...*os.File) bool {
	t.Helper()
	if Inside(t) {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), append(environ, inside+"="+t.Name(), "GORACE=atexit_sleep_ms=0")...)
	again.ExtraFiles = files
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: namespaces}
	if os.Geteuid() != 0 {
		again.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := again.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &ended):
		Lacks(t, "run this where users may make namespaces: %v", err)
	case err != nil:
		t.Errorf("in its namespaces: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("the test did not run:\n%s", out)
	}
	return false
}

// InNetwork is Again with a network of which each address, of IPv4 and IPv6, leads to that process.
func InNetwork(t *testing.T, environ ...string) bool {
	t.Helper()
	if !Again(t, syscall.CLONE_NEWNET, environ) {
		return false
	}
	for _, args := range []string{"link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo"} {
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			Lacks(t, "install iproute2: ip %s: %v %s", args, err, out)
		}
	}
	return true
}
