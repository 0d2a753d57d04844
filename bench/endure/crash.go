// The daemon is killed at every record of a scripted turn, and at random times under load, and started again on what it
// has left. Each time: every call has one result, nothing ran twice or before it was recorded, no file is torn, and
// nothing of the dead daemon is alive.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/bench/ledger"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	// roundsOfState is how many kills one state directory lives through.
	roundsOfState = 25
	// patience is how long what has to happen may take before it counts as never.
	patience = 60 * time.Second
	// loaded is how many sessions are at work when the daemon is killed under load.
	loaded = 4
)

// tally is what a run has come to.
type tally struct {
	kills, records int
	outcomes       map[string]int
}

func crash(ctx context.Context, binary string, seed uint64, from, kills int, out io.Writer) (err error) {
	t := tally{outcomes: map[string]int{}}
	defer func() { fmt.Fprintln(out, t) }()
	fmt.Fprintf(out, "seed %d\n", seed)
	for first := from; first < from+kills; first += roundsOfState {
		if err := t.house(ctx, binary, seed, first, min(roundsOfState, from+kills-first)); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d kills\n", t.kills)
	}
	return nil
}

func (t tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d kills, %d records seen; results:", t.kills, t.records)
	for _, outcome := range slices.Sorted(maps.Keys(t.outcomes)) {
		fmt.Fprintf(&b, " %d %s", t.outcomes[outcome], outcome)
	}
	return b.String()
}

// house kills one daemon after the other on one state directory.
func (t *tally) house(ctx context.Context, binary string, seed uint64, first, kills int) (err error) {
	d, err := startServer(binary, "crash")
	if err != nil {
		return err
	}
	for n := first; n < first+kills; n++ {
		if err := t.round(ctx, d, seed, n); err != nil {
			d.kill()
			return fmt.Errorf("kill %d (repeat: endure crash -seed %d -from %d -kills 1): %w\nwhat is left is in %s", n, seed, n, err, d.dir)
		}
	}
	if err := d.stop(); err != nil {
		return fmt.Errorf("the daemon did not end in order: %w", err)
	}
	return os.RemoveAll(d.dir)
}

// A customer is a session with a turn to be done.
type customer struct {
	tag    string
	dir    string
	turn   string
	sleeps string // what stands in the command line of its long processes
	uses   []use
	ledger *ledger.Ledger
}

// round kills the daemon once. Rounds take turns: one session that is killed at a certain record, several at a time.
func (t *tally) round(ctx context.Context, d *server, seed uint64, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	chance := rand.New(rand.NewPCG(seed, uint64(n)))
	customers := make([]*customer, 1+(loaded-1)*(n%2))
	for i := range customers {
		c, err := newCustomer(d, fmt.Sprintf("k%d-%d", n, i), n*loaded+i)
		if err != nil {
			return err
		}
		customers[i] = c
	}
	if err := d.interrupted(ctx, customers, n, chance); err != nil {
		return err
	}
	t.kills++
	if err := d.start(); err != nil {
		return err
	}
	for _, c := range customers {
		if left := alive(c.sleeps); left != "" {
			return violation{fmt.Errorf("a process has outlived its daemon: %s", left)}
		}
	}
	for _, c := range customers {
		if err := c.resume(ctx, d); err != nil {
			return err
		}
		t.count(c)
	}
	return nil
}

func (t *tally) count(c *customer) {
	t.records += int(c.ledger.Last())
	for _, call := range c.ledger.Calls() {
		t.outcomes[strings.TrimPrefix(call.Result.GetOutcome().String(), "OUTCOME_")]++
	}
}

// interrupted lets the customers begin and kills the daemon: after the record with the number of
// the round, for one customer; at any time, for several.
func (d *server) interrupted(ctx context.Context, customers []*customer, n int, chance *rand.Rand) error {
	records, delay := n/2%customers[0].records(), time.Duration(chance.IntN(3000))*time.Microsecond
	if n/2/customers[0].records()%2 == 0 {
		delay = 0
	}
	if len(customers) > 1 {
		records, delay = 0, time.Duration(chance.IntN(250))*time.Millisecond
	}
	reached, reach := context.WithCancel(ctx)
	defer reach()
	var working sync.WaitGroup
	broken := make(chan error, len(customers)) // one each at most
	for _, c := range customers {
		working.Go(func() {
			defer reach()
			if err := c.begin(ctx, d, func() {
				if int(c.ledger.Last()) >= records {
					reach()
				}
			}); err != nil {
				broken <- err
			}
		})
	}
	<-reached.Done()
	<-time.After(delay) // when the blow falls is what is tried
	d.kill()
	working.Wait()
	close(broken)
	return <-broken // nil when nothing was sent
}

