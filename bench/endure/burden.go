// The clients of the run of memory.go: editors, holders of options, and those whose calls print.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// The kinds of what clients bring, as they are counted.
const (
	editing  = "buffers"
	holding  = "sessions with options"
	printing = "outputs"
)

// load runs all clients, and waits until the daemon has accepted or refused all that they bring.
func (c *crowd) load(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, clients := range []struct {
		number int
		run    func(ctx context.Context, n int) error
	}{{c.editors, c.edit}, {c.holders, c.hold}, {c.spillers, c.print}} {
		for n := range clients.number {
			running.Go(func() {
				if err := clients.run(ctx, n); err != nil {
					cancel(err)
				}
			})
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// count notes that something was taken, or why it was refused.
func (c *crowd) count(kind, refused string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused != "" {
		kind += " refused: " + refused
	}
	c.counts[kind]++
}

// open attaches the nth client of a principal, which is the machine's own user or one after the other. It stays when ctx ends.
func (c *crowd) open(ctx context.Context, n int, attach *tooldv1.Attach) (*wire.Stream, error) {
	stream, err := wire.Attach(context.WithoutCancel(ctx), c.links[n], attach)
	if err != nil {
		return nil, err
	}
	if _, err := stream.Recv(); err != nil {
		return nil, err
	}
	if n%2 == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.polite = append(c.polite, stream)
	}
	return stream, nil
}

// edit is an editor that sends buffers and then only listens.
func (c *crowd) edit(ctx context.Context, n int) error {
	session := fmt.Sprint("editor-", n)
	stream, err := c.open(ctx, n%len(c.links), &tooldv1.Attach{SessionId: session, Roots: []string{c.root()}, Capabilities: &tooldv1.Capabilities{Buffers: true}})
	if err != nil {
		return err
	}
	const line = "a line of a text that an editor holds\n"
	text := strings.Repeat(line, c.bufferBytes/len(line))
	for n := range c.buffers {
		if err := stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: &tooldv1.BufferChanged{
			Path: filepath.Join(c.root(), session, fmt.Sprint(n)), Version: 1, Content: text,
		}}}); err != nil {
			return err
		}
	}
	if err := stream.Send(&tooldv1.ExecuteRequest{}); err != nil { // its notice comes when the buffers have been taken
		return err
	}
	for taken := c.buffers; ; taken-- {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		for event.GetNotice() == nil {
			if event, err = stream.Recv(); err != nil {
				return err
			}
		}
		switch notice := event.GetNotice(); notice.GetCode() {
		case "unknown_message":
			for range taken {
				c.count(editing, "")
			}
			return nil
		case "buffer_too_large":
			c.count(editing, refusal(notice.GetDetails()))
		default:
			return violation{fmt.Errorf("unexpected: %v", notice)}
		}
	}
}

// refusal returns what details say of a limit.
func refusal(details *structpb.Struct) string {
	of := details.GetFields()
	return fmt.Sprintf("%s of the %s, %.0f bytes", of["status"].GetStringValue(), of["scope"].GetStringValue(), of["limit_bytes"].GetNumberValue())
}

// hold is a client with large options.
func (c *crowd) hold(ctx context.Context, n int) error {
	_, err := c.open(ctx, n%2, &tooldv1.Attach{
		SessionId: holder(n), Roots: []string{c.root()}, Options: &tooldv1.Options{SettingsJson: proto.String(c.settings(n))},
		Env:         map[string]string{"LARGE": strings.Repeat("e", c.envBytes)},
		ClientTools: []*tooldv1.ClientTool{{Name: "Ask", Description: strings.Repeat("d", c.toolBytes)}},
	})
	switch {
	case err == nil:
		c.count(holding, "")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = n
		return nil
	case status.Code(err) != codes.ResourceExhausted:
		return err
	}
	for _, detail := range status.Convert(err).Details() {
		if quota, is := detail.(*errdetails.QuotaFailure); is {
			c.count(holding, "RESOURCE_EXHAUSTED of the "+quota.GetViolations()[0].GetSubject())
			return nil
		}
	}
	return violation{fmt.Errorf("a refusal without its limit: %w", err)}
}

func holder(n int) string { return fmt.Sprint("holder-", n) }

// settings are those of a holder.
func (c *crowd) settings(n int) string {
	return fmt.Sprintf(`{"env":{"LONG_%d":%q}}`, n, strings.Repeat("x", c.optionBytes))
}

// print is a client whose call prints a lot.
func (c *crowd) print(ctx context.Context, n int) error {
	mode := tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS
	stream, err := c.open(ctx, 2+n%(len(c.links)-2), &tooldv1.Attach{
		SessionId: fmt.Sprint("printer-", n), Roots: []string{c.root()}, Options: &tooldv1.Options{PermissionMode: &mode},
	})
	if err != nil {
		return err
	}
	bytes := c.spillBytes
	if n == 0 {
		bytes *= 3
	}
	if err := stream.Use("", "print", "Bash", fmt.Sprintf(`{"command":"head -c %d /dev/zero | tr '\\0' x","timeout":600000}`, bytes)); err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		result := event.GetToolResult()
		switch {
		case result == nil:
		case result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK:
			c.count(printing, "")
			return nil
		case result.GetError().GetCode() == "output_limit":
			c.count(printing, refusal(result.GetError().GetDetails()))
			return nil
		default:
			return violation{fmt.Errorf("unexpected: %v", result)}
		}
	}
}

// keeps checks that a session still has its options.
func (c *crowd) keeps(ctx context.Context) error {
	got, err := c.conn.Sessions.GetSession(ctx, &tooldv1.GetSessionRequest{SessionId: holder(c.held)})
	if err != nil {
		return err
	}
	if got.GetSession().GetOptions().GetSettingsJson() != c.settings(c.held) {
		return violation{fmt.Errorf("%s has lost its settings", holder(c.held))}
	}
	return nil
}
