//go:build linux

package container_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/cluster/container"
)

// fakeGroups returns a directory with files as /proc and /sys/fs/cgroup have them.
func fakeGroups(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestGroups: what is written to the files of both versions of control groups. The directories are not those of a kernel.
func TestGroups(t *testing.T) {
	limits := container.Limits{Memory: 300 << 20, Processors: 1.5}
	for name, test := range map[string]struct{ files, want map[string]string }{
		"version 2": {
			map[string]string{
				"proc/self/cgroup": "0::/unit\n", "sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory\n",
				"sys/fs/cgroup/unit/cgroup.controllers": "cpu memory pids\n",
			},
			map[string]string{
				"unit/toold-node/cgroup.procs": fmt.Sprint(os.Getpid()), "unit/toold-w-x/memory.max": "314572800", "unit/toold-w-x/memory.swap.max": "0",
				"unit/toold-w-x/cpu.max": "150000 100000", "unit/toold-w-x/cgroup.procs": "0",
			},
		},
		"version 2, moved before": {
			map[string]string{
				"proc/self/cgroup": "0::/unit/toold-node\n", "sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory\n",
				"sys/fs/cgroup/unit/cgroup.controllers": "cpu memory pids\n",
			},
			map[string]string{"unit/toold-node/cgroup.procs": fmt.Sprint(os.Getpid()), "unit/toold-w-x/memory.max": "314572800"},
		},
		"version 1": {
			map[string]string{
				"proc/self/cgroup":                  "4:memory:/a\n1:cpu,cpuacct:/b\n0::/\n",
				"sys/fs/cgroup/memory/a/tasks":      "",
				"sys/fs/cgroup/cpu/b/tasks":         "",
				"sys/fs/cgroup/unified/cgroup.stat": "",
			},
			map[string]string{
				"memory/a/toold-w-x/memory.limit_in_bytes": "314572800", "memory/a/toold-w-x/cgroup.procs": "0", "cpu/b/toold-w-x/cgroup.procs": "0",
				"cpu/b/toold-w-x/cpu.cfs_period_us": "100000", "cpu/b/toold-w-x/cpu.cfs_quota_us": "150000",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := fakeGroups(t, test.files)
			groups, err := container.OpenGroups(root, limits)
			if err != nil {
				t.Fatal(err)
			}
			c, log := startWith(t, t.TempDir(), "echo runs", func(config *container.Config) { config.Groups, config.Name = groups, "x" })
			<-c.Done()
			if text, err := os.ReadFile(log); err != nil || string(text) != "runs\n" {
				t.Errorf("the container printed %q, %v", text, err)
			}
			for file, want := range test.want {
				if text, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", file)); err != nil || string(text) != want {
					t.Errorf("%s has %q, %v; want %q", file, text, err, want)
				}
			}
		})
	}
}

// TestGroupsRefused: where no control group can be made the error is of its own type and has what to do.
func TestGroupsRefused(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"no such file":                      nil,
		"the controller memory is not used": {"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/tasks": ""},
		"does not have the controller": {
			"proc/self/cgroup": "0::/unit\n", "sys/fs/cgroup/cgroup.controllers": "cpu memory\n", "sys/fs/cgroup/unit/cgroup.controllers": "pids\n",
		},
	} {
		_, err := container.OpenGroups(fakeGroups(t, files), container.Limits{Memory: 1 << 30})
		if refused, is := errors.AsType[*container.GroupsError](err); !is || !strings.Contains(refused.Error(), want) || !strings.Contains(err.Error(), "Delegate=yes") {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestLimits: the kernel holds a container to its memory. It is skipped where this process may make no control groups.
func TestLimits(t *testing.T) {
	groups, err := container.OpenGroups("/", container.Limits{Memory: 64 << 20, Processors: 0.5})
	if refused, is := errors.AsType[*container.GroupsError](err); is {
		t.Skip(refused)
	} else if err != nil {
		t.Fatal(err)
	}
	script := `cat /proc/self/cgroup; perl -e '$x = "x" x (1 << 28); print "not killed\n"'; echo $?`
	c, log := startWith(t, t.TempDir(), script, func(config *container.Config) { config.Groups, config.Name = groups, "limits" })
	<-c.Done()
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "/toold-w-limits") || !strings.HasSuffix(string(text), "\n137\n") {
		t.Errorf("the container printed %q, %v", text, err)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/*/toold-w-limits"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
