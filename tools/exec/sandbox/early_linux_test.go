package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shell is a command that an early shell may run.
func (s scene) shell(script string, p *started) Command {
	env := Environ(os.Environ(), "EXPORTED=1", "_=bash")
	return Command{
		ID: "call", Path: bash, Args: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: s.root, Env: env, Stdout: p.out, Stderr: p.err, Policy: s.Policy,
		Early: &Early{Script: script, Env: env, Prelude: "unset BASH_ENV\nSECONDS=0 BASH_EXECUTION_STRING='" + strings.ReplaceAll(script, "'", `'\''`) + "'\nexec 3<&- 4>&-\n: bash\n"},
	}
}

// begin starts a command, and reports whether a shell that waited runs it.
func (p *started) begin(t *testing.T, r *Runner, c Command) (early bool) {
	t.Helper()
	var err error
	if p.Process, err = r.Start(c); err != nil {
		t.Fatal(err)
	}
	if p.Report() == nil {
		return false
	}
	if err := p.Report().Close(); err != nil {
		t.Error(err)
	}
	return true
}

func newStarted() *started { return &started{out: newSink(), err: newSink()} }

// prepare has a shell wait for such a command.
func prepare(t *testing.T, r *Runner, c Command) *earlyShell {
	t.Helper()
	r.prepare(c)
	r.early.running.Wait()
	r.early.mu.Lock()
	defer r.early.mu.Unlock()
	if len(r.early.shells) == 0 {
		t.Fatal("no shell waits")
	}
	return r.early.shells[len(r.early.shells)-1]
}

func unconfinedToo(t *testing.T, test func(t *testing.T, r *Runner, tier Tier)) {
	tiers(t, test)
	t.Run(string(None), func(t *testing.T) { test(t, newRunner(t), None) })
}

var sameScripts = []string{
	"echo hi; echo no >&2; exit 3", `echo "$BASH_EXECUTION_STRING|$0|$#|$_|$-|$SHLVL|$BASH_SUBSHELL|$LINENO|$EXPORTED|${BASH_ENV-unset}|$PWD"`,
	"nosuch\nnosuch", "echo 'open", "if", "foo(", "set -e; false; echo not", "set -u; echo $unset", "set -x; :", "trap 'echo bye $?' EXIT; exit 4",
	"exec echo gone", "kill -9 $$", "kill -TERM $$; echo survived", "return 3", "cat; read x || echo end", "shopt -p; set -o; umask; ulimit -a; pwd",
	`for fd in /dev/fd/*; do [ -e "$fd" ] && echo "${fd##*/}"; done 3>&-`, "cd protected && echo x > file; cat file; ls ../hidden", "echo x > made; cat made; rm made",
	"f() { echo ${FUNCNAME[@]} ${BASH_SOURCE[@]} ${BASH_LINENO[@]}; caller; }; f", "exit 300", "(exit 5); echo $?", "echo $((1/0)); echo after",
	"env | grep -v -e TOOLD_CALL -e '^_=' | sort", "printf '%s\\n' 'it'\\''s' \"\u00e4\u20ac\" $'\\001\\377' | od -c", "alias; hash; trap; jobs", "sleep 0 & wait; echo $?",
	strings.Repeat("#", 3000) + "\necho long",
}

// A shell that waited is the one that would have been started.
func TestEarlyIsTheSame(t *testing.T) {
	unconfinedToo(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		for _, script := range sameScripts {
			fresh, early := newStarted(), newStarted()
			if fresh.begin(t, r, s.shell(script, fresh)) {
				t.Fatal("a shell waited that nothing had prepared")
			}
			first := fresh.Wait()
			prepare(t, r, s.shell("other", early))
			if !early.begin(t, r, s.shell(script, early)) {
				t.Fatalf("%.80q: no shell waited", script)
			}
			second := early.Wait()
			first.MaxRSS, second.MaxRSS = 0, 0
			if first.Code != second.Code || first.Signal != second.Signal || len(first.Denials) != len(second.Denials) || !slices.Equal(first.Created, second.Created) {
				t.Errorf("%.80q:\n%+v, early\n%+v", script, first, second)
			}
			if a, b := fresh.out.String(), early.out.String(); a != b {
				t.Errorf("%.80q:\n%q, early\n%q", script, a, b)
			}
			if a, b := fresh.err.String(), early.err.String(); a != b {
				t.Errorf("%.80q: stderr\n%q, early\n%q", script, a, b)
			}
		}
	})
}

// A shell that waited under other conditions is not used.
func TestEarlyIsNotUsed(t *testing.T) {
	unconfinedToo(t, func(t *testing.T, r *Runner, tier Tier) {
		changes := map[string]func(s *scene, c *Command){
			"network": func(_ *scene, c *Command) { c.Policy.Network.Allowed = []string{"example.com"} },
			"sockets": func(_ *scene, c *Command) { c.Policy.UnixSockets = true },
			"limits":  func(_ *scene, c *Command) { c.Policy.Limits.Processes = 5000 },
			"absent":  func(s *scene, c *Command) { c.Policy.Absent = append(c.Policy.Absent, filepath.Join(s.root, ".x")) },
			"session": func(_ *scene, c *Command) { c.Policy.Session = "other" },
			"place": func(s *scene, c *Command) {
				c.Policy.Places = append(slices.Clone(c.Policy.Places), Place{Path: filepath.Join(s.base, "outside")})
			},
			"tier": func(_ *scene, c *Command) { c.Policy = Policy{Tier: None}; c.Policy.Strict = true },
			"environment": func(_ *scene, c *Command) {
				c.Early.Env = append(slices.Clone(c.Early.Env), "MORE=1")
				c.Env = c.Early.Env
			},
			"directory": func(s *scene, c *Command) { c.Dir = filepath.Join(s.root, "protected") },
			"long": func(_ *scene, c *Command) {
				c.Early.Script += strings.Repeat(" ", maxEarly)
				c.Args[4] = c.Early.Script
			},
			"merged output": func(_ *scene, c *Command) { c.Stderr = nil },
			"not asked for": func(_ *scene, c *Command) { c.Early = nil },
			"directory replaced": func(s *scene, _ *Command) {
				if err := os.Rename(s.root, s.root+"-moved"); err != nil {
					t.Error(err)
				}
				if err := os.Mkdir(s.root, 0o755); err != nil {
					t.Error(err)
				}
			},
		}
		for name, change := range changes {
			s, p := newScene(t, tier), newStarted()
			prepare(t, r, s.shell("true", p))
			c := s.shell("echo fresh", p)
			if change(&s, &c); p.begin(t, r, c) {
				t.Errorf("%s: a shell from before was used", name)
			}
			if exit := p.Wait(); exit.Code != 0 || p.out.String() != "fresh\n" {
				t.Errorf("%s: %+v, %q, %q", name, exit, p.out, p.err)
			}
			r.expire()
		}
	})
}

