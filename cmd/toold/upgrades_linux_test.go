package main

// Upgrades under load: every call has one result and one effect, and no client is refused.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// upgradeRounds is how many upgrades there are: 3, or as many as "make upgrades" asks for.
func upgradeRounds(t *testing.T) int {
	t.Helper()
	named := os.Getenv("TOOLD_UPGRADES")
	if named == "" {
		return 3
	}
	rounds, err := strconv.Atoi(named)
	if err != nil {
		t.Fatal(err)
	}
	return rounds
}

// upgradeClients is how many clients send calls meanwhile, each in a session of its own.
const upgradeClients = 4

// TestUpgradesUnderLoad: clients send calls without a pause while the daemon is upgraded again and again. Each call appends its id to a file.
func TestUpgradesUnderLoad(t *testing.T) {
	t.Parallel()
	u := newUpgradable(t, "--listen", "127.0.0.1:0")
	rounds := upgradeRounds(t)
	done := make(chan struct{})
	var clients sync.WaitGroup
	sent := make([]int, upgradeClients)
	roots := make([]string, upgradeClients)
	for i := range upgradeClients {
		roots[i] = u.room(t, fmt.Sprint("client", i), nil)
		clients.Go(func() {
			var err error
			if sent[i], err = u.load(t.Context(), roots[i], done); err != nil {
				t.Errorf("client %d, after %d calls: %v", i, sent[i], err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	connections := 0
	clients.Go(func() {
		var err error
		if connections, err = u.connecting(ctx); err != nil {
			t.Errorf("after %d connections: %v", connections, err)
		}
	})
	for range rounds {
		holds(t, "what is said", u.upgrade(t, cli.ExitOK, "--wait=1m"), "has become")
	}
	close(done)
	cancel()
	clients.Wait()
	total := 0
	for i, root := range roots {
		text, err := os.ReadFile(filepath.Join(root, "log"))
		if lines := bytes.Count(text, []byte("\n")); err != nil || lines != sent[i] {
			t.Errorf("client %d has sent %d calls, and %d had an effect (%v)", i, sent[i], lines, err)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if seen[line] {
				t.Errorf("client %d: the call %q had its effect twice", i, line)
			}
			seen[line] = true
		}
		total += sent[i]
	}
	t.Logf("%d upgrades, %d calls of %d clients, %d other connections", rounds, total, upgradeClients, connections)
}

// load sends turns of three calls that append, one after the other, until done is closed, and returns how many calls have ended well.
func (u *upgradable) load(ctx context.Context, root string, done <-chan struct{}) (sent int, err error) {
	dial := func(context.Context) (*toold.Conn, error) { return connect.Dial(u.socket()) }
	a := &tooldv1.Attach{
		SessionId: filepath.Base(root), Roots: []string{root},
		Options: &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum(), Trusted: proto.Bool(true)},
	}
	s, err := toold.Open(ctx, dial, a)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for turn := 0; ; turn++ {
		select {
		case <-done:
			return sent, nil
		default:
		}
		id := fmt.Sprint("turn", turn)
		for n := range 3 {
			use := &tooldv1.ToolUse{Id: fmt.Sprintf("%s-%d", id, n), TurnId: id, Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(`{"command":"echo %s-%d >> log"}`, id, n)}}
			if err := s.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: use}}); err != nil {
				return sent, err
			}
		}
		if err := s.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: id}}}); err != nil {
			return sent, err
		}
		results, err := resultsOf(s, id)
		sent += results
		if err != nil {
			return sent, err
		}
	}
}

// resultsOf receives until the turn has ended, and returns how many results it had. Each is OK, and there is one for each of three calls.
func resultsOf(s *toold.Session, turn string) (n int, err error) {
	seen := map[string]bool{}
	for e := range s.Events() {
		switch {
		case e.Err != nil:
			return n, e.Err
		case e.GetToolResult() != nil:
			r := e.GetToolResult()
			if seen[r.GetToolUseId()] || r.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
				return n, fmt.Errorf("the call %s ended with %s %s (before: %t)", r.GetToolUseId(), outcome(r), textIn(r), seen[r.GetToolUseId()])
			}
			seen[r.GetToolUseId()] = true
			n++
		case e.GetTurnEnded() != nil && e.GetTurnId() == turn:
			if n != 3 {
				return n, fmt.Errorf("the turn %s has ended with %d results", turn, n)
			}
			return n, nil
		}
	}
	return n, errors.New("no more events")
}
