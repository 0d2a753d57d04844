package daemon_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestForANode: a daemon of a cluster's node does not mention its container's user and names no settings file to users, and a rule
// for the user is kept in the session, since the file is the node's.
func TestForANode(t *testing.T) {
	h := prepare(t)
	const own = `{"limits": {"drain": "7s"}}`
	if err := os.WriteFile(h.settings, []byte(own), 0o400); err != nil {
		t.Fatal(err)
	}
	config := h.config()
	config.Node = true
	h.begin(config)
	mute := h.converse()
	mute.attach(&tooldv1.Attach{SessionId: "mute", Roots: []string{h.root}, Client: &tooldv1.ClientInfo{Name: "test"}})
	mute.write(h, "a")
	denied := shown(mute.until("a DENIED cannot_ask").GetToolResult())
	if !strings.Contains(denied, "to the session's settings (options.settings_json") || strings.Contains(denied, h.settings) {
		t.Errorf("the advice is %q", denied)
	}
	for _, event := range mute.events {
		if peer := event.GetSessionChanged().GetPeer(); peer != nil && (peer.GetPrincipal() != "" || peer.GetUid() != 0 || peer.GetClientName() != "test") {
			t.Errorf("the peer is %v", peer)
		}
	}
	c := h.join("s", nil)
	c.write(h, "b")
	c.reply(c.question("b"), allow, func(a *tooldv1.Answer) {
		a.Remember = []*tooldv1.Remember{{Rule: fmt.Sprintf("Edit(/%s/**)", h.root), List: "allow", Scope: tooldv1.Scope_SCOPE_USER}}
	})
	c.until("b OK")
	c.write(h, "c")
	c.until("c OK") // unasked
	if text, err := os.ReadFile(h.settings); err != nil || string(text) != own {
		t.Errorf("the node's settings are %s, %v", text, err)
	}
	bypass := h.join("bypass", free())
	if text := bypass.until("notice bypass_mode").GetNotice().GetMessage(); strings.Contains(text, "root") {
		t.Errorf("the notice is %q", text)
	}
}
