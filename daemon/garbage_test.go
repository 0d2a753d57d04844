// Bad input on every method: the daemon answers with typed errors and lives.

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// streaming describes a method with streams both ways.
var streaming = grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// throw sends messages to a method as bytes, half-closes, and gives the status at the end.
func (h *house) throw(ctx context.Context, method string, messages ...[]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := h.conn.NewStream(ctx, &streaming, method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	for _, message := range messages {
		if stream.SendMsg(message) != nil {
			break // the status is below
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var answer []byte
		if err := stream.RecvMsg(&answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		} else if method == tooldv1.SessionService_WatchSessions_FullMethodName {
			return nil // it goes on
		}
	}
}

// lives checks that the daemon still serves.
func (h *house) lives(t testing.TB) {
	t.Helper()
	events, err := h.run(&tooldv1.RunToolRequest{Name: "Glob", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: `{"pattern":"*"}`}})()
	if err != nil || len(events) == 0 || !strings.HasSuffix(tell(events[len(events)-1]), " OK") {
		t.Fatalf("%q, %v; want a daemon that works", story(events), err)
	}
}

// methods returns every method of our services but the one that ends the daemon.
func methods() (names []string) {
	for _, service := range []grpc.ServiceDesc{tooldv1.ToolService_ServiceDesc, tooldv1.SessionService_ServiceDesc, tooldv1.DaemonService_ServiceDesc} {
		for _, m := range service.Methods {
			if m.MethodName != "Shutdown" { // an upgrade is refused here
				names = append(names, "/"+service.ServiceName+"/"+m.MethodName)
			}
		}
		for _, s := range service.Streams {
			names = append(names, "/"+service.ServiceName+"/"+s.StreamName)
		}
	}
	return names
}

// tame keeps garbage from running what it should not: it has no Bash.
func tame(t testing.TB) *house {
	h := prepare(t)
	config := h.config()
	config.Tools = config.Tools[:5]
	h.begin(config)
	return h
}

// TestRandomBytes: whatever the bytes are, a method answers or refuses with a status, and the daemon lives.
func TestRandomBytes(t *testing.T) {
	h := tame(t)
	random := rand.New(rand.NewPCG(3, 4))
	var deep []byte
	for range 5000 { // a Struct in a Struct in a Struct
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), deep)
	}
	for _, method := range methods() {
		for range 30 {
			message := make([]byte, random.IntN(200))
			for i := range message {
				message[i] = byte(random.Uint32())
			}
			typed(t, method, h.throw(t.Context(), method, message))
			typed(t, method, h.throw(t.Context(), method, mutant(random)))
		}
		typed(t, method, h.throw(t.Context(), method))
		typed(t, method, h.throw(t.Context(), method, nil, nil))
		typed(t, method, h.throw(t.Context(), method, deep))
	}
	h.lives(t)
}

// typed checks that an error is a status that a daemon may give: its own, with a reason, or grpc-go's about what it
// could not decode.
func typed(t testing.TB, method string, err error) {
	t.Helper()
	switch code := status.Code(err); {
	case err == nil, reasonOf(err) != "":
	case code == codes.Internal && strings.Contains(err.Error(), "grpc:"), code == codes.Internal && strings.Contains(err.Error(), "cardinality"):
	case code == codes.Internal && strings.Contains(err.Error(), "unmarshal"):
	default:
		t.Errorf("%s: %v", method, err)
	}
}

// mutant is a message of ours with some bytes changed.
func mutant(random *rand.Rand) []byte {
	whole, err := proto.Marshal(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{
		SessionId: "mutant", Roots: []string{"/tmp"}, Env: map[string]string{"A": "b"}, AfterSeq: proto.Uint64(0),
		Options: &tooldv1.Options{Start: tooldv1.Start_START_STREAMING.Enum(), MaxConcurrency: proto.Int32(3)},
	}}})
	if err != nil {
		panic(err)
	}
	for range 1 + random.IntN(4) {
		whole[random.IntN(len(whole))] = byte(random.Uint32())
	}
	return whole
}

