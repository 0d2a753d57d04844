package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	os.Exit(tooltest.Main(m))
}

// newRunner returns a runner in a folder of its own.
func newRunner(t testing.TB) hook.Runner {
	t.Helper()
	processes, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := processes.Close(); err != nil {
			t.Errorf("ending the processes: %v", err)
		}
	})
	dir := t.TempDir()
	return hook.Runner{Processes: processes, ProjectDir: dir, Dir: dir, Environ: os.Environ()}
}

// at is where the hook of a number stands, from 1.
func at(n int) permission.Origin { return permission.Origin{File: "/s.json", Line: n} }

// scripts makes a hook of each script.
func scripts(event string, lines ...string) (hooks []*hook.Hook) {
	for i, line := range lines {
		hooks = append(hooks, &hook.Hook{Event: event, Command: line, Origin: at(i + 1)})
	}
	return hooks
}

// pidsIn reads the process numbers that hooks have written into a file, one a line.
func pidsIn(t *testing.T, path string) (pids []int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// alive reports whether a process runs; one that has ended and was not collected yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// oneLine waits for a line in a FIFO that a hook writes to.
func oneLine(t *testing.T, fifo string) string {
	t.Helper()
	text, err := os.ReadFile(fifo)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// writeScript puts an executable into dir.
func writeScript(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
