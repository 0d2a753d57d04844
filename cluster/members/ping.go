// Asking a node directly whether it serves.

package members

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/toold/toold/cluster/identity"
)

// ErrNotServing is returned by a ping of a node that answers, and does not serve.
var ErrNotServing = errors.New("the node does not serve")

// Pinger returns a Ping for Config: it connects to the node with the
// certificate and makes a health check of gRPC.
func Pinger(id *identity.Identity) func(ctx context.Context, node Node) error {
	return func(ctx context.Context, node Node) error {
		creds := credentials.NewTLS(id.ClientTLS(identity.Node, node.Name))
		conn, err := grpc.NewClient("passthrough:///"+node.Address, grpc.WithTransportCredentials(creds))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		if err == nil && answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			return ErrNotServing
		}
		return err
	}
}
