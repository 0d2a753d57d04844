// What a session's calls meet besides files: the settings in force, and the servers beside it.

package daemon

import (
	"context"
	"strings"

	"github.com/toold/toold/daemon/convert"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// GetSettings returns the settings in force for the session's next call.
func (x *sessionServer) GetSettings(ctx context.Context, request *tooldv1.GetSettingsRequest) (*tooldv1.GetSettingsResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	policy, redactor := s.judge.policy(), x.daemon.secrets.now()
	response := &tooldv1.GetSettingsResponse{}
	_, response.Warnings = convert.Warnings(policy.warnings)
	for _, line := range policy.settings.Lines() {
		name := line.Key[strings.LastIndexByte(line.Key, '.')+1:]
		response.Settings = append(response.Settings, &tooldv1.Setting{
			Key: convert.Visible(line.Key), Value: convert.Visible(redactor.Named(name, line.Value)), File: convert.Visible(line.Origin.File), Line: uint32(line.Origin.Line),
		})
	}
	return response, nil
}

// ListServers returns the servers beside the session.
func (x *sessionServer) ListServers(ctx context.Context, request *tooldv1.ListServersRequest) (*tooldv1.ListServersResponse, error) {
	s, err := x.daemon.sessions.openSession(ctx, request)
	if err != nil {
		return nil, err
	}
	response := &tooldv1.ListServersResponse{}
	for _, server := range s.tools.servers.Servers() {
		response.Servers = append(response.Servers, &tooldv1.Server{
			Kind: "mcp", Name: convert.Visible(server.Name), Origin: convert.Visible(server.Origin), State: string(server.State),
			Message: convert.Visible(server.Why), Tools: uint32(server.Tools),
		})
	}
	for _, server := range s.judge.languages.Servers() {
		response.Servers = append(response.Servers, &tooldv1.Server{
			Kind: "language", Name: server.Language, Origin: convert.Visible(server.Root), State: server.State, Message: convert.Visible(server.Why),
		})
	}
	return response, nil
}
