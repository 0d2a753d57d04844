package gateway

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestCreation: a node gets what a workspace is to be created with. What it refuses so leaves nothing in the index, and what it
// refuses otherwise takes nothing from it.
func TestCreation(t *testing.T) {
	c := newCluster(t, "anna")
	asked := make(chan metadata.MD, 1)
	answer := make(chan error, 1)
	c.serveNode("n1", func(stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		asked <- header
		return <-answer
	})
	g, address := c.gateway(c.config("g"))
	conn := c.conn("anna", address)
	for _, test := range []struct {
		reason string
		kept   bool
	}{{"clone_failed", false}, {"quota_exceeded", false}, {"full", true}, {"quota_exceeded", true}, {"invalid_creation", false}} {
		answer <- apierror.New(codes.FailedPrecondition, test.reason, "No.")
		stream, err := conn.Tools.Execute(metadata.AppendToOutgoingContext(t.Context(), identity.GitKey, "https://git.example/a", identity.StrictKey, "true"))
		if err != nil {
			t.Fatal(err)
		}
		attach := &tooldv1.Attach{SessionId: "s", Roots: []string{c.workspace("w", "")}}
		_ = stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: attach}})
		_, err = stream.Recv()
		refused(t, err, codes.FailedPrecondition, test.reason)
		header := <-asked
		for key, want := range map[string]string{identity.GitKey: "https://git.example/a", identity.StrictKey: "true", identity.SnapshotKey: ""} {
			if got := header.Get(key); len(got) > 1 || len(got) == 1 && got[0] != want || len(got) == 0 && want != "" {
				t.Errorf("the node gets %s %q, want %q", key, got, want)
			}
		}
		for _, e := range []entry{{"token:anna", "s", "w"}, {"token:anna", "", "w"}} {
			if found, _, err := g.index.read(t.Context(), e); err != nil || (found == e) != test.kept {
				t.Errorf("after %s the index has %+v, %v", test.reason, found, err)
			}
		}
	}
}
