package sandbox

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestExit(t *testing.T) {
	r := newRunner(t)
	tests := []struct {
		name, script string
		code         int
		signal       string
		out, err     string
	}{
		{"success", "echo out; echo err >&2", 0, "", "out\n", "err\n"},
		{"code", "exit 7", 7, "", "", ""},
		{"signal", "kill -KILL $$", -1, "SIGKILL", "", ""},
		{"nothing to read", "cat;  read x; echo $?", 0, "", "1\n", ""},
		{"no terminal", "exec 2>/dev/null; (: </dev/tty) || echo none", 0, "", "none\n", ""},
		{"its own session", `read -r _ _ _ _ group session _ </proc/$$/stat; [ $$ = $group ] && [ $$ = $session ] && echo own`, 0, "", "own\n", ""},
		{"marked", `m=${TOOLD_CALL%.*}; echo ${m##*.}`, 0, "", "its own session's successor\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := strings.TrimSuffix(tt.out, "\n")
			p := start(t, r, id, tt.script)
			exit := p.Wait()
			if exit.Code != tt.code || exit.Signal != tt.signal || p.out.String() != tt.out || p.err.String() != tt.err {
				t.Errorf("%s: code %d, signal %q, out %q, err %q; want %d, %q, %q, %q", tt.script,
					exit.Code, exit.Signal, p.out, p.err, tt.code, tt.signal, tt.out, tt.err)
			}
			if exit.LeftBehind != nil || exit.Stuck != nil || exit.Stopped || exit.Output != nil {
				t.Errorf("unexpected report: %+v", exit)
			}
		})
	}
}

// TestPeakMemoryIsTheProcesses: what a child has inherited from a large daemon is not reported as its own.
func TestPeakMemoryIsTheProcesses(t *testing.T) {
	const large = 100 << 20
	r := newRunner(t)
	ballast := make([]byte, large)
	for i := 0; i < large; i += 4096 {
		ballast[i] = 1
	}
	for range 20 {
		if exit := start(t, r, "small", "true; ls >/dev/null").Wait(); exit.MaxRSS >= large/2 {
			t.Fatalf("a small command is reported with %d bytes", exit.MaxRSS)
		}
	}
	exit := start(t, r, "large", `printf -v x "%200000000s" .; true`).Wait()
	if inChild := start(t, r, "child", `(printf -v x "%200000000s" .); true`).Wait(); exit.MaxRSS < 200_000_000 || inChild.MaxRSS < 200_000_000 {
		t.Errorf("large ones are reported with %d and %d bytes", exit.MaxRSS, inChild.MaxRSS)
	}
	runtime.KeepAlive(ballast)
}

// survivors are the ways in which a process outlives the shell that has started it. Each script prints "pid N" for each
// and then "ready".
var survivors = map[string]string{
	"background":          `sleep 1000 & echo pid $!`,
	"nohup":               `nohup sleep 1000 >/dev/null 2>&1 & echo pid $!`,
	"own session":         `setsid sleep 1000 & echo pid $!`,
	"own session forking": `setsid -f bash -c 'echo pid $$; echo up >&3; sleep 1000' 3> >(cat >up); until [ -s up ]; do :; done`,
	"forked twice":        `( ( sleep 1000 & echo pid $!; echo up >up2 ) & ) ; until [ -s up2 ]; do :; done`,
	"ignores TERM":        `mkfifo up; (trap "" TERM HUP INT; echo pid $BASHPID; echo >up; while :; do sleep 1000; done) & read <up`,
	"stopped":             `sleep 1000 & kill -STOP $!; echo pid $!`,
	"holds the pipe":      `(exec 0<&-; sleep 1000) & echo pid $!`,
	"sheds its name":      `env -i setsid sh -c 'sleep 1000 & echo pid $!' & wait $!`,
	"grandchildren":       `setsid bash -c 'for i in 1 2 3; do setsid sleep 100$i & echo pid $!; done; echo pid $$; echo up >up; wait' & until [ -s up ]; do :; done`,
}

