package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toold/toold/bench/ledger"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestModel plays random turns, cancels, interrupts, discards, disconnects and crashes on the daemon. The ledger holds
// what the client sees against the promises; the model here says which outcomes a turn may have, by what was done to it.
func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue { // each check takes about half a second
		if err := f.Value.Set("12"); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newServer(binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	checks := 0
	rapid.Check(t, func(r *rapid.T) {
		checks++
		p := &play{T: r, server: s, session: fmt.Sprintf("m%d", checks), ledger: ledger.New()}
		p.dir = filepath.Join(s.root(), p.session)
		if err := os.Mkdir(p.dir, 0o700); err != nil {
			r.Fatal(err)
		}
		p.begin()
		r.Repeat(map[string]func(*rapid.T){
			"use":       func(*rapid.T) { p.use() },
			"another":   func(*rapid.T) { p.use() },
			"see":       func(*rapid.T) { p.see() },
			"settle":    func(*rapid.T) { p.settle() },
			"cancel":    func(*rapid.T) { p.cancel() },
			"interrupt": func(*rapid.T) { p.interrupt() },
			"discard":   func(*rapid.T) { p.discard() },
			"leave":     func(*rapid.T) { p.leave() },
			"crash":     func(*rapid.T) { p.crash() },
		})
		p.settle()
		p.replayed()
		p.leave()
	})
}

// A play is one session of the model's.
type play struct {
	*rapid.T
	server  *server
	session string
	dir     string
	ledger  *ledger.Ledger
	conn    *client // nil: detached

	turn      int
	uses      []use // of the open turn
	sent      int   // of them, on this stream
	fails     bool  // one of them fails
	allowed   []tooldv1.Outcome
	discarded []string
	ran       map[string]bool // every use that ever was, by what it prints
}

// begin opens a new turn in the model.
func (p *play) begin() {
	if p.ran == nil {
		p.ran = map[string]bool{}
	}
	p.turn++
	p.uses, p.sent, p.fails = nil, 0, false
	p.allowed = []tooldv1.Outcome{tooldv1.Outcome_OUTCOME_OK}
}

func (p *play) name() string { return fmt.Sprint("turn-", p.turn) }

func (p *play) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", p.session, err)
	}
}

// attached sees to a stream that has been sent what there is of the turn.
func (p *play) attached() *client {
	if p.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		conn, err := p.server.attach(ctx, p.session, p.ledger, tooldv1.Role_ROLE_MAIN)
		p.check(err)
		hangUp := conn.HangUp
		conn.HangUp = func() { hangUp(); cancel() }
		p.conn, p.sent = conn, 0
		for _, name := range p.discarded { // a stream that is hung up may take its last words along
			p.check(conn.discard(name))
		}
	}
	for ; p.sent < len(p.uses); p.sent++ {
		p.check(p.conn.sendUse(p.name(), p.uses[p.sent]))
	}
	return p.conn
}

func (p *play) use() {
	id := fmt.Sprint("c", len(p.uses))
	mark := p.name() + "." + id
	command := fmt.Sprintf("cd %s && echo %s >> ran", p.dir, mark)
	u := use{id, "Bash", map[string]any{"command": command}}
	switch rapid.IntRange(0, 6).Draw(p.T, "kind") {
	case 0:
		u = use{id, "LS", map[string]any{"path": p.dir}}
	case 1:
		u = use{id, "Glob", map[string]any{"pattern": "*", "path": p.dir}}
	case 2:
		u.input["command"] = command + "; sleep 0.1"
	case 3:
		u.input["command"] = command + "; false"
		p.fails = true
	case 4:
		u.input["command"] = command + "; seq 30000"
	}
	if u.name == "Bash" {
		p.ran[mark] = true
	}
	p.uses = append(p.uses, u)
	p.attached()
}

// see takes some records, if there are any to come.
func (p *play) see() {
	conn := p.attached()
	for n := rapid.IntRange(1, 5).Draw(p.T, "records"); n > 0 && conn.unanswered(p.name(), p.uses) != ""; n-- {
		_, err := conn.receive()
		p.check(err)
	}
}

func (p *play) allow(outcomes ...tooldv1.Outcome) { p.allowed = append(p.allowed, outcomes...) }

func (p *play) cancel() {
	if len(p.uses) == 0 {
		return
	}
	id := p.uses[rapid.IntRange(0, len(p.uses)-1).Draw(p.T, "which")].id
	p.allow(tooldv1.Outcome_OUTCOME_CANCELLED)
	p.check(p.attached().Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Cancel{Cancel: &tooldv1.Cancel{ToolUseId: id}}}))
}

func (p *play) interrupt() {
	p.allow(tooldv1.Outcome_OUTCOME_CANCELLED)
	p.check(p.attached().Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Interrupt{Interrupt: &tooldv1.Interrupt{}}}))
}

// discard throws the open turn away: the model forgets it, the ledger does not.
func (p *play) discard() {
	p.check(p.attached().discard(p.name()))
	p.discarded = append(p.discarded, p.name())
	p.begin()
}

func (p *play) leave() {
	if p.conn != nil {
		p.conn.HangUp()
		p.conn = nil
	}
}

func (p *play) crash() {
	p.allow(tooldv1.Outcome_OUTCOME_INTERRUPTED)
	p.leave()
	p.server.kill()
	p.check(p.server.start())
}

// settle ends the turn, sees it to its end, and compares what it came to with what the model allows.
func (p *play) settle() {
	conn := p.attached()
	p.check(conn.endTurn(p.name()))
	p.check(conn.settle(p.name(), p.uses))
	if p.fails {
		p.allow(tooldv1.Outcome_OUTCOME_ERROR, tooldv1.Outcome_OUTCOME_ABORTED)
	}
	ran, err := os.ReadFile(filepath.Join(p.dir, "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.Fatal(err)
	}
	for mark := range p.ran {
		if n := strings.Count(string(ran), mark+"\n"); n > 1 {
			p.Fatalf("%s: %s ran %d times", p.session, mark, n)
		}
	}
	for id, call := range p.ledger.Results(p.name()) {
		if outcome := call.Result.GetOutcome(); !slices.Contains(p.allowed, outcome) {
			p.Fatalf("%s: %s of %s ended %v, and after what was done only %v may be: %v", p.session, id, p.name(), outcome, p.allowed, call.Result)
		}
		if call.Result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK && p.ran[p.name()+"."+id] && !strings.Contains(string(ran), p.name()+"."+id+"\n") {
			p.Fatalf("%s: %s of %s is said to have succeeded and did nothing", p.session, id, p.name())
		}
	}
	p.begin()
}

// replayed sees that a client which has seen nothing is sent the same.
func (p *play) replayed() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p.check(p.server.replays(ctx, p.session, p.ledger))
}
