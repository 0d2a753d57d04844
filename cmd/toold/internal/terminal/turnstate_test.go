package terminal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// event makes an event of the turn at so many milliseconds.
func event(ms int, e any) *tooldv1.ExecuteResponse {
	r := &tooldv1.ExecuteResponse{Seq: uint64(ms + 1), Turn: 1, Time: timestamppb.New(epoch.Add(time.Duration(ms) * time.Millisecond))}
	switch e := e.(type) {
	case *tooldv1.Accepted:
		r.Event = &tooldv1.ExecuteResponse_Accepted{Accepted: e}
	case *tooldv1.Started:
		r.Event = &tooldv1.ExecuteResponse_Started{Started: e}
	case *tooldv1.Progress:
		r.Seq, r.Event = 0, &tooldv1.ExecuteResponse_Progress{Progress: e}
	case *tooldv1.Question:
		r.Event = &tooldv1.ExecuteResponse_Question{Question: e}
	case *tooldv1.ToolResult:
		r.Event = &tooldv1.ExecuteResponse_ToolResult{ToolResult: e}
	case *tooldv1.TurnEnded:
		r.Event = &tooldv1.ExecuteResponse_TurnEnded{TurnEnded: e}
	case *tooldv1.Notice:
		r.Event = &tooldv1.ExecuteResponse_Notice{Notice: e}
	case *tooldv1.SessionChanged:
		r.Event = &tooldv1.ExecuteResponse_SessionChanged{SessionChanged: e}
	default:
		panic("no such event")
	}
	return r
}

func accepted(id, name string, batch uint32) *tooldv1.Accepted {
	return &tooldv1.Accepted{ToolUseId: id, Name: name, Batch: batch, Concurrent: batch == 1}
}

func started(id string) *tooldv1.Started { return &tooldv1.Started{ToolUseId: id} }

func printed(id, text string) *tooldv1.Progress {
	chunk := &tooldv1.OutputChunk{Data: &tooldv1.OutputChunk_Text{Text: text}}
	return &tooldv1.Progress{ToolUseId: id, Update: &tooldv1.Progress_Output{Output: chunk}}
}

func resulted(id string, o tooldv1.Outcome, code, text string) *tooldv1.ToolResult {
	r := textResult(o, text)
	r.ToolUseId = id
	if code != "" {
		r.Error = &tooldv1.Error{Code: code, Message: text}
	}
	return r
}