// A place that is replaced makes another instance, for which no shell waits.
func TestEarlyOfAReplacedPlace(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s, p := newScene(t, tier), newStarted()
		prepare(t, r, s.shell("true", p))
		place := filepath.Join(s.root, "protected")
		if err := os.Rename(place, place+"-moved"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(place, 0o755); err != nil {
			t.Fatal(err)
		}
		if p.begin(t, r, s.shell("ls protected", p)) {
			t.Error("a shell was used that sees the old place")
		}
		if p.Wait(); p.out.String() != "" {
			t.Errorf("it saw %q", p.out)
		}
	})
}

// expire ends all shells that wait, as if a minute had passed.
func (r *Runner) expire() {
	r.endEarly(func(*earlyShell) bool { return true })
	r.early.running.Wait()
}

func TestEarlyEnd(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		p := newStarted()
		var scenes []scene
		var pids []int
		for range manyEarly + 2 {
			s := newScene(t, tier)
			scenes, pids = append(scenes, s), append(pids, prepare(t, r, s.shell("true", p)).process.child.Pid)
		}
		if r.early.running.Wait(); r.Waiting() != manyEarly {
			t.Errorf("%d shells wait", r.Waiting())
		}
		if alive(pids[0]) || alive(pids[1]) {
			t.Error("more live than wait")
		}
		// They belong to no call: nothing is left behind by one that ends beside them.
		other := scenes[0].start(t, r, "true")
		if exit := other.Wait(); len(exit.LeftBehind) > 0 {
			t.Errorf("left behind: %+v", exit.LeftBehind)
		}
		r.expire()
		for _, pid := range pids {
			if alive(pid) {
				t.Errorf("%d still waits after its time", pid)
			}
		}
		last := scenes[0]
		dead := prepare(t, r, last.shell("true", p)).process
		if err := dead.child.Kill(); err != nil {
			t.Fatal(err)
		}
		awaitExit(dead.child.Pid)
		if p.begin(t, r, last.shell("echo instead", p)) {
			t.Error("a dead shell was used")
		}
		if exit := p.Wait(); exit.Code != 0 || p.out.String() != "instead\n" {
			t.Errorf("%+v, %q", exit, p.out)
		}
	})
}

// What a call has watched and kept is that call's, not that of the call before.
func TestEarlyBelongsToItsCall(t *testing.T) {
	r := newRunner(t)
	if got, err := r.Confinement(Policy{Tier: Full}); err != nil || got.Tier != Full {
		skip(t, "run this where users may make namespaces")
	}
	s, p := newScene(t, Full), newStarted()
	var mu sync.Mutex
	seen := map[string]bool{}
	note := func(call string) func(Alteration) {
		return func(a Alteration) {
			mu.Lock()
			defer mu.Unlock()
			seen[call+" "+filepath.Base(a.Path)] = true
		}
	}
	first, second := &Box{Runner: r, Policy: s.Policy, Before: note("first")}, &Box{Runner: r, Policy: s.Policy, Before: note("second")}
	like := s.shell("true", p)
	like.Policy = first.Ready().Policy
	prepare(t, r, like)
	c := s.shell("rm file; sleep 1000 & echo pid $!", p)
	c.Keep = func(_, left int, _ <-chan struct{}) int { return left }
	var err error
	if p.Process, err = second.Start(c); err != nil {
		t.Fatal(err)
	}
	if p.Report() == nil {
		t.Fatal("no shell waited")
	}
	<-p.Outlived()
	if kept := p.Main().Kept; len(kept) != 1 || kept[0].Name != "sleep 1000" {
		t.Errorf("kept: %+v", kept)
	}
	p.Stop()
	p.Wait()
	_ = p.Report().Close()
	mu.Lock()
	defer mu.Unlock()
	if !seen["second file"] || seen["first file"] {
		t.Errorf("reported: %v", seen)
	}
}

// TestTrialIsConfined: what stands in the place of bash is tried under the policy of the call.
func TestTrialIsConfined(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s, p := newScene(t, tier), newStarted()
		outside := filepath.Join(t.TempDir(), "outside")
		mine := filepath.Join(s.root, "bash")
		if err := os.WriteFile(mine, []byte("#!/bin/sh\necho x > inside\necho x > "+outside+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		c := s.shell("true", p)
		c.Path = mine
		r.prepare(c)
		r.early.running.Wait()
		if _, err := os.Stat(filepath.Join(s.root, "inside")); err != nil {
			t.Fatalf("it was not tried: %v", err)
		}
		if _, err := os.Stat(outside); err == nil {
			t.Error("it has written where the call may not")
		}
	})
}