// TestBadToolUses: what is wrong with a tool use is told in its result, or in a notice when it is not accepted, and the
// stream goes on.
func TestBadToolUses(t *testing.T) {
	h := tame(t)
	c := h.join("s", free())
	long := strings.Repeat("x", 300)
	for n, test := range []struct {
		use  *tooldv1.ToolUse
		told string
	}{
		{&tooldv1.ToolUse{}, "INVALID unknown_tool"},
		{&tooldv1.ToolUse{Name: strings.Repeat("N", 5<<20)}, "INVALID unknown_tool"},
		{&tooldv1.ToolUse{Name: "read"}, "INVALID unknown_tool"},
		{&tooldv1.ToolUse{Name: "Read"}, "INVALID invalid_input"},
		{text("Read", "not json"), "INVALID invalid_input"},
		{text("Read", "[]"), "INVALID invalid_input"},
		{text("Read", `{"file_path":"x"} trailing`), "INVALID invalid_input"},
		{text("Read", strings.Repeat("[", 1<<18)), "INVALID invalid_input"},
		{text("Read", strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)), "INVALID invalid_input"},
		{text("Read", `{"file_path":"`+strings.Repeat("y", 11<<20)+`"}`), "INVALID too_large"},
		{text("Read", `{"file_path":"/`+strings.Repeat("y", 5<<20)+`"}`), "INVALID name_too_long"},
		{text("Read", `{`+strings.Repeat(`"a":1,`, 1<<16)+`"b":1}`), "INVALID invalid_input"},
		{text("Read", unknownFields(5000)), "INVALID invalid_input"},
		{&tooldv1.ToolUse{Name: "Read", Arguments: &tooldv1.ToolUse_Input{Input: &structpb.Struct{Fields: map[string]*structpb.Value{"file_path": {}}}}}, "INVALID invalid_input"},
		{&tooldv1.ToolUse{Name: "Read", Timeout: durationpb.New(-1)}, "INVALID invalid_input"},
		{&tooldv1.ToolUse{Name: "Read", Timeout: &durationpb.Duration{Seconds: 1 << 60}}, "INVALID invalid_input"},
		{&tooldv1.ToolUse{Name: "Read", ParentToolUseId: "nobody"}, "INVALID unknown_parent"},
		{&tooldv1.ToolUse{Id: long, Name: "Read"}, "notice invalid_id"},
		{&tooldv1.ToolUse{TurnId: long, Name: "Read"}, "notice invalid_id"},
		{&tooldv1.ToolUse{ParentToolUseId: long, Name: "Read"}, "notice invalid_id"},
	} {
		if test.use.GetId() == "" {
			test.use.Id = fmt.Sprint(n)
		}
		c.ask(test.use)
		if !strings.HasPrefix(test.told, "notice") {
			test.told = test.use.GetId() + " " + test.told
		}
		c.until(test.told)
		if size := proto.Size(c.events[len(c.events)-1]); size > 1<<20 {
			t.Errorf("%s is told in %d bytes", test.told, size)
		}
	}
	for _, message := range []*tooldv1.ExecuteRequest{
		{},
		{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: "none"}}},
		{Message: &tooldv1.ExecuteRequest_DiscardTurn{DiscardTurn: &tooldv1.DiscardTurn{TurnId: "none"}}},
		{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{QuestionId: strings.Repeat("q", 5<<20)}}},
		{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: &tooldv1.BufferChanged{}}},
	} {
		c.say(message)
		if notice := c.until("notice").GetNotice(); len(notice.GetMessage()) > 500 || notice.GetMessage() == "" {
			t.Errorf("notice %v", notice)
		}
	}
	want(t, strings.Join(story(c.events[len(c.events)-5:]), ", "), "notice unknown_message, notice unknown_turn, notice unknown_turn, notice question_closed, notice no_buffers")
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{}}})
	refused(t, c.closed(), codes.InvalidArgument, "attach_not_first")
	h.lives(t)
}

