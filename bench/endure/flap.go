// A client that is killed and started again and again ends with the same records as one that never left.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/toold/toold/bench/ledger"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const flappingSession = "flapping"

// flap kills a client every so often for a while, and compares what it has come to with what a companion has seen that
// stayed.
func flap(ctx context.Context, binary string, span, every time.Duration, out io.Writer) (err error) {
	d, err := startServer(binary, "flap")
	if err != nil {
		return err
	}
	defer func() { d.kill(); err = errors.Join(err, os.RemoveAll(d.dir)) }()
	stays, err := d.stay(ctx)
	if err != nil {
		return err
	}
	kills, err := d.killClients(ctx, span, every)
	if err != nil {
		return err
	}
	came, err := remembered(d.memory())
	if err != nil {
		return err
	}
	if err := stays.wait(came.Last()); err != nil {
		return err
	}
	if n := came.Differs(stays.ledger); n > 0 {
		return violation{fmt.Errorf("record %d of the client that was killed is not that of the one that stayed", n)}
	}
	fmt.Fprintf(out, "%d kills of the client, %d records, %d calls: the same as of the one that stayed\n", kills, came.Last(), len(came.Calls()))
	return nil
}

// A steady client reads on a goroutine of its own. Its ledger is that one's until wait has returned.
type steady struct {
	*client
	seen chan uint64 // number of the newest record; the newest wins
	done chan error
}

// stay attaches a companion that never leaves. The session is there already: it is made first.
func (d *server) stay(ctx context.Context) (*steady, error) {
	first, err := d.attach(ctx, flappingSession, ledger.New(), tooldv1.Role_ROLE_MAIN)
	if err != nil {
		return nil, err
	}
	if _, err := first.receive(); err != nil {
		return nil, err
	}
	first.HangUp()
	c, err := d.attach(ctx, flappingSession, ledger.New(), tooldv1.Role_ROLE_COMPANION)
	if err != nil {
		return nil, err
	}
	s := &steady{client: c, seen: make(chan uint64, 1), done: make(chan error, 1)}
	go func() { s.done <- s.read() }()
	return s, nil
}

func (s *steady) read() error {
	for {
		if _, err := s.receive(); err != nil {
			return err
		}
		select {
		case <-s.seen:
		default:
		}
		s.seen <- s.ledger.Last()
	}
}

// wait returns when the client has seen the record of that number, and has left.
func (s *steady) wait(last uint64) error {
	late := time.After(patience)
	for {
		select {
		case n := <-s.seen:
			if n >= last {
				s.HangUp()
				var broken violation
				if err := <-s.done; errors.As(err, &broken) {
					return broken
				}
				return nil
			}
		case err := <-s.done:
			return err
		case <-late:
			return violation{fmt.Errorf("the client that stayed has not seen record %d", last)}
		}
	}
}

func (d *server) memory() string { return filepath.Join(d.dir, "client") }

// killClients runs one client after the other; the last one is left to finish its turn.
func (d *server) killClients(ctx context.Context, span, every time.Duration) (kills int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for until := time.Now().Add(span); ; kills++ {
		limit, turns, last := every, "1000000", time.Now().After(until)
		if last {
			limit, turns = patience, "1"
		}
		life, kill := context.WithTimeout(ctx, limit)
		said, err := exec.CommandContext(life, self, "flapping", d.socket(), d.root(), d.memory(), turns).CombinedOutput()
		killed := life.Err() != nil
		kill()
		switch {
		case last && err == nil:
			return kills, nil
		case last && killed:
			return kills, violation{errors.New("the last client did not come to the end of a turn")}
		case err == nil || !killed:
			return kills, fmt.Errorf("the client ended by itself: %w\n%s", err, said)
		}
	}
}

// flapping is the client that is killed: it goes on where the one before it has stopped, by what that has written down.
func flapping(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: endure flapping SOCKET ROOT MEMORY TURNS")
	}
	turns, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	d := &server{dir: filepath.Dir(args[0])}
	if err := d.connect(); err != nil {
		return err
	}
	l, err := remembered(args[2])
	if err != nil {
		return err
	}
	memory, err := os.OpenFile(args[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer memory.Close()
	c, err := d.attach(ctx, flappingSession, l, tooldv1.Role_ROLE_MAIN)
	if err != nil {
		return err
	}
	defer c.HangUp()
	for n := ended(l); turns > 0; n, turns = n+1, turns-1 {
		if err := c.turnOf(n, memory); err != nil {
			return err
		}
	}
	return nil
}

// ended is how many of the client's turns have ended.
func ended(l *ledger.Ledger) (n int) {
	for len(l.Results(turnName(n))) == len(flapUses()) {
		n++
	}
	return n
}

func turnName(n int) string { return "turn-" + strconv.Itoa(n) }

// turnOf sends a turn, perhaps again, and writes down what comes until it has ended.
func (c *client) turnOf(n int, memory io.Writer) error {
	uses := flapUses()
	if err := c.send(turnName(n), uses); err != nil {
		return err
	}
	for len(c.ledger.Results(turnName(n))) < len(uses) || c.ledger.Settled() != nil {
		before := c.ledger.Last()
		event, err := c.receive()
		if err != nil {
			return err
		}
		if c.ledger.Last() > before {
			if _, err := protodelim.MarshalTo(memory, event); err != nil {
				return err
			}
		}
	}
	return nil
}

// flapUses is a turn of everything that makes records of some kind.
func flapUses() []use {
	return []use{
		{"list", "LS", map[string]any{"path": "/"}},
		{"print", "Bash", map[string]any{"command": "seq 3000; echo x >> count"}},
		{"fail", "Read", map[string]any{"file_path": "/proc/nowhere"}},
		{"wrong", "Nope", map[string]any{}},
		{"wait", "Bash", map[string]any{"command": "sleep 0.05"}},
	}
}

// remembered makes a ledger of what a client has written down. What a blow has torn is left out, and cut off.
func remembered(file string) (*ledger.Ledger, error) {
	l := ledger.New()
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	whole := int64(0)
	for r := bytes.NewReader(data); ; {
		var event tooldv1.ExecuteResponse
		if protodelim.UnmarshalFrom(r, &event) != nil {
			return l, os.Truncate(file, whole)
		}
		if err := l.See(&event); err != nil {
			return nil, violation{err}
		}
		whole = int64(len(data)) - int64(r.Len())
	}
}
