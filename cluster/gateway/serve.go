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

// serve handles every RPC of the contract.
func (g *Gateway) serve(client grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(client)
	request, known := requests[name]
	if !known {
		return apierror.New(codes.Unimplemented, "not_served", "There is no method %s.", name)
	}
	switch name {
	case tooldv1.DaemonService_Shutdown_FullMethodName:
		return apierror.New(codes.PermissionDenied, "not_local", "A cluster cannot be ended through a gateway.")
	case tooldv1.SessionService_WatchSessions_FullMethodName, tooldv1.DaemonService_OpenDashboard_FullMethodName, tooldv1.DaemonService_Upgrade_FullMethodName:
		return apierror.New(codes.Unimplemented, "not_served", "A gateway does not serve %s.", name)
	case tooldv1.DaemonService_GetInfo_FullMethodName:
		return answer(client, &tooldv1.GetInfoRequest{}, g.getInfo)
	case tooldv1.SessionService_ListSessions_FullMethodName:
		return answer(client, &tooldv1.ListSessionsRequest{}, g.listSessions)
	}
	first := &relay.Frame{}
	if err := client.RecvMsg(first); err != nil {
		return endOfClient(err)
	}
	about, err := g.subjectOf(request, first.Bytes())
	first.Free()
	if err != nil {
		return err
	}
	return g.pass(client, name, about)
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

// pass relays an RPC to the node that has the workspace of its subject.
func (g *Gateway) pass(client grpc.ServerStream, method string, about *subject) error {
	ctx := client.Context()
	c := call{principal: principalOf(ctx), workspace: about.workspace, method: method, session: about.session}
	var err error
	switch {
	case c.workspace == "":
		c.workspace, err = g.index.workspaceOf(ctx, c.principal, about.session)
	case about.session != "":
		err = g.claim(ctx, c, about.session)
	}
	if err != nil {
		return err
	}
	server, cancel, err := g.place(ctx, c)
	if err != nil {
		g.correct(c, about.session, err)
		return err
	}
	var seen func(*relay.Frame) (*relay.Frame, error)
	if method == tooldv1.ToolService_Execute_FullMethodName {
		g.attached.Add(1)
		defer g.attached.Add(-1)
		if about.session == "" {
			seen = g.noteFirst(ctx, c)
		}
	}
	err = relay.Relay(client, server, cancel, &g.reading, seen, about.frame)
	g.correct(c, about.session, err)
	return endOfNode(ctx, err)
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
// with it could find another session.
func (g *Gateway) claim(ctx context.Context, c call, session string) error {
	other, err := g.index.claim(ctx, c.principal, c.workspace, session)
	if err != nil || other == "" {
		return err
	}
	there := call{c.principal, other, tooldv1.SessionService_GetSession_FullMethodName, session}
	err = g.ask(ctx, there, &tooldv1.GetSessionRequest{SessionId: session}, &tooldv1.GetSessionResponse{})
	if reasonOf(err) == "unknown_session" {
		return g.index.note(ctx, c.principal, c.workspace, session)
	}
	if err != nil {
		return err
	}
	return apierror.Preconditionf("session_elsewhere", "session_id", "The session %q exists in the workspace %q. Use that one, or another name.", session, other)
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
