package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user without any rights, as whom TestAsNobody runs the tests of this file again.
const nobody = 65534

// A scene is a policy with the files that it speaks of.
type scene struct {
	Policy
	base, root string
}

func newScene(t testing.TB, tier Tier) scene {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "scene") // not in /tmp, which a sandbox has for itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	for _, dir := range []string{"root/protected", "root/hidden/inner", "root/.git/hooks", "tmp", "outside"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"root/file", "root/protected/file", "root/hidden/file", "root/hidden/inner/file", "root/secret", "outside/file"} {
		if err := os.WriteFile(filepath.Join(base, file), []byte(file+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(base, "root")
	return scene{base: base, root: root, Policy: Policy{
		Tier: tier,
		Places: []Place{
			{Path: root, Access: Write},
			{Path: "/tmp", Access: Write, Source: filepath.Join(base, "tmp")},
			{Path: filepath.Join(root, "protected"), Access: Read},
			{Path: filepath.Join(root, "hidden"), Access: Hidden},
			{Path: filepath.Join(root, "hidden/inner"), Access: Write},
			{Path: filepath.Join(root, "secret"), Access: Hidden},
			{Path: filepath.Join(root, ".git"), Access: Write},
			{Path: filepath.Join(root, ".git/hooks"), Access: Read},
			{Path: filepath.Join(root, "nothing"), Access: Read},
		},
		Absent: []string{filepath.Join(root, ".mcp.json")},
	}}
}

// run runs a script to its end.
func (s scene) run(t testing.TB, r *Runner, script string) (started, Exit) {
	t.Helper()
	p := s.start(t, r, script)
	return p, p.Wait()
}

func (s scene) start(t testing.TB, r *Runner, script string) started {
	t.Helper()
	p := started{out: newSink(), err: newSink()}
	var err error
	p.Process, err = r.Start(Command{
		ID: "call", Path: bash, Args: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: s.root,
		Env: Environ(os.Environ()), Stdout: p.out, Stderr: p.err, Policy: s.Policy,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tiers are those that work here, each under its name.
func tiers(t *testing.T, test func(t *testing.T, r *Runner, tier Tier)) {
	r := newRunner(t)
	for _, tier := range []Tier{Fast, Full} {
		t.Run(string(tier), func(t *testing.T) {
			if got, err := r.Confinement(Policy{Tier: tier}); err != nil || got.Tier != tier {
				skip(t, fmt.Sprintf("run this where the kernel has Landlock and lets users make namespaces: %v, %v", got, err))
			}
			test(t, r, tier)
		})
	}
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestConfined(t *testing.T) {
	tests := []struct {
		name, script string
		fast, full   string // what is printed; in Fast as the fallback for Full
	}{
		{"writes in the root", "echo new >file && cat file", "new\n", "new\n"},
		{"keeps what is outside", "echo new >../outside/file || cat " + "$OUTSIDE/file", "outside/file\n", "outside/file\n"},
		{"keeps what is protected", "echo new >protected/file; cat protected/file", "new\n", "root/protected/file\n"},
		{"keeps the way to it", "mv .git gone && echo moved", "moved\n", ""},
		{"hides", "cat secret hidden/file", "", ""},
		{"shows what is granted inside", "cat hidden/inner/file; echo >hidden/inner/new; ls hidden/inner", "root/hidden/inner/file\nfile\nnew\n", "root/hidden/inner/file\nfile\nnew\n"},
		{"has its own /tmp", "echo x >/tmp/x-$$ && echo made; rm -f /tmp/x-$$", "", "made\n"},
		{"sees its own processes", "kill -0 $PPID && echo there; ls -d /proc/$$ >/dev/null && echo own", "own\n", "there\nown\n"},
		{"has no rights", "grep -E 'Cap(Prm|Eff|Amb)|NoNew|Seccomp:' /proc/self/status | sort", capabilities, capabilities},
		{"has no sockets", "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo connected", "", ""},
		{"has its descriptors alone", `cd /proc/self/fd && echo *`, "0 1 2 3\n", "0 1 2 3\n"},
		{"mounts nothing", "mount -t tmpfs none protected || unshare -Ur true || echo no", "no\n", "no\n"},
		{"has devices", "echo x >/dev/null; head -c1 /dev/zero | wc -c; [ -e /dev/kmsg ] && echo kmsg", "1\nkmsg\n", "1\n"},
		{"is not the first process", "kill -TERM $$; echo survived", "", ""},
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				want := tt.full
				if tier == Fast {
					want = tt.fast
				}
				s := newScene(t, tier)
				p, _ := s.run(t, r, "PORT="+port+" OUTSIDE="+s.base+"/outside; "+tt.script)
				if p.out.String() != want {
					t.Errorf("%s\ngave %q, want %q; on stderr: %s", tt.script, p.out, want, p.err)
				}
			})
		}
	})
}

const capabilities = "CapAmb:\t0000000000000000\nCapEff:\t0000000000000000\nCapPrm:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"

// What only reads may change nothing at all, not even times.
func TestStrict(t *testing.T) {
	r := newRunner(t)
	s := newScene(t, Fast)
	s.Strict = true
	s.Places = []Place{{Path: s.root, Access: Read}, {Path: filepath.Join(s.root, "hidden"), Access: Hidden}}
	p, _ := s.run(t, r, "cat file; touch file; chmod 700 file; echo >new; cat hidden/file; cat "+s.base+"/outside/file; ls /")
	if p.out.String() != "root/file\n" {
		t.Errorf("printed %q; on stderr: %s", p.out, p.err)
	}
}

func TestDenials(t *testing.T) {
	tests := []struct {
		name, script string
		want         []Denial
	}{
		{"none", "echo >file; mkdir d; mv d e; rmdir e; ln -s x l; chmod 600 file; touch -d yesterday file; rm l; cat BASE/absent", nil},
		{"would fail anyhow", "mkdir /usr; rm BASE/absent/at/all; echo >BASE/absent/x; >/proc/self/comm", nil},
		{"protected", "echo >protected/file; echo >>protected/file", []Denial{{Operation: Writing, Target: "ROOT/protected/file", Count: 2}}},
		{"outside", "rm BASE/outside/file; mkdir BASE/outside/d", []Denial{
			{Operation: Writing, Target: "BASE/outside/file", Count: 1}, {Operation: Writing, Target: "BASE/outside/d", Count: 1},
		}},
		{"relative", "cd protected && rm file", []Denial{{Operation: Writing, Target: "ROOT/protected/file", Count: 1}}},
		{"through a link", "ln -s BASE/outside l; echo >l/file", []Denial{{Operation: Writing, Target: "ROOT/l/file", Count: 1}}},
		{"made where nothing was", "echo x >.mcp.json", []Denial{{Operation: Writing, Target: "ROOT/.mcp.json", Count: 1, MovedTo: "*"}}},
		{"addresses", "exec 3<>/dev/tcp/192.0.2.1/80; true", []Denial{{Operation: Connecting, Target: "192.0.2.1:80", Count: 1}}},
	}
	r := newRunner(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, Full)
			if c, err := r.Confinement(s.Policy); err != nil || c.Tier != Full {
				skip(t, "run this where users may make namespaces")
			}
			fill := strings.NewReplacer("BASE", s.base, "ROOT", s.root)
			_, exit := s.run(t, r, fill.Replace(tt.script))
			for i, d := range exit.Denials {
				if d.MovedTo != "" {
					if content, err := os.ReadFile(d.MovedTo); err != nil || string(content) != "x\n" {
						t.Errorf("what was taken away holds %q, %v", content, err)
					}
					exit.Denials[i].MovedTo = "*"
				}
			}
			for i := range tt.want {
				tt.want[i].Target = fill.Replace(tt.want[i].Target)
			}
			if !reflect.DeepEqual(exit.Denials, tt.want) {
				t.Errorf("%s\nwas denied %+v, want %+v", tt.script, exit.Denials, tt.want)
			}
		})
	}
}

