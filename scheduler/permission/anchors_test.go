package permission_test

// Rules and protection where names are links, and where there are no rules at all.

import (
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// TestLinks: an allow rule needs the name and what it leads to, a deny rule either.
func TestLinks(t *testing.T) {
	t.Parallel()
	at := func(named, real string) *permission.Facts {
		return &permission.Facts{Tool: "Read", Accesses: []permission.Access{{Named: named, Real: real}}}
	}
	for _, c := range []struct {
		rule, named, real string
		want              permission.Decision
	}{
		{"allow Read(//a/**)", "/a/x", "/a/y", permission.Allow},
		{"allow Read(//a/**)", "/a/x", "/b/y", permission.Ask},
		{"allow Read(//a/**)", "/b/x", "/a/y", permission.Ask},
		{"deny Read(//a/**)", "/a/x", "/b/y", permission.Deny},
		{"deny Read(//a/**)", "/b/x", "/a/y", permission.Deny},
	} {
		if got := permission.Decide(at(c.named, c.real), permission.Policy{Rules: compile(t, c.rule)}); got.Decision != c.want {
			t.Errorf("%s, %s -> %s: %s, want %s", c.rule, c.named, c.real, got.Decision, c.want)
		}
	}
}

// TestLinkedAnchors: where home, an additional directory, the directory of a settings file or a guarded file is a link,
// rules and protection are about what it leads to too.
func TestLinkedAnchors(t *testing.T) {
	t.Parallel()
	linked := permission.Anchors{
		Home: home + "/", Roots: []string{root}, Others: []string{"/more"}, Guarded: []string{"/conf/settings.json", ""},
		Leads: map[string]string{home + "/": "/disk/me", "/more": "/disk/more", "/conf/settings.json": root + "/settings.json", "/conf": "/disk/conf"},
	}
	own := permission.Origin{File: "/conf/settings.json", Line: 1, Base: "/conf"}
	for _, c := range []struct {
		list        permission.List
		rule        string
		named, real string
		want        permission.Decision
	}{
		{permission.DenyList, "Read(~/.ssh/**)", "/disk/me/.ssh/id", "/disk/me/.ssh/id", permission.Deny},
		{permission.DenyList, "Read(~/.ssh/**)", home + "/.ssh/id", "/elsewhere", permission.Deny},
		{permission.AllowList, "Read(~/notes/**)", home + "/notes/a", "/disk/me/notes/a", permission.Allow},
		{permission.AllowList, "Read(~/notes/**)", home + "/notes/a", "/disk/you/notes/a", permission.Ask},
		{permission.DenyList, "Read(./secret)", "/disk/more/secret", "/disk/more/secret", permission.Deny},
		{permission.AllowList, "Read(/x)", "/conf/x", "/disk/conf/x", permission.Allow},
	} {
		rule, err := permission.ParseRule(c.list, c.rule, own)
		if err != nil {
			t.Fatal(err)
		}
		f := &permission.Facts{Tool: "Read", Accesses: []permission.Access{{Named: c.named, Real: c.real}}}
		if got := permission.Decide(f, permission.Policy{Rules: permission.Compile([]permission.Rule{rule}, linked)}); got.Decision != c.want {
			t.Errorf("%s %s, %s -> %s: %s (%s), want %s", c.list, c.rule, c.named, c.real, got.Decision, got.Text, c.want)
		}
	}
	policy := permission.Policy{Rules: permission.Compile(nil, linked), Mode: permission.AcceptEdits}
	for name, want := range map[[2]string]permission.Decision{
		{root + "/settings.json", root + "/settings.json"}: permission.Ask, {"/conf/settings.json", root + "/settings.json"}: permission.Ask,
		{"/conf/settings.json", root + "/x"}: permission.Ask, {root + "/settings.json5", root + "/settings.json5"}: permission.Allow,
	} {
		f := &permission.Facts{Tool: "Write", Accesses: []permission.Access{{Named: name[0], Real: name[1], Write: true, Inside: true}}}
		if got := permission.Decide(f, policy); got.Decision != want {
			t.Errorf("writing %s: %s (%s), want %s", name, got.Decision, got.Text, want)
		}
	}
}

// TestNoRules: nil Rules can be asked everything.
func TestNoRules(t *testing.T) {
	t.Parallel()
	var none *permission.Rules
	for _, text := range []string{"Read(~/x)", "Bash(make *)"} {
		rule, err := permission.ParseRule(permission.AskList, text, origin)
		if err != nil {
			t.Fatal(err)
		}
		if got := none.Holds(rule, factsOf(t, "Bash make")); got != (text == "Bash(make *)") {
			t.Errorf("%s holds: %v", text, got)
		}
	}
	if none.Removes("Bash") != nil || none.DeniesRead("/x", nil) != nil || none.KeepsWriting("/x") != nil || none.AboutReading() || none.AboutParameters() {
		t.Error("there are rules where there are none")
	}
}
