// One RPC of a user: who calls, where its workspace is, and the relay to there.

package gateway

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A call is an RPC to the node that has a workspace.
type call struct {
	principal string
	workspace string
	method    string // "/toold.v1.ToolService/Execute"
	session   string // that the request names; empty: none
}

// ended reports how an RPC has ended, and returns that.
func (g *Gateway) ended(client grpc.ServerStream, err error) error {
	if g.config.Ended != nil {
		name, _ := grpc.MethodFromServerStream(client)
		if _, known := requests[name]; !known {
			name = "other"
		}
		g.config.Ended(name, status.Code(err))
	}
	return err
}

// serve handles every RPC of the contract. The way to the node is found on a goroutine that ends with that: it needs twice the stack of
// the relay, and the runtime would not take it back for as long as the RPC lasts.
func (g *Gateway) serve(client grpc.ServerStream) error {
	var o *opened
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		o, err = g.open(client)
	}()
	<-done
	if o == nil {
		return err
	}
	return o.relay(client)
}

// open reads what an RPC is about, and opens it at the node that serves it. If it returns nil the RPC has ended, with the error.
func (g *Gateway) open(client grpc.ServerStream) (*opened, error) {
	name, _ := grpc.MethodFromServerStream(client)
	request, known := requests[name]
	if !known {
		return nil, apierror.New(codes.Unimplemented, "not_served", "There is no method %s.", name)
	}
	switch name {
	case tooldv1.DaemonService_Shutdown_FullMethodName:
		return nil, apierror.New(codes.PermissionDenied, "not_local", "A cluster cannot be ended through a gateway.")
	case tooldv1.SessionService_WatchSessions_FullMethodName, tooldv1.DaemonService_OpenDashboard_FullMethodName, tooldv1.DaemonService_Upgrade_FullMethodName:
		return nil, apierror.New(codes.Unimplemented, "not_served", "A gateway does not serve %s.", name)
	case tooldv1.DaemonService_GetInfo_FullMethodName:
		return nil, answer(client, &tooldv1.GetInfoRequest{}, g.getInfo)
	case tooldv1.SessionService_ListSessions_FullMethodName:
		return nil, answer(client, &tooldv1.ListSessionsRequest{}, g.listSessions)
	}
	first := &relay.Frame{}
	if err := client.RecvMsg(first); err != nil {
		return nil, endOfClient(err)
	}
	about, err := g.subjectOf(request, first.Bytes())
	first.Free()
	if err != nil {
		return nil, err
	}
	return g.pass(client.Context(), name, about)
}

// answer serves a unary method in the gateway itself.
func answer[Request, Response proto.Message](client grpc.ServerStream, request Request, serve func(context.Context, Request) (Response, error)) error {
	if err := client.RecvMsg(request); err != nil {
		return endOfClient(err)
	}
	response, err := serve(client.Context(), request)
	if err != nil {
		return err
	}
	return client.SendMsg(response)
}

// An opened is an RPC that a node has accepted.
type opened struct {
	g      *Gateway
	call   call
	about  *subject
	server grpc.ClientStream
	cancel context.CancelCauseFunc
}

// pass opens an RPC to the node that has the workspace of its subject.
func (g *Gateway) pass(ctx context.Context, method string, about *subject) (*opened, error) {
	c := call{principal: principalOf(ctx), workspace: about.workspace, method: method, session: about.session}
	var err error
	claimed := false
	switch {
	case c.workspace == "":
		c.workspace, err = g.index.workspaceOf(ctx, c.principal, about.session)
	case about.session != "":
		claimed, err = g.claim(ctx, c, about.session)
	}
	if err != nil {
		return nil, err
	}
	server, cancel, err := g.place(ctx, c)
	if err != nil {
		g.correct(c, about.session, err)
		if claimed && reasonOf(err) == overQuota { // nothing has begun
			g.index.remove(c.principal, c.workspace, about.session)
		}
		return nil, err
	}
	return &opened{g, c, about, server, cancel}, nil
}

// relay passes on what comes from either side until the RPC ends.
func (o *opened) relay(client grpc.ServerStream) error {
	var seen func(*relay.Frame) (*relay.Frame, error)
	if o.call.method == tooldv1.ToolService_Execute_FullMethodName {
		o.g.attached.Add(1)
		defer o.g.attached.Add(-1)
		if o.about.session == "" {
			seen = o.g.noteFirst(client.Context(), o.call)
		}
	}
	err := relay.Relay(client, o.server, o.cancel, &o.g.reading, seen, o.about.frame)
	o.g.correct(o.call, o.about.session, err)
	return endOfNode(client.Context(), err)
}

// correct corrects what is remembered of a session, by the error that a request about it has had. Nodes refuse what a workspace is
// created with only if it has no records, and so no sessions.
func (g *Gateway) correct(c call, session string, err error) {
	switch reasonOf(err) {
	case "unknown_session":
		g.index.forget(c.principal, session)
	case workspaceDeleted, "source_not_allowed", "clone_failed", "unknown_snapshot", "invalid_creation": // nothing has begun
		g.index.remove(c.principal, c.workspace, session)
	}
}

// overQuota is a node's reason for what would pass a quota.
const overQuota = "quota_exceeded"

// workspaceDeleted is a node's reason for a workspace that an administrator has deleted.
const workspaceDeleted = "workspace_deleted"

// noteFirst returns what notes the session that the first event of a stream names
// before the client learns its name, so that it is found through every gateway.
func (g *Gateway) noteFirst(ctx context.Context, c call) func(*relay.Frame) (*relay.Frame, error) {
	noted := false
	return func(frame *relay.Frame) (*relay.Frame, error) {
		if noted {
			return frame, nil
		}
		noted = true
		data := frame.Bytes()
		frame.Free()
		event := &tooldv1.ExecuteResponse{}
		if err := proto.Unmarshal(data, event); err != nil {
			return nil, err
		}
		if name := event.GetAttached().GetSessionId(); name != "" {
			if err := g.index.note(ctx, c.principal, c.workspace, name); err != nil {
				return nil, err
			}
		}
		return relay.Encoded(data), nil
	}
}

// claim notes where a session is that the request makes unless it exists. A name
// is only once among the sessions of a principal, else a client that comes back
// with it could find another session. isNew reports whether the index had neither the session nor the workspace.
func (g *Gateway) claim(ctx context.Context, c call, session string) (isNew bool, err error) {
	other, isNew, err := g.index.claim(ctx, c.principal, c.workspace, session)
	if err != nil || other == "" {
		return isNew, err
	}
	there := call{c.principal, other, tooldv1.SessionService_GetSession_FullMethodName, session}
	err = g.ask(ctx, there, &tooldv1.GetSessionRequest{SessionId: session}, &tooldv1.GetSessionResponse{})
	if reasonOf(err) == "unknown_session" {
		return false, g.index.note(ctx, c.principal, c.workspace, session)
	}
	if err != nil {
		return false, err
	}
	return false, apierror.Preconditionf("session_elsewhere", "session_id", "The session %q exists in the workspace %q. Use that one, or another name.", session, other)
}

// ask makes a unary call of the gateway's own.
func (g *Gateway) ask(ctx context.Context, c call, request, response proto.Message) error {
	server, cancel, err := g.place(ctx, c)
	if err != nil {
		return err
	}
	defer cancel(nil)
	_ = server.SendMsg(request) // RecvMsg has the reason if it fails
	_ = server.CloseSend()
	return endOfNode(ctx, server.RecvMsg(response))
}
