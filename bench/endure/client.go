// A client of one session: what it sends, and the ledger that everything it receives goes into.

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/bench/ledger"
	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A client is attached to one session by one stream. The ledger outlives it.
type client struct {
	*wire.Stream
	session string
	ledger  *ledger.Ledger
}

// attach opens a stream behind what the ledger has seen. Everything is allowed without being asked.
func (d *server) attach(ctx context.Context, session string, l *ledger.Ledger, role tooldv1.Role) (*client, error) {
	attach := &tooldv1.Attach{SessionId: session, AfterSeq: proto.Uint64(l.Last()), Roots: []string{d.root()}, Client: &tooldv1.ClientInfo{Name: "endure"}, Role: role}
	if role != tooldv1.Role_ROLE_COMPANION {
		attach.Options = &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	}
	stream, err := wire.Attach(ctx, d.conn, attach)
	return &client{stream, session, l}, err
}

// A use is one tool use of a script.
type use struct {
	id, name string
	input    map[string]any
}

// send sends a whole turn. A repeat of one that was sent before runs nothing again.
func (c *client) send(turn string, uses []use) error {
	for _, u := range uses {
		if err := c.sendUse(turn, u); err != nil {
			return err
		}
	}
	return c.endTurn(turn)
}

func (c *client) sendUse(turn string, u use) error {
	text, err := json.Marshal(u.input)
	if err != nil {
		return err
	}
	return c.Use(turn, u.id, u.name, string(text))
}

func (c *client) endTurn(turn string) error {
	return c.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: turn}}})
}

// discard throws a turn away.
func (c *client) discard(turn string) error {
	return c.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{TurnId: turn}}})
}

// A violation is a broken promise, and not an accident of the run.
type violation struct{ what error }

func (v violation) Error() string { return "VIOLATION: " + v.what.Error() }

// receive takes one event. The error is a violation, or the stream's.
func (c *client) receive() (*tooldv1.ExecuteResponse, error) {
	event, err := c.Recv()
	if err != nil {
		return nil, err
	}
	if err := c.ledger.See(event); err != nil {
		return nil, violation{fmt.Errorf("session %s: %w", c.session, err)}
	}
	return event, nil
}

// settle receives until each of the uses of a turn has a result and no turn is open.
func (c *client) settle(turn string, uses []use) error {
	for {
		missing := c.missing(turn, uses)
		if missing == "" {
			return nil
		}
		if _, err := c.receive(); err != nil {
			return fmt.Errorf("%w, while %s", err, missing)
		}
	}
}

// missing returns what a turn has yet to come to; empty: it is settled.
func (c *client) missing(turn string, uses []use) string {
	if id := c.unanswered(turn, uses); id != "" {
		return "the result of " + id + " is missing"
	}
	if err := c.ledger.Settled(); err != nil {
		return err.Error()
	}
	return ""
}

// unanswered is a use of a turn that has no result yet; empty: there is none.
func (c *client) unanswered(turn string, uses []use) string {
	results := c.ledger.Results(turn)
	for _, u := range uses {
		if results[u.id] == nil {
			return u.id
		}
	}
	return ""
}

// replays sees that a client which has seen nothing is sent the same as is in a ledger.
func (d *server) replays(ctx context.Context, session string, seen *ledger.Ledger) error {
	c, err := d.attach(ctx, session, ledger.New(), tooldv1.Role_ROLE_COMPANION)
	if err != nil {
		return err
	}
	defer c.HangUp()
	for c.ledger.Last() < seen.Last() {
		if _, err := c.receive(); err != nil {
			return err
		}
	}
	if n := c.ledger.Differs(seen); n > 0 {
		return violation{fmt.Errorf("session %s: record %d is replayed as another than was seen", session, n)}
	}
	return nil
}