// What is taken away is what stands at the path itself: a link on the way leads to what is none of the call's.
func TestNothingIsTakenThroughALink(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		s.Absent = append(s.Absent, filepath.Join(s.root, ".config/gh"), filepath.Join(s.root, ".husky"))
		if err := os.WriteFile(filepath.Join(s.base, "outside/gh"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		_, exit := s.run(t, r, "ln -s "+s.base+"/outside .config; mkdir .husky")
		if _, err := os.Stat(filepath.Join(s.base, "outside/gh")); err != nil {
			t.Errorf("it is gone: %v", err)
		}
		if !slices.ContainsFunc(exit.Denials, func(d Denial) bool { return d.Target == filepath.Join(s.root, ".husky") && d.MovedTo != "" }) {
			t.Errorf("denials %+v, want what was made taken away", exit.Denials)
		}
	})
}

// What the daemon writes itself while a process runs stays.
func TestSparedIsNotTaken(t *testing.T) {
	r := newRunner(t)
	s := newScene(t, Fast)
	if err := unix.Mkfifo(filepath.Join(s.root, "go"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := s.start(t, r, "echo ready; read -r _ <go")
	p.out.line(t, "ready")
	if err := os.WriteFile(s.Absent[0], nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.Spare(s.Absent[0])
	p.Stop()
	if exit := p.Wait(); len(exit.Denials) != 0 {
		t.Errorf("denials %+v", exit.Denials)
	}
	if _, err := os.Stat(s.Absent[0]); err != nil {
		t.Error(err)
	}
}

// A Runner may be closed while others start something: what was started has ended then, and nothing else is.
func TestCloseWhileStarting(t *testing.T) {
	for range 20 {
		r, err := New(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					p, err := r.Start(Command{ID: "c", Path: bash, Args: []string{"bash", "-c", "sleep 1000"}, Dir: "/", Stdout: io.Discard, Stderr: io.Discard})
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					all.Go(func() { p.Wait() })
				}
			})
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

// A cell outlives its processes, but not the places that it was made of.
func TestPlacesThatAreReplaced(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		for _, content := range []string{"first", "second"} {
			if err := os.RemoveAll(s.root); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(s.root, 0o755); err != nil {
				t.Fatal(err)
			}
			if p, _ := s.run(t, r, "echo "+content+" >file && cat file"); p.out.String() != content+"\n" {
				t.Errorf("printed %q; on stderr: %s", p.out, p.err)
			}
			if got, _ := os.ReadFile(filepath.Join(s.root, "file")); string(got) != content+"\n" {
				t.Errorf("the file holds %q", got)
			}
		}
	})
}

// What protects comes into force when there is something to protect.
func TestProtectionOfWhatAppears(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		if tier == Fast {
			return // protects nothing inside what is writable, and says so
		}
		s := newScene(t, tier)
		s.run(t, r, "true")
		if err := os.Mkdir(filepath.Join(s.root, "nothing"), 0o755); err != nil {
			t.Fatal(err)
		}
		if p, _ := s.run(t, r, "echo >nothing/x && echo written"); p.out.String() != "" {
			t.Errorf("printed %q", p.out)
		}
	})
}

