package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const serving = `exec python3 -u -c '
import socket
for n in [%s]:
    s = socket.create_server(n, family=socket.AF_INET6 if ":" in n[0] else socket.AF_INET)
    print("port", s.getsockname()[1])
    c, _ = s.accept()
    c.sendall(b"hello from " + n[0].encode()); c.close()
    s.close()
    print("closed")
input()'`

// TestListening: a port is listed as long as a process listens on it, whatever its address in the sandbox is, and the daemon
// connects to it there.
func TestListening(t *testing.T) {
	r := newRunner(t)
	if got, err := r.Confinement(Policy{Tier: Full}); err != nil || got.Tier != Full {
		skip(t, fmt.Sprintf("run this where users can make namespaces: %v, %v", got, err))
	}
	s := newScene(t, Full)
	s.Session = "listening"
	addresses := []string{"127.0.0.1", "0.0.0.0", "::1", "::", "127.84.3.1"}
	script := make([]string, len(addresses))
	for i, a := range addresses {
		script[i] = fmt.Sprintf(`("%s", %d)`, a, 8765+i)
	}
	p := s.start(t, r, fmt.Sprintf(serving, strings.Join(script, ", ")))
	for i, a := range addresses {
		<-p.Listened()
		want := []Listening{{8765 + i, p.Listening()[0].Program}}
		if got := p.Listening(); !slices.Equal(got, want) || !strings.Contains(got[0].Program, "python3 -u -c") {
			t.Fatalf("%s: listed is %v, want %v", a, got, want)
		}
		c, err := p.Dial(t.Context(), 8765+i)
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		text, err := io.ReadAll(c)
		_ = c.Close()
		if err != nil || string(text) != "hello from "+a {
			t.Errorf("%s answers %q, %v", a, text, err)
		}
	}
	p.Stop()
	p.Wait()
	if left := p.Listening(); len(left) != 0 {
		t.Errorf("after the end %v is listed", left)
	}
	if c, err := p.Dial(t.Context(), 8765); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end: %v, %v", c, err)
	}
}

// TestListeningMeanwhile: a port on which a process begins to listen while the ports are listed is not forgotten.
func TestListeningMeanwhile(t *testing.T) {
	r := newRunner(t)
	if got, err := r.Confinement(Policy{Tier: Full}); err != nil || got.Tier != Full {
		skip(t, fmt.Sprintf("run this where users can make namespaces: %v, %v", got, err))
	}
	s := newScene(t, Full)
	s.Session = "listening"
	const ports = 60
	p := s.start(t, r, fmt.Sprintf(`exec python3 -c '
import socket, time
all = [socket.create_server(("127.0.0.1", 8000 + n)) for n in range(%d)]
open("%s/all", "w").close()
time.sleep(1000)'`, ports, s.root))
	for {
		_ = p.Listening()
		if _, err := os.Stat(filepath.Join(s.root, "all")); err == nil {
			break
		}
	}
	if list := p.Listening(); len(list) != ports {
		t.Errorf("%d ports are listed, want %d", len(list), ports)
	}
	p.Stop()
	p.Wait()
}

func BenchmarkDial(b *testing.B) {
	r := newRunner(b)
	s := newScene(b, Full)
	p := s.start(b, r, `exec python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 8765), backlog=1000)
while True: s.accept()[0].close()'`)
	defer p.Wait()
	defer p.Stop()
	<-p.Listened()
	for b.Loop() {
		c, err := p.Dial(b.Context(), 8765)
		if err != nil {
			b.Fatal(err)
		}
		_ = c.Close()
	}
}
