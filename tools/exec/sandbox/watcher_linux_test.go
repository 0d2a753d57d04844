package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A fakeDaemon is this test binary as a daemon that has started survivors.
type fakeDaemon struct {
	cmd     *exec.Cmd
	watcher int
	left    []int
}

func startDaemon(t *testing.T, home string) fakeDaemon {
	t.Helper()
	script := survivors["own session"] + ";" + survivors["forked twice"] + ";" + survivors["nohup"] + ";" +
		survivors["ignores TERM"] + "; echo ready; sleep 1000"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := fakeDaemon{cmd: exec.Command(self, "cd "+t.TempDir()+";"+script)}
	d.cmd.Env = append(os.Environ(), daemonHome+"="+home)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	scanner := bufio.NewScanner(out)
	for scanner.Scan() && scanner.Text() != "ready" {
		lines.WriteString(scanner.Text() + "\n")
	}
	first, _, _ := strings.Cut(lines.String(), "\n")
	if d.watcher, err = strconv.Atoi(first); err != nil {
		t.Fatalf("no watcher in %q", lines.String())
	}
	d.left = pids(t, lines.String())
	return d
}

func (d fakeDaemon) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // it was killed, and says so
}

// TestWatcherOutlivesTheDaemon: the watcher is the small program until the daemon has died, where the kernel executes files in memory.
func TestWatcherOutlivesTheDaemon(t *testing.T) {
	d := startDaemon(t, t.TempDir())
	name, err := os.ReadFile("/proc/" + strconv.Itoa(d.watcher) + "/comm")
	if err != nil {
		t.Fatal(err)
	}
	if refused, _ := os.ReadFile("/proc/sys/vm/memfd_noexec"); string(name) != "watcher\n" && string(refused) != "2\n" {
		t.Errorf("the watcher is %q", name)
	}
	d.kill(t)
	for _, pid := range append(d.left, d.watcher) {
		awaitDeath(t, pid)
	}
}

func TestSweepEndsWhatADeadDaemonLeft(t *testing.T) {
	home := t.TempDir()
	other := startDaemon(t, t.TempDir())
	d := startDaemon(t, home)
	d.cmd.Process.Signal(syscall.SIGSTOP) // so that it cannot replace its watcher
	if err := syscall.Kill(d.watcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.kill(t)
	awaitDeath(t, d.watcher)
	for _, pid := range d.left {
		if !alive(pid) {
			t.Fatalf("process %d ended with nobody there to end it", pid)
		}
	}
	killed, stuck := Sweep(home)
	if len(killed) < len(d.left) || stuck != nil {
		t.Errorf("killed %v, stuck %v; want %v", killed, stuck, d.left)
	}
	for _, pid := range d.left {
		awaitDeath(t, pid)
	}
	for _, pid := range other.left {
		if !alive(pid) {
			t.Errorf("process %d of a living daemon was killed", pid)
		}
	}
	other.kill(t)
	for _, pid := range append(other.left, other.watcher) {
		awaitDeath(t, pid)
	}
}

func TestWatcherIsReplaced(t *testing.T) {
	r := newRunner(t)
	r.watcher.mu.Lock()
	first := r.watcher.child.Pid
	r.watcher.mu.Unlock()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		changed := r.reaper.changed()
		r.watcher.mu.Lock()
		now, err := r.watcher.child, r.watcher.err
		r.watcher.mu.Unlock()
		if now == nil {
			t.Fatalf("no watcher any more: %v", err)
		}
		if now.Pid != first {
			return
		}
		// A short-lived call makes sure that a child ends after this look.
		start(t, r, "c", "true").Wait()
		<-changed
	}
}

// What a killed daemon had confined ends with its watcher too: the namespace by its first process, a tree without one by its
// marks.
func TestWatcherEndsWhatIsConfined(t *testing.T) {
	tiers(t, func(t *testing.T, _ *Runner, tier Tier) {
		t.Setenv(daemonTier, string(tier))
		home := t.TempDir()
		d := startDaemon(t, home)
		inside := marked(place(home))
		if len(inside) < 4 {
			t.Errorf("%d processes are marked, want the tree", len(inside))
		}
		d.kill(t)
		for _, m := range inside {
			awaitDeath(t, m.pid)
		}
	})
}
