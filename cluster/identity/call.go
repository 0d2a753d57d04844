// What a gateway adds to each RPC that it passes to a node, and what the node
// reads from it.

package identity

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/daemon/apierror"
)

// The metadata of an RPC from a gateway to a node.
const (
	WorkspaceKey = "toold-workspace-bin" // the workspace's name
	PrincipalKey = "toold-principal-bin" // from [Identity.SignPrincipal]
	SessionKey   = "toold-session-bin"   // the session that the request names, if it does
)

// A Call is who calls a node, and for which workspace.
type Call struct {
	Peer      Peer
	Principal string // to whom the workspace belongs
	Workspace string // the principal's name for it; empty: the RPC is about none
	Session   string // empty: the RPC names none
}

// Outgoing returns the metadata for an RPC to a node.
func (i *Identity) Outgoing(principal, workspace, node, method string, now time.Time) (metadata.MD, error) {
	signed, err := i.SignPrincipal(principal, node, method, now)
	if err != nil {
		return nil, err
	}
	return metadata.MD{PrincipalKey: {string(signed)}, WorkspaceKey: {workspace}}, nil
}

// Incoming returns who calls a method of the node, from the context of the RPC.
// The error is an *apierror.Error that wraps one of this package's errors. The
// node's server has the credentials of [Identity.ServerTLS]; a peer that is
// neither a gateway nor an administrator is refused, so nodes may be let in for
// health checks.
func Incoming(ctx context.Context, node, method string, now time.Time) (Call, error) {
	peer, err := PeerOf(ctx)
	if err == nil && peer.Subject.Role != Gateway && peer.Subject.Role != Admin {
		err = &CertificateError{fmt.Sprintf("is of a %s, which calls for no principal", peer.Subject.Role)}
	}
	if err != nil {
		return Call{}, refusal(err)
	}
	header, _ := metadata.FromIncomingContext(ctx)
	signed, workspace := header.Get(PrincipalKey), header.Get(WorkspaceKey)
	if len(signed) != 1 || len(workspace) > 1 {
		return Call{}, refusal(ErrMalformed)
	}
	call := Call{Peer: peer}
	if len(workspace) == 1 {
		call.Workspace = workspace[0]
	}
	if session := header.Get(SessionKey); len(session) == 1 {
		call.Session = session[0]
	}
	if call.Principal, err = peer.VerifyPrincipal([]byte(signed[0]), node, method, now); err != nil {
		return Call{}, refusal(err)
	}
	return call, nil
}

func refusal(cause error) error {
	refused := apierror.New(codes.Unauthenticated, "invalid_principal", "The node does not accept the gateway's call: %v.", cause)
	refused.Cause = cause
	return refused
}

// PeerOf returns who is at the other end of the connection of an RPC. The error
// is a *CertificateError.
func PeerOf(ctx context.Context) (Peer, error) {
	if from, ok := grpcpeer.FromContext(ctx); ok {
		if info, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
			leaf := info.State.VerifiedChains[0][0]
			subject, err := subjectOf(leaf)
			return Peer{subject, leaf.PublicKey}, err
		}
	}
	return Peer{}, &CertificateError{"is missing"}
}

// NotOwner returns the status of a node for a workspace that another node has.
// The error code is not_owner.
func NotOwner(owner string) error {
	refused := status.New(codes.FailedPrecondition, fmt.Sprintf("The node %s has the workspace.", owner))
	full, err := refused.WithDetails(&errdetails.ErrorInfo{Domain: "toold", Reason: notOwner, Metadata: map[string]string{ownerKey: owner}})
	if err != nil {
		return refused.Err()
	}
	return full.Err()
}

const (
	notOwner = "not_owner"
	ownerKey = "owner"
)

// OwnerIn returns the owner that an error of NotOwner names; ok is false for all
// other errors.
func OwnerIn(err error) (owner string, ok bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is && info.GetDomain() == "toold" && info.GetReason() == notOwner {
			return info.GetMetadata()[ownerKey], true
		}
	}
	return "", false
}