func TestStartErrors(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		absent := filepath.Join(t.TempDir(), "absent")
		for _, c := range []Command{
			{Path: absent, Args: []string{"x"}, Dir: "/"},
			{Path: bash, Args: []string{"bash"}, Dir: absent},
			{Path: bash, Args: []string{"bash", "a\x00b"}, Dir: "/"},
			{Path: "bash", Args: []string{"bash"}, Dir: "/"},
		} {
			c.ID, c.Policy = "c", s.Policy
			if p, err := r.Start(c); err == nil {
				t.Errorf("%+v was started", c)
				p.Wait()
			} else {
				t.Log(err)
			}
		}
		if p, exit := s.run(t, r, "echo still"); exit.Code != 0 || p.out.String() != "still\n" {
			t.Errorf("afterwards: %+v, %q", exit, p.out)
		}
	})
}

func TestUnavailable(t *testing.T) {
	r := newRunner(t)
	r.host.landlock, r.host.full = 0, unix.EPERM
	s := newScene(t, Full)
	if _, err := r.Start(Command{ID: "c", Path: bash, Args: []string{"bash"}, Dir: "/", Policy: s.Policy}); err == nil {
		t.Error("it was started")
	} else if _, ok := err.(*UnavailableError); !ok {
		t.Errorf("a %T: %v", err, err)
	}
	s.Optional = true
	if p, _ := s.run(t, r, "echo free"); p.out.String() != "free\n" {
		t.Errorf("printed %q", p.out)
	}
	if c, err := r.Confinement(s.Policy); err != nil || c.Tier != None || len(c.NotCovered) < 2 {
		t.Errorf("confinement %+v, %v", c, err)
	}
}

