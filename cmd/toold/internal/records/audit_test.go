package records

import (
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// recorded makes a session's records, one a second from noon.
func recorded(events ...*tooldv1.ExecuteResponse) []*tooldv1.ExecuteResponse {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	for i, e := range events {
		e.Seq, e.Turn, e.Time = uint64(i+1), 1, timestamppb.New(noon.Add(time.Duration(i)*time.Second))
	}
	return events
}

func usedBy(name string) *tooldv1.ExecuteResponse {
	return &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_SessionChanged{SessionChanged: &tooldv1.SessionChanged{
		Peer: &tooldv1.Peer{Uid: 1000, ClientName: name, ClientVersion: "1.2"},
	}}}
}

func acceptedAs(id, tool, title string) *tooldv1.ExecuteResponse {
	return &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_Accepted{Accepted: &tooldv1.Accepted{ToolUseId: id, Name: tool, Title: title}}}
}

func startedFor(id, reason string, asked bool, grounds ...*tooldv1.Ground) *tooldv1.ExecuteResponse {
	return &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_Started{Started: &tooldv1.Started{ToolUseId: id, Reason: reason, Asked: asked, Grounds: grounds}}}
}

func endedAs(id string, outcome tooldv1.Outcome, ran time.Duration, wrong *tooldv1.Error) *tooldv1.ExecuteResponse {
	return &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_ToolResult{ToolResult: &tooldv1.ToolResult{
		ToolUseId: id, Outcome: outcome, Error: wrong, Usage: &tooldv1.Usage{Ran: durationpb.New(ran)},
	}}}
}

var history = recorded(
	usedBy("editor"),
	acceptedAs("a", "Bash", "Bash(npm test)"),
	startedFor("a", "The allow rule Bash(npm *) is about it.", false, &tooldv1.Ground{Rule: "Bash(npm *)", List: "allow", File: "/home/u/.config/toold/settings.json", Line: 4}),
	endedAs("a", tooldv1.Outcome_OUTCOME_OK, 2300*time.Millisecond, nil),
	acceptedAs("b", "Bash", "Bash(rm -rf / \x1b[2J)"),
	endedAs("b", tooldv1.Outcome_OUTCOME_DENIED, 0, &tooldv1.Error{Code: "rule_denied", Message: "The deny rule Bash(rm *) in /etc/toold/settings.json:3 is about it. Leave it."}),
	usedBy("agent"),
	acceptedAs("c", "Write", "Write(/home/u/a/very/long/path/that/goes/on/and/on/and/on/to/a/file/far/down.txt)"),
	startedFor("c", "Nothing allows it.", true),
	endedAs("c", tooldv1.Outcome_OUTCOME_ERROR, 5*time.Millisecond, &tooldv1.Error{Code: "disk_full", Message: strings.Repeat("word ", 100)}),
	acceptedAs("d", "Read", "Read(/etc/hosts)"),
	startedFor("d", "Reading there is free.", false),
	acceptedAs("e", "Bash", "Bash(make)"),
)

// auditOf returns the lines for a terminal of that width.
func auditOf(t *testing.T, f filter, width int) []string {
	t.Helper()
	wanted, err := newSelection(f, time.Date(2026, 11, 21, 13, 0, 0, 0, time.Local))
	if err != nil {
		t.Fatal(err)
	}
	a := newAudit(&wanted, terminal.Ink{}, width)
	var lines []string
	for _, e := range history {
		lines = append(lines, a.take(e)...)
	}
	return strings.Split(strings.Join(append(lines, a.open()...), "\n"), "\n")
}

func TestAudit(t *testing.T) {
	t.Parallel()
	want := strings.Split(strings.Trim(`
by user 1000, editor 1.2
2026-11-21 12:00:03  ok          2.3 s    Bash(npm test)
    allowed: The allow rule Bash(npm *) is about it. (allow rule Bash(npm *) in
    /home/u/.config/toold/settings.json:4)
2026-11-21 12:00:05  denied               Bash(rm -rf / ␛[2J)
    rule_denied: The deny rule Bash(rm *) in /etc/toold/settings.json:3 is about
    it. Leave it.
by user 1000, agent 1.2
2026-11-21 12:00:09  error       5 ms     Write(/home/u/a/very/long/path/that/g…
    asked and allowed: Nothing allows it.
    disk_full: word word word word word word word word word word word word word
    word word word word word word word word word word word word word word word
    word word word word word word word word word word word word word word word
    word word word word word word word word word word word word word word word …
2026-11-21 12:00:10  running              Read(/etc/hosts)
    allowed: Reading there is free.
2026-11-21 12:00:12  waiting              Bash(make)`, "\n"), "\n")
	got := auditOf(t, filter{}, 80)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, width := range []int{40, 80, 120} {
		for _, line := range auditOf(t, filter{}, width) {
			if lipgloss.Width(line) > max(width, 43) { // below that the facts alone are wider
				t.Errorf("%d cells in %d: %q", lipgloss.Width(line), width, line)
			}
		}
	}
}

// TestAuditFilters counts the calls that are left.
func TestAuditFilters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		filter filter
		want   string // of each call that is left, the tool
	}{
		{filter{tool: "Bash"}, "Bash Bash Bash"},
		{filter{outcome: "denied"}, "Bash"},
		{filter{since: "2026-11-21T12:00:06"}, "Write Read Bash"},
		{filter{until: "2026-11-21 12:00:06"}, "Bash Bash"},
		{filter{since: "59m54s", until: "59m50s"}, "Write"},
		{filter{since: "2026-11-22"}, ""},
	} {
		var tools []string
		for _, line := range auditOf(t, test.filter, 80) {
			if name, _, is := strings.Cut(strings.TrimSpace(line[min(len(line), 42):]), "("); is && strings.HasPrefix(line, "2026") {
				tools = append(tools, name)
			}
		}
		if got := strings.Join(tools, " "); got != test.want {
			t.Errorf("%+v: %q, want %q", test.filter, got, test.want)
		}
	}
}
