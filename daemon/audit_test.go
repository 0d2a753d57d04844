// What records hold for a later audit: who, what, and why it was allowed.

package daemon_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestRecordsSayWhy(t *testing.T) {
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte("{\"permissions\": {\n\"allow\": [\"Bash(touch *)\"]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	c := h.converse()
	c.attach(&tooldv1.Attach{
		SessionId: "s", Roots: []string{h.root}, Capabilities: &tooldv1.Capabilities{Answers: true},
		Client: &tooldv1.ClientInfo{Name: "editor", Version: "1.2"},
	})
	path := h.file("f", "text\n")
	c.use("ruled", "Bash", `{"command":"touch x"}`)
	c.until("ruled OK")
	c.use("free", "Read", `{"file_path":"`+path+`"}`)
	c.until("free OK")
	c.use("asked", "Bash", `{"command":"rm x"}`)
	c.reply(c.until("asked asks").GetQuestion(), tooldv1.Decision_DECISION_ALLOW)
	c.until("asked OK")
	started := map[string]*tooldv1.Started{}
	titles := map[string]string{}
	var peers []string
	for _, event := range h.records("s") {
		if s := event.GetStarted(); s != nil {
			started[s.GetToolUseId()] = s
		}
		if a := event.GetAccepted(); a != nil {
			titles[a.GetToolUseId()] = a.GetTitle()
		}
		if p := event.GetSessionChanged().GetPeer(); p != nil {
			peers = append(peers, fmt.Sprint(p.GetUid(), " ", p.GetClientName(), " ", p.GetClientVersion()))
		}
	}
	want(t, titles, map[string]string{"ruled": "Bash(touch x)", "free": "Read(" + path + ")", "asked": "Bash(rm x)"})
	want(t, peers, []string{fmt.Sprint(os.Getuid(), " editor 1.2")})
	ruled := started["ruled"].GetGrounds()
	if len(ruled) != 1 || ruled[0].GetRule() != "Bash(touch *)" || ruled[0].GetList() != "allow" || ruled[0].GetFile() != h.settings || ruled[0].GetLine() != 2 {
		t.Errorf("grounds %v, want the rule with its place", ruled)
	}
	for id, s := range started {
		if s.GetReason() == "" || len(s.GetGrounds()) == 0 || s.GetLevel() == tooldv1.Level_LEVEL_UNSPECIFIED || s.GetAsked() != (id == "asked") {
			t.Errorf("%s: %v; want reason, grounds, level and whether somebody was asked", id, s)
		}
	}
	other := h.converse()
	other.attach(&tooldv1.Attach{SessionId: "s", Client: &tooldv1.ClientInfo{Name: "agent"}})
	if p := other.until("").GetSessionChanged().GetPeer(); !strings.HasPrefix(p.GetClientName(), "agent") {
		t.Errorf("peer %v, want the agent", p)
	}
}