// ended reports whether processes are left in the namespace that the main process had.
func ended(t testing.TB, ns string) bool {
	t.Helper()
	for _, m := range scan() {
		if link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.pid)); err == nil && link == ns {
			t.Errorf("process %d (%s) is alive", m.pid, m.name())
			return false
		}
	}
	return true
}

func TestNothingOutlivesConfinement(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		for name, script := range survivors {
			t.Run(name, func(t *testing.T) {
				s := newScene(t, tier)
				s.Places = slices.DeleteFunc(s.Places, func(p Place) bool { return p.Access == Hidden }) // beside those new files cannot be read in Fast
				for _, stop := range []bool{false, true} {
					p := s.start(t, r, "cd $(mktemp -d -p "+s.root+"); "+script+"; echo ready; sleep 1000")
					p.out.line(t, "ready")
					ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.child.Pid))
					if err != nil {
						t.Fatal(err)
					}
					if stop {
						p.Stop()
					} else {
						p.Process.child.Kill()
					}
					exit := p.Wait()
					if exit.Stuck != nil {
						t.Errorf("stuck: %v", exit.Stuck)
					}
					if tier == Full {
						ended(t, ns)
						continue
					}
					for _, pid := range pids(t, p.out.String()) {
						if alive(pid) {
							t.Errorf("process %d is alive", pid)
						}
					}
				}
			})
		}
	})
}

// The way out leads through what the outlet serves, and nowhere else.
func TestOutlet(t *testing.T) {
	served := make(chan Network, 4)
	outlet := func(l net.Listener, clients Clients) io.Closer {
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _ := clients(r.RemoteAddr, "")
			served <- c.Network
			fmt.Fprintln(w, "through")
		})}
		go func() { _ = s.Serve(l) }()
		return s
	}
	r, err := New(t.TempDir(), outlet)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, tier := range []Tier{Fast, Full} {
		s := newScene(t, tier)
		s.Network.Allowed = []string{"example.com"}
		if c, err := r.Confinement(s.Policy); err != nil || c.Tier != tier {
			skip(t, "run this where the kernel has Landlock and lets users make namespaces")
		}
		p, _ := s.run(t, r, `p=${HTTP_PROXY##*[@/]}; exec 3<>/dev/tcp/${p%:*}/${p#*:}; printf 'GET / HTTP/1.0\r\n\r\n' >&3; grep through <&3; exec 4<>/dev/udp/127.0.0.1/9 && echo udp`)
		want := "through\n"
		if tier == Full {
			want += "udp\n"
		}
		var n Network
		if len(served) > 0 {
			n = <-served
		}
		if p.out.String() != want || !slices.Equal(n.Allowed, s.Network.Allowed) {
			t.Errorf("%s printed %q, want %q; on stderr: %s", tier, p.out, want, p.err)
		}
	}
}

// The tests of this file, as a user without rights.
func TestAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		return // they were just run so
	}
	dir, err := os.MkdirTemp("/var/tmp", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary, "-test.v", "-test.timeout=120s", "-test.run=^(TestConfined|TestStrict|TestDenials|TestPlacesThatAreReplaced|TestProtectionOfWhatAppears|TestStartErrors|TestNothingOutlivesConfinement|TestOutlet|TestManyStarts|TestReports)$")
	c.Dir = dir
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
