package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/relay"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// open attaches to a session, and closes it with the test.
func open(t *testing.T, dial toold.Dial, attach *tooldv1.Attach) *toold.Session {
	t.Helper()
	s, err := toold.Open(t.Context(), dial, attach)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// use sends a call of Echo in a turn of its own.
func use(t *testing.T, s *toold.Session, id string) {
	t.Helper()
	for _, m := range []*tooldv1.ExecuteRequest{
		{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{Id: id, Name: "Echo", TurnId: id, Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"text":"` + id + `"}`}}}},
		{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: id}}},
	} {
		if err := s.Send(m); err != nil {
			t.Fatal(err)
		}
	}
}

// untilEnd returns the events up to the end of the next turn, one word each, with the numbers of records.
func untilEnd(t *testing.T, s *toold.Session) (events []string) {
	t.Helper()
	for event := range s.Events() {
		switch {
		case event.Err != nil:
			t.Fatal(event.Err)
		case event.GetAttached() != nil:
			events = append(events, "attached")
		case event.GetAccepted() != nil:
			events = append(events, fmt.Sprint(event.GetSeq(), " accepted"))
		case event.GetStarted() != nil:
			events = append(events, fmt.Sprint(event.GetSeq(), " started"))
		case event.GetToolResult() != nil:
			events = append(events, fmt.Sprint(event.GetSeq(), " ", event.GetToolResult().GetContent()[0].GetText()))
		case event.GetTurnEnded() != nil:
			return append(events, fmt.Sprint(event.GetSeq(), " ended"))
		}
	}
	return events
}

func want(t *testing.T, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("events %q, want %q", got, wanted)
	}
}

func refused(t *testing.T, err error, code codes.Code, reason string) {
	t.Helper()
	if status.Code(err) != code || toold.Reason(err) != reason {
		t.Errorf("%v (%s), want %v %s", err, toold.Reason(err), code, reason)
	}
}

// TestCall: a session, a call, and the same session by its name through another gateway.
func TestCall(t *testing.T) {
	c := newCluster(t, "anna")
	c.node("n1")
	_, one := c.gateway(c.config("g1"))
	_, two := c.gateway(c.config("g2"))
	s := open(t, c.dial("anna", one), &tooldv1.Attach{Roots: []string{c.workspace("w", "src"), c.workspace("w", "")}})
	use(t, s, "a")
	want(t, untilEnd(t, s), "attached", "3 accepted", "4 started", "5 a", "6 ended")

	again := open(t, c.dial("anna", two), &tooldv1.Attach{SessionId: s.ID(), AfterSeq: proto.Uint64(4)})
	want(t, untilEnd(t, again), "attached", "5 a", "6 ended")
	use(t, again, "b")
	want(t, untilEnd(t, again), "7 accepted", "8 started", "9 b", "10 ended")

	got, err := c.conn("anna", two).Sessions.GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: s.ID()})
	if err != nil || got.GetSession().GetRoots()[0] != c.mount+"/src" {
		t.Errorf("%v, %v", got, err)
	}
	info, err := c.conn("anna", one).Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil || info.GetPrincipal() != "token:anna" || info.GetVersion() != "test" || !slices.Contains(info.GetFeatures(), "cluster") {
		t.Errorf("%v, %v", info, err)
	}
}

// TestNodeIsLost: the stream breaks in the middle of a call, and goes on at another node through another gateway.
func TestNodeIsLost(t *testing.T) {
	c := newCluster(t, "anna")
	kill := map[string]func(){"n1": c.node("n1"), "n2": c.node("n2")}
	_, one := c.gateway(c.config("g1"))
	_, two := c.gateway(c.config("g2"))
	s := open(t, c.dial("anna", one, two), &tooldv1.Attach{SessionId: "s", AfterSeq: proto.Uint64(0), Roots: []string{c.workspace("w", "")}})
	release := c.hold("a")
	use(t, s, "a")
	<-c.begun
	at := place{"token:anna", "w"}
	first := c.ownerOf(at)
	kill[first]()
	var got []uint64
	for attached := 0; attached < 2 || !slices.Contains(got, 6); {
		event := <-s.Events()
		switch {
		case event.Err != nil:
			t.Fatal(event.Err)
		case event.GetAttached() != nil:
			if attached++; attached == 2 {
				release()
			}
		case event.GetSeq() > 0:
			got = append(got, event.GetSeq())
		}
		if result := event.GetToolResult(); result != nil && result.GetContent()[0].GetText() != "a" {
			t.Errorf("result %v", result)
		}
	}
	if !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("records %v, want each once", got)
	}
	if now := c.ownerOf(at); now == first || now == "" {
		t.Errorf("the workspace is at %q", now)
	}
}

// TestOwnersAreFound: gateways that guess another node than the owner are told.
func TestOwnersAreFound(t *testing.T) {
	c := newCluster(t, "anna")
	nodes := []string{"n1", "n2", "n3"}
	for _, name := range nodes {
		c.node(name)
	}
	for n := range 9 {
		c.owners[place{"token:anna", fmt.Sprint("w", n)}] = nodes[n%3]
	}
	_, address := c.gateway(c.config("g"))
	for n := range 9 {
		s := open(t, c.dial("anna", address), &tooldv1.Attach{Roots: []string{c.workspace(fmt.Sprint("w", n), "")}})
		use(t, s, "a")
		untilEnd(t, s)
		if owner := c.ownerOf(place{"token:anna", fmt.Sprint("w", n)}); owner != nodes[n%3] {
			t.Errorf("w%d has moved to %s", n, owner)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := newCluster(t, "anna", "ben")
	c.node("n1")
	_, address := c.gateway(c.config("g"))
	conn := c.conn("anna", address)
	for name, test := range map[string]struct {
		attach *tooldv1.Attach
		code   codes.Code
		reason string
	}{
		"an absolute path":       {&tooldv1.Attach{Roots: []string{"/etc"}}, codes.InvalidArgument, "invalid_root"},
		"two workspaces":         {&tooldv1.Attach{Roots: []string{"workspace:a", "workspace:b"}}, codes.InvalidArgument, "invalid_root"},
		"out of it":              {&tooldv1.Attach{Roots: []string{"workspace:a/../../etc"}}, codes.InvalidArgument, "invalid_root"},
		"a workspace of no name": {&tooldv1.Attach{Roots: []string{"workspace:/x"}}, codes.InvalidArgument, "invalid_root"},
		"nothing":                {&tooldv1.Attach{}, codes.InvalidArgument, "workspace_needed"},
		"no Attach":              {nil, codes.InvalidArgument, "workspace_needed"},
		"an unknown session":     {&tooldv1.Attach{SessionId: "s"}, codes.NotFound, "unknown_session"},
		"the daemon's own":       {&tooldv1.Attach{SessionId: "s/s", Roots: []string{c.workspace("w", "")}}, codes.InvalidArgument, "invalid_session_id"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := conn.Tools.Execute(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first := &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_EndTurn{}}
			if test.attach != nil {
				first = &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: test.attach}}
			}
			_ = stream.Send(first)
			_, err = stream.Recv()
			refused(t, err, test.code, test.reason)
		})
	}
	_, err := conn.Daemon.Shutdown(t.Context(), &tooldv1.ShutdownRequest{})
	refused(t, err, codes.PermissionDenied, "not_local")
	_, err = conn.Sessions.CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "s"})
	refused(t, err, codes.NotFound, "unknown_session")
	_, err = conn.Tools.ListTools(t.Context(), &tooldv1.ListToolsRequest{})
	refused(t, err, codes.InvalidArgument, "workspace_needed")
	err = conn.Invoke(t.Context(), "/toold.v1.ToolService/Nothing", &tooldv1.ListToolsRequest{}, &tooldv1.ListToolsResponse{})
	refused(t, err, codes.Unimplemented, "not_served")
	_, err = c.conn("nobody", address).Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	refused(t, err, codes.Unauthenticated, "wrong_token")

	open(t, c.dial("anna", address), &tooldv1.Attach{SessionId: "mine", Roots: []string{c.workspace("w", "")}})
	_, err = c.conn("ben", address).Sessions.GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "mine"})
	refused(t, err, codes.NotFound, "unknown_session")
}

// TestOneNameOneSession: a session's name leads to one workspace, unless what the index has is wrong.
func TestOneNameOneSession(t *testing.T) {
	c := newCluster(t, "anna")
	c.node("n1")
	g, address := c.gateway(c.config("g1"))
	_, other := c.gateway(c.config("g2"))
	open(t, c.dial("anna", address), &tooldv1.Attach{SessionId: "s", Roots: []string{c.workspace("w", "")}})
	_, err := toold.Open(t.Context(), c.dial("anna", other), &tooldv1.Attach{SessionId: "s", Roots: []string{c.workspace("v", "")}})
	refused(t, err, codes.FailedPrecondition, "session_elsewhere")
	open(t, c.dial("anna", other), &tooldv1.Attach{SessionId: "s", Roots: []string{c.workspace("w", "")}})

	if err := g.index.note(t.Context(), "token:anna", "v", "lie"); err != nil {
		t.Fatal(err)
	}
	_, err = c.conn("anna", other).Sessions.GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "lie"})
	refused(t, err, codes.NotFound, "unknown_session")
	s := open(t, c.dial("anna", other), &tooldv1.Attach{SessionId: "lie", Roots: []string{c.workspace("w", "")}})
	use(t, s, "a")
	untilEnd(t, s)
}

func TestListSessions(t *testing.T) {
	c := newCluster(t, "anna", "ben")
	c.node("n1")
	c.node("n2")
	_, address := c.gateway(c.config("g"))
	var all []string
	for n := range 7 {
		name := fmt.Sprint("s", n)
		open(t, c.dial("anna", address), &tooldv1.Attach{SessionId: name, Roots: []string{c.workspace(fmt.Sprint("w", n%3), "src")}})
		all = append([]string{fmt.Sprintf("%s workspace:w%d/src", name, n%3)}, all...) // newest first
	}
	open(t, c.dial("ben", address), &tooldv1.Attach{SessionId: "bens", Roots: []string{c.workspace("w0", "")}})
	conn := c.conn("anna", address)
	for _, size := range []int32{0, 1, 2, 3, 100} {
		var got []string
		for request := (&tooldv1.ListSessionsRequest{PageSize: size}); ; {
			page, err := conn.Sessions.ListSessions(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if size > 0 && len(page.GetSessions()) > int(size) {
				t.Errorf("%d sessions in a page of %d", len(page.GetSessions()), size)
			}
			for _, s := range page.GetSessions() {
				got = append(got, s.GetSessionId()+" "+s.GetRoots()[0])
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				break
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("in pages of %d: %q, want %q", size, got, all)
		}
	}
	_, err := conn.Sessions.ListSessions(t.Context(), &tooldv1.ListSessionsRequest{PageSize: -1})
	refused(t, err, codes.InvalidArgument, "invalid_page_size")
	_, err = conn.Sessions.ListSessions(t.Context(), &tooldv1.ListSessionsRequest{PageToken: "x"})
	refused(t, err, codes.InvalidArgument, "invalid_page_token")
}

// TestListWithoutANode: the list has what the other nodes know, and names the workspaces that are missing.
func TestListWithoutANode(t *testing.T) {
	c := newCluster(t, "anna")
	c.node("n1")
	var reading sync.WaitGroup
	defer reading.Wait()
	stop := c.serveNode("n2", func(stream grpc.ServerStream) error { return c.relay(stream, "n2", &reading) })
	c.owners[place{"token:anna", "here"}], c.owners[place{"token:anna", "gone"}] = "n1", "n2"
	_, patient := c.gateway(c.config("g1"))
	for _, workspace := range []string{"here", "gone"} {
		open(t, c.dial("anna", patient), &tooldv1.Attach{SessionId: "in-" + workspace, Roots: []string{c.workspace(workspace, "")}}).Close()
	}
	stop() // its workspaces stay its own, as far as the other node knows
	config := c.config("g2")
	config.Patience = time.Second
	_, address := c.gateway(config)
	all, err := c.conn("anna", address).ListSessions(t.Context(), false)
	unlisted, is := errors.AsType[*toold.UnlistedError](err)
	if !is || len(unlisted.Workspaces) != 1 || unlisted.Workspaces[0].GetWorkspace() != "gone" || !slices.Contains([]string{"no_node", "no_answer"}, unlisted.Workspaces[0].GetCode()) || unlisted.Workspaces[0].GetText() == "" {
		t.Errorf("the error is %v", err)
	}
	if len(all) != 1 || all[0].GetSessionId() != "in-here" {
		t.Errorf("the sessions are %v", all)
	}
	c.owners[place{"token:anna", "here"}] = "n2"
	if _, err = c.conn("anna", address).Sessions.ListSessions(t.Context(), &tooldv1.ListSessionsRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("where no workspace answers: %v", err)
	}
}

// TestListLeavesTime: a client with a deadline learns of the workspaces that have answered before it.
func TestListLeavesTime(t *testing.T) {
	g, now := &Gateway{config: Config{Patience: 20 * time.Second}}, time.Now()
	for left, want := range map[time.Duration]time.Duration{time.Second: 750 * time.Millisecond, time.Minute: 20 * time.Second, -time.Second: -750 * time.Millisecond} {
		ctx, cancel := context.WithDeadline(t.Context(), now.Add(left))
		if got := g.listUntil(ctx, now).Sub(now); got != want {
			t.Errorf("of %v it waits for %v, want %v", left, got, want)
		}
		cancel()
	}
	if got := g.listUntil(t.Context(), now).Sub(now); got != 20*time.Second {
		t.Errorf("without a deadline it waits for %v", got)
	}
}

// TestNoNode: a client is told when to try again, and the request succeeds as soon as there is a node.
func TestNoNode(t *testing.T) {
	c := newCluster(t, "anna")
	config := c.config("g1")
	config.Patience = time.Millisecond
	_, hasty := c.gateway(config)
	_, patient := c.gateway(c.config("g2"))
	attach := &tooldv1.Attach{SessionId: "s", Roots: []string{c.workspace("w", "")}}
	_, err := toold.Open(t.Context(), c.dial("anna", hasty), attach)
	refused(t, err, codes.Unavailable, "no_node")
	if !slices.ContainsFunc(status.Convert(err).Details(), func(d any) bool { _, is := d.(*errdetails.RetryInfo); return is }) {
		t.Errorf("%v has no RetryInfo", err)
	}
	started := make(chan error, 1)
	go func() {
		s, err := toold.Open(t.Context(), c.dial("anna", patient), attach)
		if err == nil {
			s.Close()
		}
		started <- err
	}()
	c.node("n1")
	if err := <-started; err != nil {
		t.Error(err)
	}
}

// TestRunTool: a stream that the server alone has, and a deadline of the client's.
func TestRunTool(t *testing.T) {
	c := newCluster(t, "anna")
	c.node("n1")
	_, address := c.gateway(c.config("g"))
	conn := c.conn("anna", address)
	run := func(ctx context.Context, text string) (string, error) {
		stream, err := conn.Tools.RunTool(ctx, &tooldv1.RunToolRequest{Name: "Echo", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: `{"text":"` + text + `"}`}, Roots: []string{c.workspace("w", "")}})
		var got strings.Builder
		for err == nil {
			var response *tooldv1.RunToolResponse
			if response, err = stream.Recv(); err == nil && response.GetEvent().GetToolResult() != nil {
				got.WriteString(response.GetEvent().GetToolResult().GetContent()[0].GetText())
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return got.String(), err
	}
	large := strings.Repeat("x", 20_000)
	if got, err := run(t.Context(), large); got != large || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	release := c.hold("held")
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-c.begun
		cancel()
	}()
	if _, err := run(ctx, "held"); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
}

// TestGatewayIsLost: the client goes on through another gateway, and the call has not noticed.
func TestGatewayIsLost(t *testing.T) {
	c := newCluster(t, "anna")
	c.node("n1")
	first, one := c.gateway(c.config("g1"))
	_, two := c.gateway(c.config("g2"))
	s := open(t, c.dial("anna", one, two), &tooldv1.Attach{Roots: []string{c.workspace("w", "")}})
	release := c.hold("a")
	use(t, s, "a")
	<-c.begun
	first.Stop()
	results := 0
	for attached := 0; attached < 2 || results == 0; {
		event := <-s.Events()
		if event.Err != nil {
			t.Fatal(event.Err)
		}
		if event.GetAttached() != nil {
			if attached++; attached == 2 {
				release()
			}
		}
		if event.GetToolResult() != nil {
			results++
		}
	}
	want(t, untilEnd(t, s), "6 ended")
}

// TestSlowClient: a client that does not read stops the node's stream, and neither other clients nor the gateway's memory.
func TestSlowClient(t *testing.T) {
	const messages, size = 400, 64 << 10 // together 25 MiB, of which the windows on the way take 1
	c := newCluster(t, "anna")
	sent := make(chan struct{})
	c.serveNode("n1", func(stream grpc.ServerStream) error {
		if err := relay.Accept(stream, "n1"); err != nil {
			return err
		}
		if method, _ := grpc.MethodFromServerStream(stream); method == tooldv1.ToolService_GetCall_FullMethodName {
			return stream.SendMsg(&tooldv1.GetCallResponse{})
		}
		defer close(sent)
		for n := range messages {
			if err := stream.SendMsg(&tooldv1.ReadOutputResponse{Offset: uint64(n), Data: make([]byte, size)}); err != nil {
				return err
			}
		}
		return nil
	})
	g, address := c.gateway(c.config("g"))
	if err := g.index.note(t.Context(), "token:anna", "w", "s"); err != nil {
		t.Fatal(err)
	}
	conn := c.conn("anna", address)
	slow, err := conn.Tools.ReadOutput(t.Context(), &tooldv1.ReadOutputRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := conn.Tools.GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-sent:
		t.Error("everything was sent to a client that does not read")
	default:
	}
	for n := range messages {
		if got, err := slow.Recv(); err != nil || got.GetOffset() != uint64(n) || len(got.GetData()) != size {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if _, err := slow.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
