// Everything at once for long: clients that send mixed turns, vanish, stall, cancel, interrupt and throw turns away, on a
// daemon whose memory, descriptors and goroutines are watched.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/bench/ledger"
	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// soaking is one run: what its clients count together.
type soaking struct {
	daemon                           *server
	until                            time.Time
	turns, calls, records, disturbed atomic.Int64
}

func soak(ctx context.Context, span time.Duration, clients int, seed uint64, out io.Writer) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d, err := startServer(self, "soak") // this program serves, so that it can look for goroutines at its end
	if err != nil {
		return err
	}
	defer d.kill()
	s := &soaking{daemon: d, until: time.Now().Add(span)}
	fmt.Fprintf(out, "seed %d, %d clients, %s\n%8s %8s %8s %10s %8s %8s %8s\n", seed, clients, span, "after", "turns", "calls", "disturbed", "MiB", "files", "threads")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	for n := range clients {
		working.Go(func() {
			if err := s.client(ctx, n, rand.New(rand.NewPCG(seed, uint64(n)))); err != nil {
				cancel(fmt.Errorf("client %d: %w", n, err))
			}
		})
	}
	ended := make(chan struct{})
	go func() { working.Wait(); close(ended) }()
	if err := s.watch(out, ended, span/20); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		log, _ := os.ReadFile(filepath.Join(d.dir, "daemon.log"))
		return fmt.Errorf("the daemon did not end in order: %w\n%s", err, log[max(0, len(log)-20000):])
	}
	fmt.Fprintf(out, "%d turns, %d calls, %d records: no violation, no goroutine left\n", s.turns.Load(), s.calls.Load(), s.records.Load())
	return os.RemoveAll(d.dir)
}

// watch prints what the daemon takes up until the clients have ended. The caller judges whether it is flat.
func (s *soaking) watch(out io.Writer, ended <-chan struct{}, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case <-ended:
			return nil
		case <-tick.C:
		}
		pid := s.daemon.cmd.Process.Pid
		memory, err := wire.Figure(pid, "VmRSS")
		if err != nil {
			return err
		}
		threads, err := wire.Figure(pid, "Threads")
		if err != nil {
			return err
		}
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%8s %8d %8d %10d %8d %8d %8d\n", time.Since(began).Round(time.Second), s.turns.Load(), s.calls.Load(), s.disturbed.Load(), memory>>10, len(files), threads)
	}
}

// client does one session after the other until the time is over.
func (s *soaking) client(ctx context.Context, number int, chance *rand.Rand) error {
	dir := filepath.Join(s.daemon.root(), fmt.Sprint(number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for n := 0; time.Now().Before(s.until) && ctx.Err() == nil; n++ {
		if err := s.session(ctx, fmt.Sprintf("s%d-%d", number, n), dir, chance); err != nil {
			return err
		}
	}
	return nil
}

// session does some turns in one session, each disturbed in some way or none, and closes it.
func (s *soaking) session(ctx context.Context, name, dir string, chance *rand.Rand) error {
	l := ledger.New()
	defer func() { s.records.Add(int64(l.Last())); s.calls.Add(int64(len(l.Calls()))) }()
	for n := range 1 + chance.IntN(20) {
		if err := s.turn(ctx, name, fmt.Sprintf("turn-%d", n), dir, l, chance); err != nil {
			return fmt.Errorf("session %s, turn %d: %w", name, n, err)
		}
		s.turns.Add(1)
	}
	_, err := s.daemon.conn.Sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: name})
	return err
}

// turn sends a turn, disturbs it, and sees it to its end, attached again if need be.
func (s *soaking) turn(ctx context.Context, session, name, dir string, l *ledger.Ledger, chance *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	uses := s.mixed(dir, chance)
	for {
		c, err := s.daemon.attach(ctx, session, l, tooldv1.Role_ROLE_MAIN)
		if err != nil {
			return err
		}
		err = s.attempt(c, name, uses, chance)
		c.HangUp()
		if err == nil || !errors.Is(err, errDisturbed) {
			return err
		}
	}
}

// errDisturbed means that the client has left before the end of the turn.
var errDisturbed = errors.New("disturbed")

// attempt sends the turn, again if it was sent before, and receives until it has ended or the client leaves.
func (s *soaking) attempt(c *client, name string, uses []use, chance *rand.Rand) error {
	leave := false
	if err := c.send(name, uses); err != nil && status.Code(err) != codes.Canceled {
		return err
	}
	switch chance.IntN(8) {
	case 0: // vanishes in the middle
		leave = true
	case 1: // does not read for a while, which is the point
		<-time.After(time.Duration(chance.IntN(300)) * time.Millisecond)
	case 2:
		_ = c.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{ToolUseId: uses[chance.IntN(len(uses))].id}}})
	case 3:
		_ = c.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{}}})
	case 4:
		_ = c.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{TurnId: name}}})
	case 5:
		_ = c.CloseSend()
	default:
		return c.settle(name, uses)
	}
	s.disturbed.Add(1)
	if !leave {
		err := c.settle(name, uses)
		if errors.Is(err, io.EOF) {
			return errDisturbed
		}
		return err
	}
	for n := chance.IntN(20); n > 0 && c.missing(name, uses) != ""; n-- {
		if _, err := c.receive(); err != nil {
			return err
		}
	}
	return errDisturbed
}

// mixed is a turn of some calls of all kinds.
func (s *soaking) mixed(dir string, chance *rand.Rand) (uses []use) {
	file := filepath.Join(dir, fmt.Sprintf("f%d", chance.IntN(5)))
	bash := func(command string) use {
		return use{name: "Bash", input: map[string]any{"command": "cd " + dir + " && " + command}}
	}
	kinds := []use{
		{name: "Read", input: map[string]any{"file_path": file}},
		{name: "LS", input: map[string]any{"path": dir}},
		{name: "Glob", input: map[string]any{"pattern": "*", "path": dir}},
		{name: "Grep", input: map[string]any{"pattern": "x", "path": dir}},
		{name: "Write", input: map[string]any{"file_path": file, "content": strings.Repeat("x y z\n", chance.IntN(4000))}},
		{name: "Edit", input: map[string]any{"file_path": file, "old_string": "x", "new_string": "y", "replace_all": true}},
		{name: "Nope", input: map[string]any{}},
		bash("echo done"), bash("cat f* | wc -c"), bash("seq 20000"), bash("sleep 0.05"), bash("false"),
		bash("head -c 300000 /dev/zero | tr '\\0' x"), bash("setsid sleep 0.2 & echo left"),
	}
	for n := range 1 + chance.IntN(8) {
		u := kinds[chance.IntN(len(kinds))]
		u.id = fmt.Sprintf("c%d", n)
		uses = append(uses, u)
	}
	if chance.IntN(10) == 0 {
		task := bash("sleep 0.5; echo behind")
		task.id, task.input["run_in_background"] = "task", true
		uses = append(uses, task)
	}
	return uses
}
