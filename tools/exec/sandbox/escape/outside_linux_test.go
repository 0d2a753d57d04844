// What lives outside while the probe runs: a process, listeners, a terminal, shared memory; and what they saw. They do not
// know of verdicts.

package escape

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// firstSignal is the first of the signals by which doors are distinguished: one that neither C nor
// Go uses itself.
const firstSignal = 40

// evidence is what was seen outside, by the door's slug. It is safe for concurrent use.
type evidence struct {
	mu   sync.Mutex
	what map[string]string
}

func (e *evidence) note(slug, what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.what == nil {
		e.what = make(map[string]string)
	}
	e.what[slug] = what
}

func (e *evidence) of(slug string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.what[slug]
}

// An outsider is the process outside.
type outsider struct {
	c     *exec.Cmd
	stdin io.Closer
	said  chan string // what it has said, when it has ended
}

// processes starts the process outside. It dies with the test, and so does not outlive it.
func (s *Scene) processes(t testing.TB) {
	t.Helper()
	c := exec.Command(s.Program, "victim")
	c.Dir = s.Outside
	c.Env = []string{"TOOLD_VICTIM_SECRET=" + s.secret, "TOOLD_VICTIM_BOUND=" + s.Bound}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.credential()}
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	check(t, err)
	stdout, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	s.victim = &outsider{c, stdin, make(chan string, 1)}
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadBytes('\n')
	check(t, err)
	check(t, json.Unmarshal(first, &s.Victim))
	go func() { // ends with the process, which the cleanup ends
		rest, _ := io.ReadAll(lines)
		s.victim.said <- string(rest)
	}()
	environ, err := os.ReadFile("/proc/self/environ")
	check(t, err)
	s.Starter = scene.Process{PID: os.Getpid(), EnvironSum: scene.Sum(environ)}
}

func (s *Scene) credential() *syscall.Credential {
	if s.UID == os.Geteuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.UID)}
}

// end lets the process outside say what it got, and waits for it.
func (o *outsider) end() string {
	_ = o.c.Process.Signal(syscall.SIGCONT) // a door may have stopped it
	_ = o.stdin.Close()
	said := <-o.said
	_ = o.c.Wait()
	return said
}

// A channel is a listener; last is closed when it has read its own last message, and so all before.
type channel struct {
	network, address string
	last             chan struct{}
}

// listeners opens what must not be reached, each with a goroutine that ends when the test closes it.
func (s *Scene) listeners(t testing.TB) {
	t.Helper()
	streams := []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"unix", s.Stream}, {"unix", "@" + s.Abstract}, {"unix", s.Sockets + "/toold.sock"},
	}
	if os.Geteuid() == 0 {
		s.System = "/run/toold-" + s.Nonce + ".sock"
		streams = append(streams, struct{ network, address string }{"unix", s.System})
	}
	for _, l := range streams {
		listener, err := net.Listen(l.network, l.address)
		check(t, err)
		c := s.channel(l.network, listener.Addr())
		done := make(chan struct{})
		go func() { defer close(done); s.accept(listener, c) }()
		t.Cleanup(func() { listener.Close(); <-done })
	}
	for _, l := range []struct{ network, address string }{
		{"udp", "127.0.0.1:0"}, {"unixgram", s.Datagram}, {"unixgram", "@" + s.AbstractDatagram},
	} {
		packets, err := net.ListenPacket(l.network, l.address)
		check(t, err)
		c := s.channel(l.network, packets.LocalAddr())
		done := make(chan struct{})
		go func() { defer close(done); s.receive(packets, c) }()
		t.Cleanup(func() { packets.Close(); <-done })
	}
	for _, path := range []string{s.Stream, s.Datagram, s.Sockets + "/toold.sock", s.System} {
		if path != "" {
			check(t, os.Lchown(path, s.UID, -1))
		}
	}
	check(t, os.Link(s.Stream, s.StreamPlanted))
	s.terminal(t)
	s.pipes(t)
}

func (s *Scene) channel(network string, address net.Addr) channel {
	switch network {
	case "tcp":
		s.TCP = address.String()
	case "udp":
		s.UDP = address.String()
	}
	c := channel{network, address.String(), make(chan struct{})}
	s.waiting = append(s.waiting, c)
	return c
}

// accept serves one after the other, so that the last one comes after all others.
func (s *Scene) accept(l net.Listener, c channel) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		b, _ := io.ReadAll(io.LimitReader(conn, 1<<16))
		_ = conn.Close()
		s.heard(b, c)
	}
}

func (s *Scene) receive(p net.PacketConn, c channel) {
	b := make([]byte, 1<<16)
	for {
		n, _, err := p.ReadFrom(b)
		if err != nil {
			return
		}
		s.heard(b[:n], c)
	}
}

func (s *Scene) heard(b []byte, c channel) {
	for said := range strings.FieldsSeq(string(b)) {
		if said == s.secret {
			close(c.last)
			continue
		}
		s.seen.note(said, c.network+" "+c.address+" heard it")
	}
}

// drain waits until each listener has read what was sent before.
func (s *Scene) drain() error {
	for _, c := range s.waiting {
		conn, err := net.Dial(c.network, c.address)
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte(s.secret + "\n"))
		if err := errors.Join(err, conn.Close()); err != nil {
			return err
		}
		<-c.last
	}
	return nil
}

// terminal is another process's, though the same user's.
func (s *Scene) terminal(t testing.TB) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // nothing may wait for it
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(t, err)
	check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	s.leader, s.Terminal = fd, fmt.Sprintf("/dev/pts/%d", n)
	other, err := os.OpenFile(s.Terminal, os.O_RDWR|unix.O_NOCTTY, 0) // while no process has it open, reading it ends
	check(t, err)
	t.Cleanup(func() { other.Close() })
	check(t, os.Chown(s.Terminal, s.UID, -1))
}

// pipes makes two with names, and keeps both open, so that opening them does not wait.
func (s *Scene) pipes(t testing.TB) {
	t.Helper()
	hold := func(name string) (path string, fd int) {
		path = filepath.Join(filepath.Dir(s.Stream), name)
		check(t, unix.Mkfifo(path, 0o600))
		check(t, os.Chown(path, s.UID, -1))
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		check(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return path, fd
	}
	s.PipeIn, s.piped = hold("pipe-in")
	var out int
	s.PipeOut, out = hold("pipe-out")
	_, err := unix.Write(out, []byte(s.secret))
	check(t, err)
}

// shared makes a System V segment that holds the secret, and chooses the keys for what doors will make.
func (s *Scene) shared(t testing.TB) {
	t.Helper()
	s.Shared = int(binary.LittleEndian.Uint32(random(4))>>2) + 1
	s.Semaphores, s.Messages = s.Shared+2, s.Shared+3
	id, err := unix.SysvShmGet(s.Shared, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	check(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	b, err := unix.SysvShmAttach(id, 0, 0)
	check(t, err)
	copy(b, s.secret)
	check(t, unix.SysvShmDetach(b))
}