func TestNothingOutlivesTheMainProcess(t *testing.T) {
	r := newRunner(t)
	for name, script := range survivors {
		t.Run(name, func(t *testing.T) {
			p := start(t, r, t.Name(), script+"; echo ready")
			exit := p.Wait()
			left := pids(t, p.out.String())
			for _, pid := range left {
				if alive(pid) {
					t.Errorf("process %d is alive", pid)
				}
				if !slices.ContainsFunc(exit.LeftBehind, func(l Left) bool { return l.PID == pid }) {
					t.Errorf("process %d is not in the report %v", pid, exit.LeftBehind)
				}
			}
			if exit.Code != 0 || exit.Stuck != nil || !strings.HasSuffix(p.out.String(), "ready\n") {
				t.Errorf("exit %+v, output %q, %q", exit, p.out, p.err)
			}
		})
	}
}

func TestStopEndsTheTree(t *testing.T) {
	r := newRunner(t)
	for name, script := range survivors {
		t.Run(name, func(t *testing.T) {
			p := start(t, r, t.Name(), script+"; echo ready; wait; sleep 1000")
			p.out.line(t, "ready")
			p.Stop()
			exit := p.Wait()
			for _, pid := range pids(t, p.out.String()) {
				if alive(pid) {
					t.Errorf("process %d is alive", pid)
				}
			}
			if !exit.Stopped || exit.Stuck != nil || exit.LeftBehind != nil {
				t.Errorf("exit %+v", exit)
			}
		})
	}
}