func text(name, input string) *tooldv1.ToolUse {
	return &tooldv1.ToolUse{Name: name, Arguments: &tooldv1.ToolUse_InputJson{InputJson: input}}
}

// unknownFields is an input of as many violations.
func unknownFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"unknown field %d":null,`, i)
	}
	return "{" + b.String() + `"file_path":7}`
}

// TestBadAttach: what is wrong with an Attach ends the stream with a typed status, and nothing was made.
func TestBadAttach(t *testing.T) {
	h := tame(t)
	file := h.file("file", "")
	for _, test := range []struct {
		attach string // protojson
		code   codes.Code
		reason string
	}{
		{`{"session_id":"nobody"}`, codes.NotFound, "unknown_session"},
		{`{"session_id":"../x","roots":["ROOT"]}`, codes.InvalidArgument, "invalid_session_id"},
		{`{"session_id":"..","roots":["ROOT"]}`, codes.InvalidArgument, "invalid_session_id"},
		{`{"session_id":"s","roots":["relative"]}`, codes.InvalidArgument, "invalid_root"},
		{`{"session_id":"s","roots":["ROOT/missing"]}`, codes.InvalidArgument, "invalid_root"},
		{`{"session_id":"s","roots":["` + file + `"]}`, codes.InvalidArgument, "invalid_root"},
		{`{"session_id":"s","roots":["ROOT"],"after_seq":7}`, codes.OutOfRange, "after_seq_beyond_end"},
		{`{"roots":["ROOT"],"role":7}`, codes.InvalidArgument, "invalid_role"},
		{`{"roots":["ROOT"],"env":{"A=B":"x"}}`, codes.InvalidArgument, "invalid_env"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x y","description":"d"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"mcp__x","description":"d"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x","description":"d"},{"name":"x","description":"d"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x","description":"d","input_schema_json":"{"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x","description":"d","input_schema_json":"{\"$ref\":\"file:///etc/passwd\"}"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x","description":"d","timeout":"-1s"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x","description":" "}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"client_tools":[{"name":"x","description":"` + strings.Repeat("y", 20_000) + `"}]}`, codes.InvalidArgument, "invalid_client_tool"},
		{`{"roots":["ROOT"],"options":{"settings_json":"{"}}`, codes.InvalidArgument, "invalid_settings"},
		{`{"roots":["ROOT"],"options":{"max_concurrency":0}}`, codes.InvalidArgument, "invalid_option"},
		{`{"roots":["ROOT"],"options":{"max_concurrency":101}}`, codes.InvalidArgument, "invalid_option"},
		{`{"roots":["ROOT"],"options":{"start":99}}`, codes.InvalidArgument, "invalid_option"},
		{`{"roots":["ROOT"],"options":{"permission_mode":-1}}`, codes.InvalidArgument, "invalid_option"},
		{`{"roots":["ROOT"],"options":{"tools":{"names":["Raed"]}}}`, codes.InvalidArgument, "invalid_option"},
		{`{"roots":["ROOT"],"options":{"tools":{"names":["mcp__git*"]}}}`, codes.InvalidArgument, "invalid_option"},
	} {
		attach := &tooldv1.Attach{}
		if err := protojson.Unmarshal([]byte(strings.ReplaceAll(test.attach, "ROOT", h.root)), attach); err != nil {
			t.Fatal(err)
		}
		c := h.converse()
		c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: attach}})
		if err := c.closed(); status.Code(err) != test.code || reasonOf(err) != test.reason {
			t.Errorf("%s: %s %s (%v), want %s %s", test.attach, status.Code(err), reasonOf(err), err, test.code, test.reason)
		}
	}
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{IncludeClosed: true})
	if err != nil || len(list.GetSessions()) != 0 {
		t.Errorf("%v, %v; want no session made", list, err)
	}
	h.lives(t)
}
