package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// startsWanted is how many starts TestManyStarts makes in each tier.
const startsWanted = "SANDBOX_TEST_STARTS"

// No start leaves a restriction, a process, a thread, a descriptor, a namespace or memory behind, whoever else starts
// something meanwhile.
func TestManyStarts(t *testing.T) {
	count := 400
	if wanted := os.Getenv(startsWanted); wanted != "" {
		var err error
		if count, err = strconv.Atoi(wanted); err != nil {
			t.Fatal(err)
		}
	}
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		many := func() {
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for range count / 32 {
						if p, exit := s.run(t, r, "exit 3"); exit.Code != 3 {
							t.Errorf("exit %+v: %s", exit, p.err)
						}
					}
				})
			}
			all.Wait()
		}
		before := remains(t)
		many()
		half := remains(t)
		many()
		after := remains(t)
		t.Logf("%d starts: %+v before, %+v after half of them, %+v after all", count, before, half, after)
		after.within(t, half)
		unrestricted(t, r)
		if left := zombies(); len(left) > 0 {
			t.Errorf("zombies: %v", left)
		}
		if err := os.WriteFile(filepath.Join(s.base, "outside", "mine"), nil, 0o644); err != nil {
			t.Error(err)
		}
	})
}

// A remainder is what the test's process has and might keep too much of.
type remainder struct {
	Threads, Descriptors, Namespaces, Processes int
	KiB                                         int // of memory, resident
}

func remains(t *testing.T) (now remainder) {
	t.Helper()
	debug.FreeOSMemory()
	now.Threads, now.Processes = threadCount(t), len(children())
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	now.Descriptors = len(fds)
	seen := map[string]bool{}
	own, _ := os.Readlink("/proc/self/ns/mnt")
	note := func(link string) {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "mnt:") && to != own {
			seen[to] = true
		}
	}
	for _, fd := range fds {
		note("/proc/self/fd/" + fd.Name())
	}
	for _, pid := range children() {
		note(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	}
	now.Namespaces = len(seen)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if figure, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, _ = fmt.Sscan(figure, &now.KiB)
		}
	}
	return now
}

// within checks that there is no more than there was after as much work before, but for what comes and goes.
func (now remainder) within(t *testing.T, then remainder) {
	t.Helper()
	const threads, descriptors = 16, 4 // Go keeps threads that it does not need; so does it memory
	kib := max(4<<10, then.KiB/4)
	if now.Threads > then.Threads+threads || now.Descriptors > then.Descriptors+descriptors || now.Namespaces > then.Namespaces ||
		now.Processes > then.Processes || now.KiB > then.KiB+kib {
		t.Errorf("%+v, and %+v after half of it", now, then)
	}
}

// unrestricted checks that no thread of the program is filtered but those that are meant to be.
func unrestricted(t *testing.T, r *Runner) {
	t.Helper()
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	filtered := 0
	for _, task := range tasks {
		status, _ := os.ReadFile(task)
		if !strings.Contains(string(status), "Seccomp:\t0") || !strings.Contains(string(status), "NoNewPrivs:\t0") {
			filtered++
		}
	}
	if filtered > len(r.host.threads.all) {
		t.Errorf("%d threads are restricted, want at most %d", filtered, len(r.host.threads.all))
	}
}

func threadCount(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

func zombies() (left []int) {
	for _, pid := range children() {
		if m, err := look(pid); err == nil && m.dead && m.session != 0 {
			left = append(left, pid)
		}
	}
	return left
}