func newCustomer(d *server, tag string, number int) (*customer, error) {
	c := &customer{tag: tag, dir: filepath.Join(d.root(), tag), turn: "turn-" + tag, ledger: ledger.New()}
	c.sleeps = fmt.Sprintf("sleep %d", 1_000_000+number) // no other process sleeps that long
	bash := func(id, command string) use {
		return use{id, "Bash", map[string]any{"command": fmt.Sprintf("cd %s && %s", c.dir, command)}}
	}
	behind := bash("behind", "echo behind >> ran; while "+c.sleeps+"; do :; done")
	behind.input["run_in_background"] = true
	c.uses = []use{
		{"read", "Read", map[string]any{"file_path": c.path("seed")}},
		{"grep", "Grep", map[string]any{"pattern": "two", "path": c.dir}},
		bash("mark1", "echo mark1 >> ran"),
		{"write", "Write", map[string]any{"file_path": c.path("new"), "content": c.written()}},
		{"edit", "Edit", map[string]any{"file_path": c.path("seed"), "old_string": "one", "new_string": "uno"}},
		behind,
		bash("detached", "echo detached >> ran; setsid "+c.sleeps+" & sleep 0.01; echo ended"),
		{"again", "Read", map[string]any{"file_path": c.path("seed")}},
		bash("prints", "echo prints >> ran; yes | head -c 200000"),
		bash("mark2", "echo mark2 >> ran; sleep 0.01"),
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	return c, os.WriteFile(c.path("seed"), []byte(edited), 0o600)
}

// edited is what the file holds that is edited.
const edited = "one\ntwo\n"

// written is what the turn writes into a new file.
func (c *customer) written() string { return strings.Repeat(c.tag+"\n", 2000) }

func (c *customer) path(name string) string { return filepath.Join(c.dir, name) }

// records is how many the whole turn makes: accepted, started and result of each call, the session's own, the turn's end.
func (c *customer) records() int { return 3*len(c.uses) + 3 }

// begin does the turn until the daemon is gone. The error is a violation.
func (c *customer) begin(ctx context.Context, d *server, seen func()) error {
	conn, err := d.attach(ctx, c.tag, c.ledger, tooldv1.Role_ROLE_MAIN)
	if err != nil {
		return nil //nolint:nilerr // it may be killed this early
	}
	defer conn.HangUp()
	_ = conn.send(c.turn, c.uses)
	for {
		_, err := conn.receive()
		if broken, is := errors.AsType[violation](err); is {
			return broken
		}
		if err != nil {
			return nil
		}
		seen()
	}
}

// resume goes on where the blow has hit: attaches behind what was seen, sends the turn again, and looks at what was done.
func (c *customer) resume(ctx context.Context, d *server) error {
	conn, err := d.attach(ctx, c.tag, c.ledger, tooldv1.Role_ROLE_MAIN)
	if err != nil {
		return err
	}
	defer conn.HangUp()
	if err := conn.send(c.turn, c.uses); err != nil {
		return err
	}
	if err := conn.settle(c.turn, c.uses); err != nil {
		return err
	}
	if err := d.replays(ctx, c.tag, c.ledger); err != nil {
		return err
	}
	if err := c.effects(); err != nil {
		return violation{fmt.Errorf("session %s: %w", c.tag, err)}
	}
	_, err = d.conn.Sessions.CloseSession(ctx, &tooldv1.CloseSessionRequest{SessionId: c.tag})
	return err
}

// effects holds what the calls have left behind against what their results say.
func (c *customer) effects() error {
	ran, err := os.ReadFile(c.path("ran"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, u := range c.uses {
		call := c.ledger.Results(c.turn)[u.id]
		ok, started := call.Result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK, c.everStarted(u.id)
		var fault error
		switch u.name {
		case "Bash":
			ok = ok && u.input["run_in_background"] == nil // its result comes before its effect
			fault = judged(strings.Count(string(ran), u.id+"\n"), ok, started)
		case "Write":
			fault = c.whole("new", "", c.written(), ok, started)
		case "Edit":
			fault = c.whole("seed", edited, "uno\ntwo\n", ok, started)
		}
		if fault != nil {
			return fmt.Errorf("%s ended %v: %w", u.id, call.Result.GetOutcome(), fault)
		}
	}
	return c.tidy()
}

// everStarted reports whether a call of that id has started in any turn of that name: one that a blow has kept from being
// accepted is accepted when it is sent again.
func (c *customer) everStarted(id string) bool {
	for key, call := range c.ledger.Calls() {
		if key.ID == id && call.Started {
			return true
		}
	}
	return false
}

// judged compares how often a call has had its effect with what is known of it.
func judged(times int, ok, started bool) error {
	switch {
	case times > 1:
		return fmt.Errorf("it ran %d times", times)
	case ok && times == 0:
		return errors.New("it is said to have succeeded and did nothing")
	case !started && times > 0:
		return errors.New("it ran and was never recorded as started")
	}
	return nil
}

// whole sees that a file is the old one or the new one.
func (c *customer) whole(name, before, after string, ok, started bool) error {
	data, err := os.ReadFile(c.path(name))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	switch string(data) {
	case after:
		return judged(1, ok, started)
	case before:
		return judged(0, ok, started)
	default:
		return fmt.Errorf("%s is torn: it has %d bytes", name, len(data))
	}
}

// tidy sees that nothing is left in the customer's folder that it did not ask for.
func (c *customer) tidy() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{"seed", "ran", "new"}, e.Name()) {
			return fmt.Errorf("%s is left behind", e.Name())
		}
	}
	return nil
}
