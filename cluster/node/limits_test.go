package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/node"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestLimits: a call whose process the kernel kills for memory tells the client so, and the workspace goes on. It is skipped where this
// process may make no control groups.
func TestLimits(t *testing.T) {
	limits := container.Limits{Memory: 256 << 20, Processors: 1.5}
	if _, err := container.OpenGroups("/", limits); err != nil {
		if _, is := errors.AsType[*container.GroupsError](err); is {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	c := newCluster(t, "a")
	a := c.start("a", func(config *node.Config) { config.Limits = limits })
	k := a.attach(0)
	k.bash("1", `perl -e '$x = "x" x (1 << 29); print "not killed"'`)
	told := k.result("1")
	if !regexp.MustCompile(`^ERROR (Exit code 137|Ended by signal SIGKILL)`).MatchString(told) ||
		!strings.Contains(told, "may use 256 MiB of memory, and the kernel has killed 1 of them") {
		t.Errorf("the client is told %q", told)
	}
	k.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{}}})
	k.bash("2", "cat /proc/self/cgroup; echo goes on")
	if told := k.result("2"); !strings.HasSuffix(told, "goes on") {
		t.Errorf("then a call ends as %q", told)
	}
	processes := inside(t, filepath.Join(a.Dir, alices.ID(), "files"))
	if len(processes) == 0 {
		t.Fatal("nothing runs")
	}
	for _, mounts := range processes {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(mounts), "cgroup"))
		if err == nil && strings.Count(string(text), "/toold-w-"+alices.ID()) == 0 {
			t.Errorf("a process is in %s", text)
		}
	}
}
