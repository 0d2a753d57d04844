// Which client uses a session, for readers of its records.

package daemon

import (
	"context"

	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
)

// recordClient records who uses the session from now on, unless that is who used it before. client is what the client says of
// itself; nil: nothing.
func (at *attachments) recordClient(ctx context.Context, its *state, client *tooldv1.ClientInfo) {
	now := pipeline.Peer{Principal: string(principalOf(ctx)), UID: access.User(ctx), Client: client.GetName(), Version: client.GetVersion()}
	if its.clients.met && its.clients.peer == now {
		return
	}
	its.clients.met, its.clients.peer = true, now
	its.ledger.append(entry(nil, pipeline.Changed{Peer: &now}))
}
