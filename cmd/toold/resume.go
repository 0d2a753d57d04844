// What a client does when its stream is lost in the middle of a turn: it attaches again and goes on after the last
// record that it has. It does not know why the stream was lost.

package main

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// resumeTries is how often a lost stream is taken up again without a record in between, before the daemon is taken to
// be unable to serve.
const resumeTries = 3

// runToEnd runs the turn, over as many streams as it takes. again gives a new link, to a new daemon if need be.
func (c *conversation) runToEnd(ctx context.Context, again func(context.Context) (*link, error)) error {
	for tries := 0; ; tries++ {
		before := c.last
		err := c.run(ctx)
		if status.Code(err) != codes.Unavailable || c.session == "" || tries == resumeTries {
			return err
		}
		if c.last > before {
			tries = 0
		}
		l, err := again(ctx)
		if err != nil {
			return err
		}
		c.link.close()
		c.link, c.attach, c.closed = l, c.attachAgain(), false
	}
}

func (c *conversation) attachAgain() *tooldv1.Attach {
	return &tooldv1.Attach{
		SessionId: c.session, AfterSeq: proto.Uint64(c.last), Env: c.attach.GetEnv(), Client: c.attach.GetClient(),
		Capabilities: c.attach.GetCapabilities(),
	}
}
