//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A client runs one call after another in a session of its own, whatever happens to the cluster.
type client struct {
	name, workspace string
	dial            toold.Dial
	ledger          *ledger
	begun           time.Time // the run
	long            bool      // some commands take so long that an owner which was cut off is replaced meanwhile

	mu      sync.Mutex
	epoch   string
	last    uint64            // the newest record of the epoch
	result  map[string]string // outcome of each call
	started map[string]bool
	wrong   []string
}

func (c *client) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken(format, args...)
}

// broken notes a broken promise, with the time, as faults are printed with theirs. The caller holds mu.
func (c *client) broken(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf("%6.1f s  %s: ", time.Since(c.begun).Seconds(), c.name)+fmt.Sprintf(format, args...))
}

// event checks that each record comes once, in order.
func (c *client) event(r *tooldv1.ExecuteResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if attached := r.GetAttached(); attached != nil {
		if c.epoch != "" && attached.GetEpoch() != c.epoch {
			c.broken("the numbering has changed")
			c.last = 0
		}
		c.epoch = attached.GetEpoch()
		return
	}
	if started := r.GetStarted(); started != nil {
		c.started[started.GetToolUseId()] = true
	}
	if seq := r.GetSeq(); seq > 0 {
		if seq <= c.last {
			c.broken("record %d came after record %d", seq, c.last)
		}
		c.last = seq
	}
}

func (c *client) attach() *tooldv1.Attach {
	return &tooldv1.Attach{
		SessionId: c.name, Roots: []string{"workspace:" + c.workspace},
		Options: &tooldv1.Options{
			PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum(),
			SettingsJson:   new(`{"sandbox": {"enabled": false}}`), // so that commands reach the ledger; the container remains
		},
	}
}

// work runs calls until ctx ends, and waits for the last one.
func (c *client) work(ctx context.Context) {
	var agent *toold.Agent
	n := 0
	for ctx.Err() == nil {
		if agent == nil {
			joined, err := toold.Join(context.Background(), c.dial, c.attach(), toold.Handlers{Event: c.event})
			if err != nil {
				<-time.After(100 * time.Millisecond)
				continue
			}
			agent = joined
		}
		n++
		if err := c.call(agent, fmt.Sprintf("%s-%d", c.name, n)); err != nil {
			agent.Close()
			agent = nil
		}
	}
	if agent != nil {
		agent.Close()
	}
}

// call runs one call. An error means that the session could not be attached for long; what became of the call is found
// out in the end.
func (c *client) call(agent *toold.Agent, id string) error {
	seconds := rand.Float64() * rand.Float64() * 2
	if c.long && rand.IntN(10) == 0 {
		seconds = 10 + rand.Float64()*30
	}
	turn, err := agent.Start(&tooldv1.ToolUse{Id: id, Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: fmt.Sprintf(`{"command":%q}`, c.ledger.command(id, seconds))}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	result, err := turn.Result(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.complain("the call %s has had no result for 3 minutes", id)
		}
		return err
	}
	c.note(id, result)
	return nil
}

// note holds a result against the call's effects.
func (c *client) note(id string, result *tooldv1.ToolResult) {
	outcome, effects := strings.TrimPrefix(result.GetOutcome().String(), "OUTCOME_"), c.ledger.effectsOf(id)
	switch {
	case outcome == "OK" && effects == 0:
		c.complain("the call %s is OK and has had no effect", id)
	case !c.hasStarted(id) && effects > 0:
		c.complain("the call %s has had an effect, and no record of its start has come", id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, known := c.result[id]; known && was != outcome {
		c.broken("the call %s has the results %s and %s", id, was, outcome)
	}
	c.result[id] = outcome
}

func (c *client) hasStarted(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started[id]
}

// check reads the whole session, when the faults are over: each call has one result, and it is the one that the client
// was shown.
func (c *client) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		results, err := c.read(ctx)
		if err == nil {
			for id, n := range results {
				if n != 1 {
					c.complain("the call %s has %d results", id, n)
				}
			}
			for id := range c.result {
				if results[id] == 0 {
					c.complain("the result of the call %s is lost", id)
				}
			}
			return
		}
		if ctx.Err() != nil {
			c.complain("the session cannot be read: %v", err)
			return
		}
		<-time.After(time.Second)
	}
}

// read returns how many results each call has in the session's records.
func (c *client) read(ctx context.Context) (map[string]int, error) {
	stream, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	session, err := toold.Open(stream, c.dial, &tooldv1.Attach{SessionId: c.name, Roots: []string{"workspace:" + c.workspace}, AfterSeq: new(uint64)})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	results := map[string]int{}
	var last, until uint64
	for {
		select {
		case event := <-session.Events():
			if event.Err != nil && !errors.Is(event.Err, io.EOF) {
				return nil, event.Err
			}
			if attached := event.GetAttached(); attached != nil {
				until = attached.GetLastSeq()
			}
			if result := event.GetToolResult(); result != nil && event.GetSeq() > 0 {
				results[result.GetToolUseId()]++
				c.note(result.GetToolUseId(), result)
			}
			if last = max(last, event.GetSeq()); last >= until {
				return results, nil
			}
		case <-stream.Done():
			return nil, stream.Err()
		}
	}
}
