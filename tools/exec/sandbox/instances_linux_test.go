package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// However many policies there are, what is kept for them stays bounded.
func TestManyPolicies(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		own := len(s.Places)
		var full remainder
		for n := range 100 {
			s.Places = append(s.Places[:own:own], Place{Path: filepath.Join(s.root, fmt.Sprint("nothing", n)), Access: Read})
			if p, exit := s.run(t, r, "echo there"); exit.Code != 0 || p.out.String() != "there\n" {
				t.Fatalf("policy %d: %+v: %s", n, exit, p.err)
			}
			if n == manyInstances {
				full = remains(t)
			}
		}
		remains(t).within(t, full)
		if kept := len(r.host.instances.all); kept > manyInstances {
			t.Errorf("%d cells are kept, want at most %d", kept, manyInstances)
		}
	})
}

// closing reports that it is closed.
type closing struct {
	net.Listener
	closed chan string
}

func (c closing) Close() error {
	c.closed <- c.Addr().String()
	return c.Listener.Close()
}

// A cell that nobody uses goes away by itself, one in use does not, and neither its own end nor another's disturbs what runs.
func TestCellsGoAway(t *testing.T) {
	for _, tier := range []Tier{Fast, Full} {
		t.Run(string(tier), func(t *testing.T) {
			closed := make(chan string, 4)
			var outlets atomic.Int32
			r, err := New(t.TempDir(), func(l net.Listener, _ Clients) io.Closer {
				outlets.Add(1)
				return closing{l, closed}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			r.host.instances.kept = time.Millisecond
			s, other := newScene(t, tier), newScene(t, tier)
			s.Network.Allowed, other.Network.Allowed = []string{"example.com"}, []string{"example.com"}
			if c, err := r.Confinement(s.Policy); err != nil || c.Tier != tier {
				skip(t, fmt.Sprintf("run this where the kernel has Landlock and lets users make namespaces: %v, %v", c, err))
			}
			gate := filepath.Join(s.root, "gate")
			if err := unix.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			p := s.start(t, r, "echo ready; read -r line <gate; echo $line >file; cat file")
			p.out.line(t, "ready")
			other.run(t, r, "true")
			<-closed // the other's: it is left
			if len(closed) > 0 {
				t.Error("a cell was closed while a process was in it")
			}
			if err := os.WriteFile(gate, []byte("on\n"), 0); err != nil {
				t.Fatal(err)
			}
			if exit := p.Wait(); exit.Code != 0 || p.out.String() != "ready\non\n" {
				t.Errorf("exit %+v, printed %q; on stderr: %s", exit, p.out, p.err)
			}
			<-closed
			if p, _ := s.run(t, r, "cat file"); p.out.String() != "on\n" {
				t.Errorf("in a cell that was made again, printed %q; on stderr: %s", p.out, p.err)
			}
			<-closed
		})
	}
}

// A session's network has one proxy, whatever the policies are, and keeps it as long as a cell is left.
func TestOneProxy(t *testing.T) {
	closed := make(chan string, 8)
	var outlets atomic.Int32
	r, err := New(t.TempDir(), func(l net.Listener, _ Clients) io.Closer {
		outlets.Add(1)
		return closing{l, closed}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := newScene(t, Full)
	if c, err := r.Confinement(s.Policy); err != nil || c.Tier != Full {
		skip(t, fmt.Sprintf("run this where the kernel has Landlock and lets users make namespaces: %v, %v", c, err))
	}
	r.host.instances.kept, s.Session = -1, "one" // none is kept
	gate := filepath.Join(s.root, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Network.Allowed = []string{"example.com"}
	p := s.start(t, r, "echo ready; read -r line <gate")
	p.out.line(t, "ready")
	for n := range 3 {
		s.Network.Allowed = []string{fmt.Sprintf("%d.example.com", n)}
		s.run(t, r, "true")
	}
	if len(closed) > 0 {
		t.Error("the proxy was closed under a process that runs")
	}
	if err := os.WriteFile(gate, []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	<-closed
	if n := outlets.Load(); n != 1 {
		t.Errorf("there were %d proxies", n)
	}
}

// What runs has its cell's namespaces itself: they may be closed under it.
func TestCellsClosedUnderAProcess(t *testing.T) {
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		s := newScene(t, tier)
		gate := filepath.Join(s.root, "gate")
		if err := unix.Mkfifo(gate, 0o600); err != nil {
			t.Fatal(err)
		}
		p := s.start(t, r, "echo ready; read -r line <gate; echo $line >file; cat file; echo x >protected/file; cat hidden/file secret")
		p.out.line(t, "ready")
		r.host.instances.close()
		if err := os.WriteFile(gate, []byte("on\n"), 0); err != nil {
			t.Fatal(err)
		}
		if exit := p.Wait(); p.out.String() != "ready\non\n" {
			t.Errorf("exit %+v, printed %q; on stderr: %s", exit, p.out, p.err)
		}
	})
}
