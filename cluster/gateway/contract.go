// The methods of the contract, and the fields of a request from which its workspace follows.

package gateway

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/text/ellipsis"
)

// A request is about a session, or has roots of a new one. The roots name its
// workspace, and inside of the node's workspace they are paths below mountPoint.
const (
	rootPrefix   = "workspace:"
	mountPoint   = "/workspace" // but for tests
	maxWorkspace = 256          // bytes of a workspace's name
	maxShown     = 256          // bytes of what a client has sent, in a message
)

// services are those of the contract.
var services = []protoreflect.FileDescriptor{tooldv1.File_toold_v1_tool_proto, tooldv1.File_toold_v1_session_proto, tooldv1.File_toold_v1_daemon_proto}

// requests are the types of the requests of all methods of the contract, by the
// methods' full names.
var requests = requestTypes()

func requestTypes() map[string]protoreflect.MessageType {
	all := map[string]protoreflect.MessageType{}
	for _, file := range services {
		for s := range file.Services().Len() {
			service := file.Services().Get(s)
			for m := range service.Methods().Len() {
				method := service.Methods().Get(m)
				request, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
				if err != nil {
					panic("BUG: the contract's types are not registered: " + err.Error())
				}
				all["/"+string(service.FullName())+"/"+string(method.Name())] = request
			}
		}
	}
	return all
}

// contractReflection lists the contract among the services of a server that
// relays it, for gRPC's reflection.
type contractReflection struct{ *grpc.Server }

// GetServiceInfo returns the services by their names.
func (c contractReflection) GetServiceInfo() map[string]grpc.ServiceInfo {
	all := c.Server.GetServiceInfo()
	for _, file := range services {
		for s := range file.Services().Len() {
			all[string(file.Services().Get(s).FullName())] = grpc.ServiceInfo{Metadata: file.Path()}
		}
	}
	return all
}

// A subject is what a request is about.
type subject struct {
	session   string // empty: a new one, with a name of the daemon's
	workspace string // where its roots are; empty: it has none
	frame     *relay.Frame
}

// subjectOf reads the first message of an RPC. The subject's frame is the message
// for the node.
func (g *Gateway) subjectOf(request protoreflect.MessageType, data []byte) (*subject, error) {
	message := request.New()
	if err := proto.Unmarshal(data, message.Interface()); err != nil {
		return nil, status.Errorf(codes.Internal, "the request is not a %s: %v", message.Descriptor().FullName(), err) // as gRPC itself
	}
	about, prefix := message, ""
	if first, is := message.Interface().(*tooldv1.ExecuteRequest); is {
		if first.GetAttach() == nil {
			return nil, workspaceNeeded("attach", "Through a gateway a stream begins with Attach.")
		}
		about, prefix = first.GetAttach().ProtoReflect(), "attach."
	}
	s := &subject{session: stringField(about, "session_id"), frame: relay.Encoded(data)}
	roots := about.Descriptor().Fields().ByName("roots")
	if roots != nil && about.Get(roots).List().Len() > 0 {
		var err error
		if s.workspace, err = g.rewriteRoots(about.Mutable(roots).List(), prefix+"roots"); err != nil {
			return nil, err
		}
		if data, err = proto.Marshal(message.Interface()); err != nil {
			return nil, err
		}
		s.frame = relay.Encoded(data)
	}
	if s.session == "" && s.workspace == "" {
		return nil, workspaceNeeded(prefix+"roots", "The request names neither a session nor a workspace.")
	}
	return s, nil
}

func workspaceNeeded(field, what string) error {
	return apierror.Invalidf("workspace_needed", field, "%s Name a session with session_id, or a workspace with roots as \"workspace:NAME\".", what)
}

func stringField(message protoreflect.Message, name protoreflect.Name) string {
	if field := message.Descriptor().Fields().ByName(name); field != nil {
		return message.Get(field).String()
	}
	return ""
}

// rewriteRoots makes the roots paths inside of the workspace, and returns its name.
func (g *Gateway) rewriteRoots(roots protoreflect.List, field string) (workspace string, err error) {
	for n := range roots.Len() {
		root := roots.Get(n).String()
		name, below, why := parseRoot(root)
		if why == "" && n > 0 && name != workspace {
			why = fmt.Sprintf("is in another workspace than the first, %q", workspace)
		}
		if why != "" {
			return "", apierror.Invalidf("invalid_root", field, "The root %q %s.", ellipsis.Bytes(strings.ToValidUTF8(root, "\uFFFD"), maxShown), why)
		}
		workspace = name
		roots.Set(n, protoreflect.ValueOfString(path.Join(g.mount, below)))
	}
	return workspace, nil
}

// parseRoot returns the parts of "workspace:NAME[/path]", or why it is not one.
func parseRoot(root string) (workspace, below, why string) {
	rest, is := strings.CutPrefix(root, rootPrefix)
	if !is {
		return "", "", "is not \"workspace:NAME\" or \"workspace:NAME/path\": a cluster has no other paths"
	}
	workspace, below, _ = strings.Cut(rest, "/")
	switch {
	case workspace == "" || len(workspace) > maxWorkspace || !utf8.ValidString(workspace) || strings.ContainsFunc(workspace, unicode.IsControl):
		return "", "", fmt.Sprintf("has a workspace's name that is not 1 to %d bytes without control characters", maxWorkspace)
	case workspace == "." || workspace == "..":
		return "", "", fmt.Sprintf("has %q as a workspace's name, which is not one", workspace)
	case strings.Contains("/"+below+"/", "/../"):
		return "", "", "leads through \"..\""
	}
	return workspace, below, ""
}

// rootFor returns a path inside of a workspace as clients name it.
func (g *Gateway) rootFor(workspace, inside string) string {
	below, is := strings.CutPrefix(inside, g.mount)
	if !is || below != "" && below[0] != '/' {
		return inside
	}
	return rootPrefix + workspace + below
}
