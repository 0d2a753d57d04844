package daemon

// Who uses a session, for whoever looks into its records later. It does not know what they may do.

import (
	"context"

	grpcpeer "google.golang.org/grpc/peer"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// meet records who uses the session from now on, unless that is who used it before. client is what the client says of
// itself; nil: nothing. mu is held.
func (s *session) meet(ctx context.Context, client *tooldv1.ClientInfo) {
	now := pipeline.Peer{Client: client.GetName(), Version: client.GetVersion()}
	if from, ok := grpcpeer.FromContext(ctx); ok {
		if who, ok := from.AuthInfo.(peer); ok {
			now.UID = who.uid
		}
	}
	if s.met && s.peer == now {
		return
	}
	s.met, s.peer = true, now
	s.enqueue(entry(nil, pipeline.Changed{Peer: &now}))
}