// aTurn is a turn with something of everything.
func aTurn(t *testing.T) (*TurnState, []*tooldv1.ExecuteResponse) {
	t.Helper()
	edited := resulted("edit", tooldv1.Outcome_OUTCOME_OK, "", "Edited /w/greet.go.\n")
	diff, err := structpb.NewStruct(map[string]any{"diff": "--- a/greet.go\n+++ b/greet.go\n@@ -1 +1 @@\n-Hello\n+Good\x1b[31m morning\n"})
	if err != nil {
		t.Fatal(err)
	}
	edited.Structured = diff
	b := NewTurnState("", "/w")
	b.Add("read", "Read", `{"file_path":"/w/README.md"}`)
	b.Add("build", "Bash", `{"command":"make \u202e all\nmake test"}`)
	b.Add("grep", "Grep", `{"pattern":"TODO","path":"/w/src"}`)
	b.Add("edit", "Edit", `{"file_path":"/w/greet.go"}`)
	b.Add("rm", "Bash", `{"command":"rm -r build"}`)
	b.Add("bad", "Nope\x07", `{"pattern"`)
	b.Add("again", "LS", `{}`)
	return b, []*tooldv1.ExecuteResponse{
		event(0, accepted("read", "Read", 1)),
		event(0, accepted("build", "Bash", 1)),
		event(1, accepted("grep", "Grep", 1)),
		event(1, accepted("edit", "Edit", 2)),
		event(1, accepted("rm", "Bash", 3)),
		event(2, accepted("bad", "Nope\x07", 0)),
		event(2, resulted("bad", tooldv1.Outcome_OUTCOME_INVALID, "unknown_tool", "There is no tool Nope.")),
		event(3, &tooldv1.Notice{Code: "duplicate_id", Message: "The id again has another content.", ToolUseId: "again"}),
		event(10, started("read")),
		event(11, started("build")),
		event(12, started("grep")),
		event(110, resulted("read", tooldv1.Outcome_OUTCOME_OK, "", "     1\t# greet\n")),
		event(500, printed("build", "compiling\x1b[0m a.c\ncompiling b.c")),
		event(600, &tooldv1.Question{
			QuestionId: "q", ToolUseId: "rm", ToolName: "Bash", Title: "Bash(rm -r build)", Level: tooldv1.Level_LEVEL_DANGEROUS,
			Reason:    "The rule Bash(rm *) in /w/.toold/settings.json:3 asks about `rm -r build`. It writes /w/\x1b[2Jbuild.",
			InputJson: `{"command":"rm -r build"}`, Diff: "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
			Grounds: []*tooldv1.Ground{
				{Code: "rule", Text: "It is said.", Rule: "Bash(rm *)", List: "ask", File: "/w/.toold/settings.json", Line: 3},
				{Text: "It is not.", Rule: "Edit(\u202ebuild/**)", List: "ask", File: "/home/x/settings.json", Line: 12},
				{Text: "It has no rule."},
			},
		}),
		// everything below comes after the live picture was taken
		event(1511, resulted("build", tooldv1.Outcome_OUTCOME_OK, "", "compiling a.c\ncompiling b.c\n")),
		event(1512, resulted("grep", tooldv1.Outcome_OUTCOME_TIMED_OUT, "timeout", "Stopped after 1.5 s.")),
		event(1520, started("edit")),
		event(1530, edited),
		event(2500, resulted("rm", tooldv1.Outcome_OUTCOME_DENIED, "client_denied", "The user said no.")),
		event(2501, &tooldv1.TurnEnded{Calls: 6, Batches: 3, Wall: durationpb.New(2501 * time.Millisecond), Work: durationpb.New(3110 * time.Millisecond)}),
	}
}

const livePicture = 14 // events before the live picture

func play(b *TurnState, events []*tooldv1.ExecuteResponse) {
	for _, e := range events {
		b.Apply(e, e.GetTime().AsTime())
	}
}

func TestBoardStates(t *testing.T) {
	b, events := aTurn(t)
	other := event(5, started("rm"))
	other.TurnId = "another"
	late := event(3000, started("read"))
	play(b, append(events, other, late))
	if !b.Settled() {
		t.Error("a board whose calls have all ended is not settled")
	}
	want := map[string]state{"read": Ended, "build": Ended, "grep": Ended, "edit": Ended, "rm": Ended, "bad": Ended, "again": Refused}
	got := map[string]state{}
	for _, c := range b.Calls {
		got[c.ID] = c.State
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if n := b.Failures(); n != 4 {
		t.Errorf("%d failures, want 4: grep, rm, bad, again", n)
	}
	if !b.ByID["rm"].started.IsZero() {
		t.Error("an event of another turn moved a call")
	}
}

func TestSubject(t *testing.T) {
	for in, want := range map[string]string{
		`{"command":"ls","description":"list"}`:        "ls",
		`{"pattern":"a b","path":"/x"}`:                "a b in /x",
		`{"pattern":"*.go"}`:                           "*.go",
		`{"file_path":"/x/\u001b[2J"}`:                 "/x/␛[2J",
		`{"command":"a\nb"}`:                           "a␊b",
		`{"command":7,"path":"/x"}`:                    "/x",
		`{"todos":[]}`:                                 "",
		`{"file_path":"/w/a/b"}`:                       "a/b",
		`{"file_path":"/wide/b"}`:                      "/wide/b",
		`{"command":"/w/run"}`:                         "/w/run",
		`{"pattern":"x","path":"/w/src"}`:              "x in src",
		`not json` + "\x00":                            "not json␀",
		``:                                             "",
		`{"bash_id":"bg-1","filter":"x","command":""}`: "bg-1",
	} {
		if got := Subject(in, "/w"); got != want {
			t.Errorf("subject(%s) = %q, want %q", in, got, want)
		}
	}
}
