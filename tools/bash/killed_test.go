package bash

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryKills reads what control groups of both versions have counted.
func TestMemoryKills(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string]string
		killed int
		limit  string
	}{
		"version 2": {map[string]string{
			"proc/self/cgroup":                "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":    "268435456\n",
			"sys/fs/cgroup/a/b/memory.events": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 0\n",
		}, 3, "256 MiB"},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:cpu:/c\n4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n",
			"sys/fs/cgroup/memory/a/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		}, 1, "1 MiB"},
		"no process was killed": {map[string]string{
			"proc/self/cgroup":            "0::/\n",
			"sys/fs/cgroup/memory.max":    "1048576\n",
			"sys/fs/cgroup/memory.events": "oom 2\noom_kill 0\n",
		}, 0, ""},
		"nothing is known": {nil, 0, ""},
		"other text":       {map[string]string{"proc/self/cgroup": "x\n::\n"}, 0, ""},
	} {
		root := t.TempDir()
		for file, text := range test.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if killed, limit := memoryKills(root); killed != test.killed || limit != test.limit {
			t.Errorf("%s: %d, %q; want %d, %q", name, killed, limit, test.killed, test.limit)
		}
	}
}
