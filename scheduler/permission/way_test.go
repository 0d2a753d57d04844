package permission_test

// What each kind of denial and of question names as its way out, which has to be one.

import (
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// A wayOut is a call with the rules that stand against it, and what is said of it.
type wayOut struct {
	name, call string
	rules      []string
	opinion    *permission.Decision // of a hook; nil: no hook has one
	critical   bool
	mode       permission.Mode
	want       string // begins or ends what is said
	out        []string
	outMode    permission.Mode // in which out, in place of the rules, lets it run
}

func TestWays(t *testing.T) {
	t.Parallel()
	deny, ask := permission.Deny, permission.Ask
	const any = "An answer would allow it; so would rules in permissions.allow that cover each of these parts, a hook, or the permission_mode bypassPermissions."
	const edits = "An answer would allow it; so would rules in permissions.allow that cover each of these parts, a hook, or the permission_mode acceptEdits or bypassPermissions."
	for _, c := range []wayOut{
		{name: "deny rule", call: "Bash rm x", rules: []string{"deny Bash(rm *)", "allow Bash"}, want: "Nothing but a change of that rule would allow it.", out: []string{"allow Bash"}},
		{name: "deny rules", call: "Bash rm x; mv a b", rules: []string{"deny Bash(rm *)", "deny Bash(mv *)"}, want: "Nothing but a change of those rules would allow it."},
		{name: "parameter", call: `Bash make {"run_in_background":true}`, rules: []string{"deny Bash(run_in_background:true)"}, want: "denies `run_in_background:true`. Nothing but a change of that rule would allow it."},
		{name: "hook denies", call: "Bash make", opinion: &deny, want: "Do what the hook asks for, or leave this call."},
		{name: "hook and rule", call: "Bash make", rules: []string{"deny Bash(make *)"}, opinion: &deny, want: "Nothing but a change of that rule, and of what the hook objects to, would allow it."},
		{name: "nothing said", call: "Bash make", want: any, out: []string{"allow Bash(make *)"}},
		{name: "outside the roots", call: "Write /srv/x", want: "It writes /srv/x, which is outside the roots. " + any, out: []string{"allow Edit(//srv/**)"}},
		{name: "read outside", call: "Read /srv/x", want: any, out: []string{"allow Read(//srv/**)"}},
		{name: "reaches outside", call: "Bash make > /srv/x", rules: []string{"allow Bash"}, want: "An answer would allow it; so would Edit(//srv/x) in permissions.allow, a hook, or the permission_mode bypassPermissions.", out: []string{"allow Bash", "allow Edit(//srv/x)"}},
		{name: "reaches two places", call: "Bash cat /home/me/a | tee /srv/x", rules: []string{"allow Bash(cat *)", "allow Bash(tee *)"}, want: "so would Read(~/a) with Edit(//srv/x) in permissions.allow, a hook, or the permission_mode bypassPermissions.", out: []string{"allow Bash", "allow Read(~/a)", "allow Edit(//srv/x)"}},
		{name: "reaches a host", call: "Bash curl https://Example.com/x", rules: []string{"allow Bash(curl *)"}, want: "so would WebFetch(domain:example.com) in permissions.allow, a hook, or the permission_mode bypassPermissions.", out: []string{"allow Bash(curl *)", "allow WebFetch(domain:example.com)"}},
		{name: "connects", call: "Bash echo x > /dev/tcp/a.example/80", rules: []string{"allow Bash"}, want: "so would WebFetch(domain:a.example) in permissions.allow, a hook, or the permission_mode bypassPermissions.", out: []string{"allow Bash(echo *)", "allow WebFetch(domain:a.example)"}},
		{name: "reaches and is hidden", call: "Bash eval \"$x\"; cat /srv/x", rules: []string{"allow Bash"}, want: "so would Read(//srv/x) in permissions.allow, a hook, or the permission_mode bypassPermissions.", outMode: permission.BypassPermissions},
		{name: "makes a directory", call: "Bash mkdir -p src/x", want: edits, outMode: permission.AcceptEdits},
		{name: "redirects", call: "Bash echo x > tests/b.ts", want: edits, outMode: permission.AcceptEdits},
		{name: "writes inside", call: "Write /work/app/x", want: edits, outMode: permission.AcceptEdits},
		{name: "edits and more", call: "Bash mkdir x && make", want: any},
		{name: "edits, the rest is allowed", call: "Bash mkdir x && make", rules: []string{"allow Bash(make)"}, want: edits},
		{name: "in bypass", call: "Read /srv/x", want: any, outMode: permission.BypassPermissions},
		{name: "hidden", call: `Bash eval "$x"`, want: "so would the rule Bash, which is every command, or the permission_mode bypassPermissions.", out: []string{"allow Bash"}},
		{name: "no name", call: "Bash $x y", want: "An answer would allow it; so would the permission_mode bypassPermissions.", outMode: permission.BypassPermissions},
		{name: "does not parse", call: "Bash make 'all", want: "Only an answer would allow it: no rule, hook or permission_mode passes that."},
		{name: "critical", call: "Bash rm -rf /", critical: true, want: "Only an answer would allow it: no rule, hook or permission_mode passes that."},
		{name: "ask rule", call: "Bash make", rules: []string{"ask Bash(make *)", "allow Bash"}, want: "or a change of that rule: no other rule, no hook and no permission_mode passes that.", out: []string{"allow Bash"}},
		{name: "doubtful", call: "Bash rm $x", rules: []string{"deny Bash(rm -rf *)"}, want: "An answer would allow it. With the unknown words written out it may need none."},
		{name: "protected", call: "Write /work/app/.envrc", want: "so would the permission_mode bypassPermissions. No rule and no hook would.", outMode: permission.BypassPermissions},
		{name: "hook asks", call: "Bash make", opinion: &ask, rules: []string{"allow Bash"}, want: "so would the permission_mode bypassPermissions. No rule and no hook would.", outMode: permission.BypassPermissions},
		{name: "plan", call: "Write /work/app/x", mode: permission.Plan, want: "Another permission_mode would ask for it or allow it.", outMode: permission.AcceptEdits},
		{name: "plan against a rule", call: "Bash make", rules: []string{"allow Bash(make *)"}, mode: permission.Plan, want: "Another permission_mode would allow it.", out: []string{"allow Bash(make *)"}},
		{name: "plan and critical", call: "Bash rm -rf /", critical: true, mode: permission.Plan, want: "Another permission_mode would ask for it."},
		{name: "dontAsk", call: "Bash make", mode: permission.DontAsk, want: "Rules in permissions.allow that cover each of these parts would allow it; another permission_mode would ask.", out: []string{"allow Bash(make *)"}, outMode: permission.DontAsk},
		{name: "dontAsk and an edit", call: "Bash mkdir x", mode: permission.DontAsk, want: "and so would the permission_mode acceptEdits; another permission_mode would ask.", outMode: permission.AcceptEdits},
		{name: "dontAsk and an ask rule", call: "Bash make", rules: []string{"ask Bash(make *)"}, mode: permission.DontAsk, want: "Another permission_mode would ask for it."},
		{name: "allowed", call: "Bash ls", want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c wayOut) check(t *testing.T) {
	t.Helper()
	facts := factsOf(t, c.call)
	if c.opinion != nil {
		facts.Opinions = []permission.Opinion{{Decision: *c.opinion, Reason: "so it is", Origin: origin}}
	}
	if c.critical {
		facts.Critical = "It could destroy the disk."
	}
	v := permission.Decide(facts, permission.Policy{Rules: compile(t, c.rules...), Mode: c.mode})
	if said := v.Text + " " + v.Way; !strings.HasSuffix(said, c.want) || (v.Way == "") != (v.Decision == permission.Allow) {
		t.Errorf("%s: %q, want %q at its end", v.Decision, said, c.want)
	}
	if c.out == nil && c.outMode == permission.Default {
		return
	}
	if now := permission.Decide(facts, permission.Policy{Rules: compile(t, c.out...), Mode: c.outMode}); now.Decision != permission.Allow {
		t.Errorf("the way out with %q in mode %s leads to %s: %s", c.out, c.outMode, now.Decision, now.Text)
	}
}