func TestStopLetsThemCleanUp(t *testing.T) {
	r := newRunner(t)
	p := start(t, r, "c", `trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	p.out.line(t, "ready")
	p.Stop()
	if exit := p.Wait(); exit.Code != 3 || exit.Signal != "" || !strings.HasSuffix(p.out.String(), "cleaned\n") {
		t.Errorf("exit %+v, output %q", exit, p.out)
	}
}

// What was started while the tree was looked at is told to end too; what is started later may clean up.
func TestStopOfWhatWasNotSeen(t *testing.T) {
	r := newRunner(t)
	p := start(t, r, "c", `sleep 1000 & echo pid $!; echo ready; wait $!; echo ended $?`)
	p.out.line(t, "ready")
	unseen := pids(t, p.out.String())[0]
	told := telling{pids: map[int]bool{p.child.Pid: true}, last: lastPID(), at: ticks()}
	if told.last < unseen {
		t.Fatalf("the newest process is %d, after %d", told.last, unseen)
	}
	told.catchUp(p.members())
	p.out.line(t, "ended 143")
	if exit := p.Wait(); exit.Code != 0 || !told.pids[unseen] {
		t.Errorf("exit %+v, told %v", exit, told.pids)
	}
	for _, m := range []member{{pid: unseen, start: told.at}, {pid: told.last + 1, start: told.at}, {pid: told.last, start: told.at + 1}} {
		if told.missed(m) {
			t.Errorf("%+v is told, after %+v", m, told)
		}
	}
}

func TestWhatIgnoresTermIsKilled(t *testing.T) {
	r := newRunner(t)
	p := start(t, r, "c", `trap '' TERM; echo ready; while :; do sleep 1000; done`)
	p.out.line(t, "ready")
	p.Stop()
	if exit := p.Wait(); exit.Signal != "SIGKILL" {
		t.Errorf("exit %+v", exit)
	}
}

func TestStopOfAStoppedProcess(t *testing.T) {
	r := newRunner(t)
	p := start(t, r, "c", `trap 'exit 4' TERM; echo ready; kill -STOP $$; while :; do sleep 0.01; done`)
	p.out.line(t, "ready")
	p.Stop()
	if exit := p.Wait(); exit.Code != 4 {
		t.Errorf("exit %+v", exit)
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	r := newRunner(t)
	for name, script := range survivors {
		if name == "sheds its name" {
			continue // told from others only by when it began, so it lives until nobody else can own it
		}
		t.Run(name, func(t *testing.T) {
			a := start(t, r, "a", script+"; echo ready; sleep 1000")
			a.out.line(t, "ready")
			if exit := start(t, r, "b", "sleep 1000 & exec true").Wait(); len(exit.LeftBehind) != 1 {
				t.Errorf("b left %v", exit.LeftBehind)
			}
			for _, pid := range pids(t, a.out.String()) {
				if !alive(pid) {
					t.Errorf("process %d of a ended with b", pid)
				}
			}
			a.Stop()
			a.Wait()
		})
	}
}

// A process that has shed its marker and its session, while an older tree runs, ends with the last that may own it.
func TestUnknownOwner(t *testing.T) {
	r := newRunner(t)
	older := start(t, r, "older", `echo ready; sleep 1000`)
	older.out.line(t, "ready")
	younger := start(t, r, "younger", survivors["sheds its name"])
	younger.Wait()
	pid := pids(t, younger.out.String())[0]
	older.Stop()
	older.Wait()
	if alive(pid) {
		t.Errorf("process %d is alive", pid)
	}
}

func TestWhatEndsBySelfIsNotLeft(t *testing.T) {
	r := newRunner(t)
	p := start(t, r, "c", `mkfifo f; exec 3<>f; echo first > >(read -r line; echo "got $line"; cat); exit 5`)
	if exit := p.Wait(); exit.Code != 5 || exit.LeftBehind != nil || p.out.String() != "got first\n" {
		t.Errorf("exit %+v, output %q", exit, p.out)
	}
}

func TestOutputErrorStops(t *testing.T) {
	r := newRunner(t)
	full := errors.New("full")
	p, err := r.Start(Command{
		ID: "c", Path: bash, Args: []string{"bash", "-c", "while :; do echo y; done"}, Dir: "/",
		Stdout: failing{full}, Stderr: failing{full},
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); !errors.Is(exit.Output, full) || !exit.Stopped {
		t.Errorf("exit %+v", exit)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestStartFails(t *testing.T) {
	r := newRunner(t)
	absent := filepath.Join(t.TempDir(), "absent")
	for _, c := range []Command{
		{ID: "c", Path: absent, Args: []string{"x"}, Dir: "/"},
		{ID: "c", Path: bash, Args: []string{"bash"}, Dir: absent},
		{ID: "c", Path: bash, Args: []string{"bash", "a\x00b"}, Dir: "/"},
	} {
		if p, err := r.Start(c); err == nil {
			t.Errorf("%+v was started", c)
			p.Wait()
		}
	}
	if len(r.trees) != 0 {
		t.Errorf("%d trees are still registered", len(r.trees))
	}
}

// Calls, orphans and the children of others at once: nobody collects another's.
func TestCollectsOnlyItsOwn(t *testing.T) {
	r := newRunner(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				if err := exec.Command("true").Run(); err != nil {
					t.Errorf("a child of somebody else: %v", err)
				}
			}
		})
		all.Go(func() {
			for range 25 {
				p := start(t, r, "c", "(setsid true &); (setsid sh -c 'exit 9' &); exit 6")
				if exit := p.Wait(); exit.Code != 6 {
					t.Errorf("exit %+v", exit)
				}
			}
		})
	}
	all.Wait()
	for {
		changed := r.reaper.changed()
		if len(r.unknownProcesses()) == 0 {
			break
		}
		<-changed
	}
}

func TestCloseStopsAll(t *testing.T) {
	r, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, r, "c", survivors["own session"]+"; echo ready; sleep 1000")
	p.out.line(t, "ready")
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if exit := p.Wait(); !exit.Stopped {
		t.Errorf("exit %+v", exit)
	}
	if pid := pids(t, p.out.String())[0]; alive(pid) {
		t.Errorf("process %d is alive", pid)
	}
	if _, err := r.Start(Command{ID: "d", Path: bash, Args: []string{"bash"}, Dir: "/"}); !errors.Is(err, ErrClosed) {
		t.Errorf("starting after Close: %v", err)
	}
}
