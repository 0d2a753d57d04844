// What is whose: nobody sees, stops or takes what belongs to another principal, nor uses up his share.

package daemon_test

import (
	"io"
	"math"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// naming maps each method to its request with that session in it; methods that name none are left out.
func naming(t *testing.T, session string) map[string][]byte {
	t.Helper()
	requests := map[string][]byte{}
	for _, name := range []protoreflect.FullName{"toold.v1.ToolService", "toold.v1.SessionService", "toold.v1.DaemonService"} {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(err)
		}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			request := dynamicpb.NewMessage(m.Input())
			at := protoreflect.Message(request)
			if attach := m.Input().Fields().ByName("attach"); attach != nil {
				at = request.Mutable(attach).Message()
			}
			field := at.Descriptor().Fields().ByName("session_id")
			if field == nil || m.Name() == "WatchSessions" { // it sends an event for a session that is unknown, and goes on
				continue
			}
			at.Set(field, protoreflect.ValueOfString(session))
			if use := at.Descriptor().Fields().ByName("tool_use"); use != nil {
				at.Mutable(use)
			}
			text, err := proto.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			requests["/"+string(name)+"/"+string(m.Name())] = text
		}
	}
	return requests
}

// sees checks that somebody finds the session by no method, or by some of them.
func (h *house) sees(t *testing.T, session string, seen bool) {
	t.Helper()
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{IncludeClosed: true})
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.ContainsFunc(list.GetSessions(), func(s *tooldv1.Session) bool { return s.GetSessionId() == session })
	_, err = h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: session})
	if listed != seen || (err == nil) != seen {
		t.Errorf("%s is listed: %v, and found: %v", session, listed, err)
	}
	if seen {
		return
	}
	for method, request := range naming(t, session) {
		if err := h.throw(t.Context(), method, request); reasonOf(err) != "unknown_session" {
			t.Errorf("%s: %v, want NOT_FOUND unknown_session", method, err)
		}
	}
	for _, err := range []error{
		h.refusedAttach(&tooldv1.Attach{SessionId: session, Roots: []string{h.root}}),
		h.refusedAttach(&tooldv1.Attach{SessionId: session, Roots: []string{h.root}, Role: tooldv1.Role_ROLE_COMPANION, AfterSeq: new(uint64)}),
	} {
		refused(t, err, codes.NotFound, "unknown_session")
	}
	_, err = h.run(&tooldv1.RunToolRequest{SessionId: session, Roots: []string{h.root}, Name: "Glob"})()
	refused(t, err, codes.NotFound, "unknown_session")
}

// refusedAttach returns what becomes of a stream that begins so.
func (h *house) refusedAttach(a *tooldv1.Attach) error {
	h.t.Helper()
	stream, err := h.tools().Execute(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if err := stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: a}}); err != nil && err != io.EOF {
		h.t.Fatal(err)
	}
	_, err = stream.Recv()
	return err
}

// TestSessionsBelong: a session is there for the principal that made it and for nobody else, by whatever method; open and
// closed, before a restart and after.
func TestSessionsBelong(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	people := func() map[string]*house {
		return map[string]*house{"user": h, "alice": h.as(address, tokenA), "robert": h.as(address, tokenB)}
	}
	if n := len(naming(t, "x")); n < 13 {
		t.Fatalf("only %d methods name a session", n)
	}
	for name, who := range people() {
		for _, session := range []string{name + "-open", name + "-closed"} {
			c := who.join(session, free())
			c.use("a", "Glob", `{"pattern":"*"}`)
			c.until("a OK")
			c.cancel()
		}
		if _, err := who.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: name + "-closed"}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		for name, who := range people() {
			for _, owner := range []string{"user", "alice", "robert"} {
				t.Run(when+"/"+name+"/"+owner, func(t *testing.T) {
					who.sees(t, owner+"-open", name == owner)
					who.sees(t, owner+"-closed", name == owner)
				})
			}
		}
	}
	check("before")
	h.stop()
	address = h.open(access.TCP{})
	check("after")
}

// TestRecordsSayWhichPrincipal: whoever looks into records later sees that it was none of the machine's users.
func TestRecordsSayWhichPrincipal(t *testing.T) {
	h := prepare(t)
	alice := h.as(h.open(access.TCP{}), tokenA)
	alice.join("s", free())
	for _, event := range alice.records("s") {
		if p := event.GetSessionChanged().GetPeer(); p != nil && (p.GetPrincipal() != "token:alice" || p.GetUid() != math.MaxUint32) {
			t.Errorf("peer %v, want alice and no user", p)
		}
	}
}

// TestSharesAreTheirOwn: one principal's sessions and calls leave room for another's.
func TestSharesAreTheirOwn(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.limit(`"sessions": 2, "max_running_calls": 2`)
	address := h.open(access.TCP{})
	alice, robert := h.as(address, tokenA), h.as(address, tokenB)
	first := alice.join("a1", free())
	first.pass("x1", reads)
	first.pass("x2", reads)
	first.pass("x3", reads)
	g.await(t, "x1", "x2")
	alice.join("a2", free())
	refused(t, alice.refusedAttach(&tooldv1.Attach{SessionId: "a3", Roots: []string{h.root}}), codes.ResourceExhausted, "too_many_sessions")
	second := robert.join("b1", free())
	second.pass("y1", reads)
	second.pass("y2", reads)
	g.await(t, "y1", "y2") // two, while alice's have all the slots that there are for her
	if g.began("x3") {
		t.Error("a third call of alice's has begun")
	}
	g.open("x1", "x2", "x3", "y1", "y2")
	first.until("x3 OK")
	second.until("y2 OK")
}

// TestHooksNotRemote: a session over TCP brings no hooks, which would run as the daemon's user; one on the socket may.
func TestHooksNotRemote(t *testing.T) {
	h := prepare(t)
	alice := h.as(h.open(access.TCP{}), tokenA)
	hooks := &tooldv1.Options{SettingsJson: proto.String(`{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}`)}
	c := alice.converse()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s", Roots: []string{h.root}, Options: hooks}}})
	refused(t, c.closed(), codes.FailedPrecondition, "hooks_not_remote")
	if n := h.d.Schedulers(); n != 0 {
		t.Errorf("a session that could not be made left %d schedulers", n)
	}
	alice.join("s", nil)
	c = alice.converse()
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s", Options: hooks}}})
	refused(t, c.closed(), codes.FailedPrecondition, "hooks_not_remote")
	h.join("t", hooks)
}
