package pipeline

import (
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// TestAnsweredHosts: a yes opens the hosts that the question named, and no address; what else permits a call opens none.
func TestAnsweredHosts(t *testing.T) {
	r := newRoom(t)
	r.Network.Allowed = []string{"known.example"}
	for _, x := range []struct {
		decision permission.Decision
		want     string
	}{
		{permission.Ask, "known.example asked.example other.example"},
		{permission.Allow, "known.example"},
	} {
		c := r.call("curl https://asked.example/x http://10.0.0.1/ http://localhost:1; git clone git@other.example:a/b")
		if !c.rights.Confining.fully() {
			t.Skip("there are no namespaces here")
		}
		c.verdict.Decision = x.decision
		if got := strings.Join(c.acting(t.Context()).Ready().Policy.Network.Allowed, " "); got != x.want {
			t.Errorf("%s: %q may be reached, want %q", x.decision, got, x.want)
		}
	}
}

// TestHiddenBeforePermission: what programs are asked before anybody has permitted the call opens nothing hidden to them.
func TestHiddenBeforePermission(t *testing.T) {
	r := newRoom(t)
	c := r.call("cat " + r.at("home/.ssh/id"))
	if a := c.facts.Accesses[0]; a.Hidden != r.at("home/.ssh") || a.Open {
		t.Errorf("the access is %+v", a)
	}
	for name, p := range map[string][]string{"checking": r.shown(c.checking(t.Context(), c.facts).Ready().Policy), "acting": r.shown(c.acting(t.Context()).Ready().Policy)} {
		if opened := strings.Contains(strings.Join(p, "\n"), "read home/.ssh/id"); opened != (name == "acting") {
			t.Errorf("%s: the key is opened: %v", name, opened)
		}
	}
}
