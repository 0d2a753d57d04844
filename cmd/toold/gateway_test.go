package main

import (
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestStatusOfAGateway: what a gateway does not have is not written, and the sessions are those of the list.
func TestStatusOfAGateway(t *testing.T) {
	console := &cli.Console{}
	s := &app{Console: console, daemon: &connect.Finder{Console: console}}
	s.daemon.Remote.Address = "users.example:7443"
	text := s.infoText(&tooldv1.GetInfoResponse{Version: "1", Features: []string{"cluster"}, Principal: "token:alice"}, 3)
	for _, want := range []string{"tcp://users.example:7443", "token:alice", "a cluster, as one of its gateways", "sessions  3"} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"sandbox", "root", "running"} {
		if strings.Contains(text, not) {
			t.Errorf("it has %q:\n%s", not, text)
		}
	}
}

// TestRootsOfWorkspaces: a name that no workspace has is refused before anything is sent.
func TestRootsOfWorkspaces(t *testing.T) {
	for root, want := range map[string]string{
		"workspace:w": "", "workspace:w/a/..b": "", "workspace:..w": "",
		"workspace:": "no name of a workspace", "workspace:../x": "no name of a workspace", "workspace:./x": "no name of a workspace", "workspace:w/../x": `through ".."`,
	} {
		_, _, err := (&placeFlags{roots: []string{root}}).read()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", root, err, want)
		}
	}
}
