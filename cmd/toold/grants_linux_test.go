package main

// What an answer grants: one yes to one question, and the call does what was asked, wherever what it names lies. How that is
// made possible is not known here.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A grant is a call that is asked about. Before is run beforehand and after it, check afterwards, both unconfined and in the
// root; check ends well if the call has done what was asked. ROOT, OUT and HOME stand for the root, a directory outside, and
// home.
type grant struct {
	name, before string
	tool         string // empty: Bash
	call         string // the command, or the input
	check        string
	shown        string // what the question has in it; empty: nothing in particular
	full         bool   // it is possible only where there are namespaces
}

var grants = []grant{
	{name: "inside", call: "cp a b", before: "echo x >a", check: "cmp a b"},
	{name: "append outside", call: "echo more >> OUT/f", before: "echo x >OUT/f", check: "grep -q more OUT/f && grep -q x OUT/f"},
	{name: "make outside", call: "echo x > OUT/f", check: "grep -q x OUT/f", shown: "OUT becomes writable"},
	{name: "make in home", call: "echo x > HOME/f", check: "grep -q x HOME/f"},
	{name: "make in home, empty", call: "true >> HOME/f", check: "test -f HOME/f && ! test -s HOME/f"},
	{name: "touch in home", call: "touch HOME/f", check: "test -f HOME/f"},
	{name: "tee in home", call: "echo x | tee -a HOME/f HOME/g", check: "grep -q x HOME/f && grep -q x HOME/g"},
	{name: "copy into home", call: "cp a HOME/f", before: "echo x >a", check: "cmp a HOME/f"},
	{name: "dd in home", call: "dd if=a of=HOME/f status=none", before: "echo x >a", check: "cmp a HOME/f"},
	{name: "make in a directory of home", call: "echo x > HOME/d/f", before: "mkdir HOME/d", check: "grep -q x HOME/d/f", shown: "HOME/d becomes writable"},
	{name: "a new directory in home", call: "mkdir -p HOME/d/e && echo x > HOME/d/e/f", check: "grep -q x HOME/d/e/f", shown: "outside the sandbox"},
	{name: "change in home", call: "sed -i s/x/y/ HOME/f", before: "echo x >HOME/f", check: "grep -q y HOME/f", shown: "outside the sandbox"},
	{name: "rename in home", call: "mv HOME/f HOME/g", before: "echo x >HOME/f", check: "test -f HOME/g && ! test -e HOME/f", shown: "outside the sandbox"},
	{name: "remove outside", call: "rm OUT/f", before: "touch OUT/f", check: "! test -e OUT/f", shown: "OUT becomes writable"},
	{name: "remove a tree outside", call: "rm -rf OUT/d", before: "mkdir -p OUT/d/e; touch OUT/d/e/f", check: "! test -e OUT/d", shown: "OUT becomes writable"},
	{name: "remove what a pattern names", call: "rm OUT/*.o", before: "touch OUT/a.o OUT/b", check: "! test -e OUT/a.o && test -e OUT/b"},
	{name: "remove a link outside", call: "rm OUT/l", before: "echo x >a; ln -s $PWD/a OUT/l", check: "! test -L OUT/l && test -e a"},
	{name: "change outside", call: "sed -i.bak s/x/y/ OUT/f", before: "echo x >OUT/f", check: "grep -q y OUT/f && grep -q x OUT/f.bak", shown: "OUT becomes writable"},
	{name: "perl outside", call: "perl -pi -e s/x/y/ OUT/f", before: "echo x >OUT/f", check: "grep -q y OUT/f", shown: "OUT becomes writable"},
	{name: "move out", call: "mv a OUT/b", before: "echo x >a", check: "test -f OUT/b && ! test -e a"},
	{name: "move in", call: "mv OUT/a b", before: "echo x >OUT/a", check: "test -f b && ! test -e OUT/a"},
	{name: "rename outside", call: "mv OUT/a OUT/b", before: "echo x >OUT/a", check: "test -f OUT/b && ! test -e OUT/a"},
	{name: "copy a tree out", call: "cp -r d OUT/new", before: "mkdir d; echo x >d/f", check: "cmp d/f OUT/new/f"},
	{name: "copy over", call: "cp a OUT/f", before: "echo x >a; echo y >OUT/f", check: "cmp a OUT/f"},
	{name: "new directories outside", call: "mkdir -p OUT/a/b && touch OUT/a/b/c", check: "test -f OUT/a/b/c"},
	{name: "link outside", call: "ln -sf ROOT/a OUT/l", before: "echo x >a; ln -s b OUT/l", check: "cmp a OUT/l"},
	{name: "change the mode outside", call: "chmod 700 OUT/f", before: "touch OUT/f; chmod 600 OUT/f", check: "test -x OUT/f"},
	{name: "touch outside", call: "touch -d 2001-01-01 OUT/f", before: "touch OUT/f", check: "! test OUT/f -nt /etc/passwd"},
	{name: "truncate outside", call: "truncate -s 5 OUT/f", before: "touch OUT/f", check: "test $(wc -c <OUT/f) = 5"},
	{name: "install outside", call: "install -m 755 a OUT/b", before: "echo x >a", check: "test -x OUT/b"},
	{name: "unpack outside", call: "tar xf a.tar -C OUT", before: "echo x >f; tar cf a.tar f", check: "cmp f OUT/f"},
	{name: "pack outside", call: "tar cf OUT/a.tar f", before: "echo x >f", check: "tar tf OUT/a.tar | grep -q f"},
	{name: "patch outside", call: "patch -s OUT/f < p", before: "echo x >OUT/f; printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-x\\n+y\\n' >p", check: "grep -q y OUT/f"},
	{name: "sort in place outside", call: "sort -o OUT/f OUT/f", before: "printf 'b\\na\\n' >OUT/f", check: "head -1 OUT/f | grep -q a"},
	{name: "compress outside", call: "gzip OUT/f", before: "echo x >OUT/f", check: "test -f OUT/f.gz"},
	{name: "there and away again", call: "cp a OUT/new && sed -i s/x/y/ OUT/new && mv OUT/new OUT/f", before: "echo x >a", check: "grep -q y OUT/f"},
	{name: "commit elsewhere", call: "git -C OUT/r commit -qam two", before: "git init -q OUT/r; cd OUT/r; echo x >f; git add f; git commit -qm one; echo y >f", check: "git -C OUT/r log -1 --format=%s | grep -q two"},
	{name: "commit behind cd", call: "cd OUT/r && git add f && git commit -qm two", before: "git init -q OUT/r; cd OUT/r; git commit -qm one --allow-empty; echo y >f", check: "git -C OUT/r log -1 --format=%s | grep -q two"},
	{name: "git config", call: "git config core.pager cat", before: "git init -q .", check: "git config core.pager | grep -q cat"},
	{name: "git config elsewhere", call: "git -C OUT/r config core.pager cat", before: "git init -q OUT/r", check: "git -C OUT/r config core.pager | grep -q cat"},
	{name: "git config by hand", call: "sed -i s/bare/Bare/ .git/config", before: "git init -q .", check: "grep -q Bare .git/config"},
	{name: "a new hook", call: "printf '#!/bin/sh\\n' > .git/hooks/pre-commit", before: "git init -q .", check: "test -f .git/hooks/pre-commit"},
	{name: "no hook", call: "rm .git/hooks/pre-commit", before: "git init -q .; touch .git/hooks/pre-commit", check: "! test -e .git/hooks/pre-commit"},
	{name: "a hook renamed", call: "mv .git/hooks/pre-commit .git/hooks/pre-push", before: "git init -q .; touch .git/hooks/pre-commit", check: "test -e .git/hooks/pre-push && ! test -e .git/hooks/pre-commit"},
	{name: "make .mcp.json", call: "echo '{}' > .mcp.json", check: "test -f .mcp.json"},
	{name: "change .mcp.json", call: "sed -i s/x/y/ .mcp.json", before: "echo x >.mcp.json", check: "grep -q y .mcp.json"},
	{name: "remove .mcp.json", call: "rm .mcp.json", before: "echo x >.mcp.json", check: "! test -e .mcp.json"},
	{name: "change .vscode", call: "sed -i s/x/y/ .vscode/settings.json", before: "mkdir .vscode; echo x >.vscode/settings.json", check: "grep -q y .vscode/settings.json"},
	{name: "new in .vscode", call: "mkdir -p .vscode && echo x > .vscode/tasks.json", check: "grep -q x .vscode/tasks.json"},
	{name: "remove .vscode", call: "rm -rf .vscode", before: "mkdir .vscode; echo x >.vscode/settings.json", check: "! test -e .vscode"},
	{name: "append to .bashrc", call: "echo alias >> HOME/.bashrc", check: "grep -q alias HOME/.bashrc"},
	{name: "make .profile", call: "echo alias >> HOME/.profile", check: "grep -q alias HOME/.profile"},
	{name: "append to known hosts", call: "echo host >> HOME/.ssh/known_hosts", check: "grep -q host HOME/.ssh/known_hosts"},
	{name: "change what is hidden", call: "sed -i s/key/lock/ HOME/.ssh/id", check: "grep -q lock HOME/.ssh/id", shown: "HOME/.ssh becomes writable"},
	{name: "remove the root", call: "rm -rf ROOT", before: "mkdir -p d; touch .mcp.json f; git init -q .", check: "! test -e ROOT"},
	{name: "remove all in the root", call: "rm -rf ../here", before: "mkdir build; touch f", check: "! test -e ROOT"},
	{name: "change all of the root", call: "chmod -R u+w ROOT", before: "mkdir d; touch d/f; chmod a-w d/f", check: "test -w d/f"},
	{name: "outside the sandbox", tool: "Bash", call: `{"command":"mkdir HOME/d","dangerouslyDisableSandbox":true}`, check: "test -d HOME/d"},
	{name: "Write outside", tool: "Write", call: `{"file_path":"OUT/f","content":"x"}`, check: "grep -q x OUT/f"},
	{name: "Write in home", tool: "Write", call: `{"file_path":"HOME/f","content":"x"}`, check: "grep -q x HOME/f"},
	{name: "Write what is protected", tool: "Write", call: `{"file_path":"ROOT/.mcp.json","content":"x"}`, check: "grep -q x .mcp.json"},
	{name: "Read outside", tool: "Read", call: `{"file_path":"OUT/f"}`, before: "echo x >OUT/f", check: "true"},
	{name: "unknown, in a root", call: "sh ./make.sh", before: "echo 'echo x >made' >make.sh", check: "grep -q x made"},
	{name: "unset", call: "eval 'echo x > OUT/f'", check: "grep -q x OUT/f"},
	{name: "remove what find finds", call: "find OUT -name '*.o' -delete", before: "touch OUT/a.o", check: "! test -e OUT/a.o", shown: "writes OUT"},
	{name: "remove a tree by find", call: "find OUT/d -delete", before: "mkdir -p OUT/d/e; touch OUT/d/e/f", check: "! test -e OUT/d", shown: "OUT becomes writable"},
	{name: "unknown, a new file outside", call: "sh ./gen.sh OUT/o", before: `echo 'echo x >"$1"' >gen.sh`, check: "grep -q x OUT/o", shown: "OUT becomes writable"},
	{name: "unknown, a file outside", call: "sh ./gen.sh OUT/o", before: `echo 'echo x >"$1"' >gen.sh; touch OUT/o`, check: "grep -q x OUT/o", shown: "may write it"},
	{name: "unknown, a directory outside", call: "sh ./gen.sh --out=OUT/d", before: `mkdir OUT/d; echo 'echo x >"${1#--out=}/f"' >gen.sh`, check: "grep -q x OUT/d/f"},
	{name: "make, elsewhere", call: "cd OUT && make", before: "printf 'all:\\n\\ttouch made\\n' >OUT/Makefile", check: "test -f OUT/made", shown: "writes OUT"},
	{name: "a script, elsewhere", call: "(cd OUT && sh ./make.sh) | cat", before: "echo 'echo x >made' >OUT/make.sh", check: "grep -q x OUT/made", shown: "writes OUT"},
	{name: "unpack behind cd", call: "tar cf - d | (cd OUT && tar xf -)", before: "mkdir d; echo x >d/f", check: "cmp d/f OUT/d/f", shown: "writes OUT"},
	{name: "an archive of a repository", call: "git archive -o OUT/a.tar HEAD", before: "git init -q .; git commit -qm x --allow-empty", check: "test -f OUT/a.tar", shown: "writes OUT/a.tar"},
	{name: "a virtual environment", call: "python3 -m venv --without-pip OUT/v", check: "test -f OUT/v/pyvenv.cfg", shown: "OUT becomes writable"},
	{name: "a repository behind cd", call: "cd OUT && git init -q new", check: "test -d OUT/new/.git"},
	{name: "behind a wrapper", call: "timeout 20 rm OUT/f", before: "touch OUT/f", check: "! test -e OUT/f"},
	{name: "read and written", call: "sort < OUT/a > OUT/b", before: "echo x >OUT/a", check: "cmp OUT/a OUT/b"},
}

func TestAnswerGrants(t *testing.T) { grantAll(t, ordinary(t)) }

func TestAnswerGrantsAsNobody(t *testing.T) { asNobody(t, "testdata/ordinary", "^TestAnswerGrants$") }

func TestAnswerGrantsWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	grantAll(t, ordinary(t))
}

// grantAll makes each of the calls in a session of its own.
func grantAll(t *testing.T, h *house) {
	t.Helper()
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range grants {
		if g.full && info.GetSandbox() != tooldv1.SandboxTier_SANDBOX_TIER_FULL || !chosen(i, 2) {
			continue
		}
		t.Run(g.name, func(t *testing.T) { g.do(t, h, i) })
	}
}

func (g grant) do(t *testing.T, h *house, number int) {
	t.Helper()
	root, out, home := h.room(t, fmt.Sprint(number, "/here"), nil), filepath.Join(h.dir, "out", fmt.Sprint(number)), filepath.Join(h.dir, "home")
	places := strings.NewReplacer("ROOT", root, "OUT", out, "HOME", home)
	put(t, filepath.Join(out, "other"), "mine\n")
	plain := func(script string) error {
		cmd := exec.Command("sh", "-ec", places.Replace(script))
		cmd.Dir, cmd.Env = root, h.environ
		if _, err := os.Stat(root); err != nil {
			cmd.Dir = h.dir
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", script, err, out)
		}
		return nil
	}
	if err := plain(g.before); err != nil {
		t.Fatal(err)
	}
	a := in(root, nil)
	a.SessionId = fmt.Sprint("grant", number)
	c := h.attach(t, a)
	call := places.Replace(g.call)
	if g.tool == "" {
		c.bash("1", call)
	} else {
		c.use("1", g.tool, call)
	}
	r := c.finish("1", yes)
	asked := c.wasAsked()
	if len(asked) != 1 || r.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
		t.Errorf("%s\nends %s in %s, after %d questions: %q\n%s", call, outcome(r), r.GetConfinement().GetTier(), len(asked), asked, textIn(r))
	}
	holds(t, "the question", strings.Join(asked, " "), places.Replace(g.shown))
	if err := plain(g.check); err != nil {
		t.Errorf("%s\nhas not done what was asked: %v\n%s", call, err, textIn(r))
	}
	if content(t, filepath.Join(out, "other")) != "mine\n" {
		t.Error("something else has changed")
	}
	for _, name := range []string{"f", "g", "d"} {
		_ = os.RemoveAll(filepath.Join(home, name))
	}
}

// TestGrantsNoMore: what a rule or an answer opens, and what stays shut beside it. The command is sent with the rules, and no
// client answers unless yes is set.
func TestGrantsNoMore(t *testing.T) {
	h := ordinary(t)
	full := h.tier(t) == tooldv1.SandboxTier_SANDBOX_TIER_FULL
	for i, x := range []struct{ rules, command, want, check string }{
		// A rule for the file is for the file.
		{`"Bash(tee *)", "Edit(/OUT/new)"`, "echo x | tee OUT/new", "OK", "grep -q x OUT/new"},
		{`"Bash", "Edit(/OUT/new)"`, "echo x > OUT/new; sh ./more.sh", "ERROR exit_code", "grep -q x OUT/new && ! test -e OUT/more"},
		{`"Bash", "Edit(/OUT/f)"`, "rm OUT/f", "DENIED cannot_ask", "test -e OUT/f"},
		{`"Bash", "Edit(/OUT/f)"`, "sed -i s/x/y/ OUT/f", "DENIED cannot_ask", "grep -q x OUT/f"},
		// One for its directory, or the very command, is for that.
		{`"Bash", "Edit(/OUT/**)"`, "rm OUT/f", "OK", "! test -e OUT/f"},
		{`"Bash(rm OUT/f)"`, "rm OUT/f", "OK", "! test -e OUT/f"},
		{`"Bash(rm OUT/f *)"`, "rm OUT/f", "DENIED cannot_ask", "test -e OUT/f"},
		// None lets a call leave the sandbox.
		{`"Bash", "Edit(~/**)"`, "mv HOME/note HOME/letter", "DENIED cannot_ask", "test -e HOME/note"},
		{`"Bash", "Edit(~/**)"`, "echo x > HOME/new", "OK", "grep -q x HOME/new; rm HOME/new"},
		// What was made beforehand is gone if it was not used.
		{`"Bash", "Edit(~/**)"`, "false && echo x > HOME/unused; true", "OK", "! test -e HOME/unused"},
		{`"Bash", "Edit(~/**)"`, "touch -c HOME/unused", "OK", "! test -e HOME/unused"},
		// In a directory that was opened, what is protected stays so.
		{`"Bash", "Edit(/OUT/**)"`, "touch OUT/new; sh ./hook.sh", "ERROR exit_code", "test -e OUT/new && ! test -e OUT/.git/hooks/pre-commit && ! grep -q pager OUT/.git/config"},
		{`"Bash", "Edit(/OUT/**)"`, "cp f OUT; sh ./rc.sh", "OK", "test -e OUT/f && ! test -e OUT/.bashrc && ! test -e OUT/.mcp.json"},
		{`"Bash", "Edit(/OUT/**)"`, "git -C OUT commit -q --allow-empty -m x; sh ./hook.sh", "ERROR exit_code", "! test -e OUT/.git/hooks/pre-commit"},
	} {
		t.Run(x.rules+" "+x.command, func(t *testing.T) {
			out, home := filepath.Join(h.dir, "out", fmt.Sprint(i)), filepath.Join(h.dir, "home")
			places := strings.NewReplacer("OUT", out, "HOME", home)
			root := h.room(t, fmt.Sprint("more", i), map[string]string{
				"f": "x\n", "more.sh": places.Replace("touch OUT/more\n"), "rc.sh": places.Replace("touch OUT/.bashrc OUT/.mcp.json\n"),
				"hook.sh": places.Replace("touch OUT/.git/hooks/pre-commit; git config --file OUT/.git/config core.pager x\n"),
			})
			put(t, filepath.Join(out, "f"), "x\n")
			put(t, filepath.Join(home, "note"), "x\n")
			shell := func(script string) {
				if text, code := h.inShell(t, root, places.Replace(script)); code != 0 {
					t.Errorf("%s: %s", script, text)
				}
			}
			shell("git init -q OUT && mkdir -p OUT/.git/hooks && rm -f OUT/.git/hooks/*")
			a := in(root, allowing(places.Replace(x.rules)))
			a.Capabilities = nil // no client answers
			r := h.attach(t, a).run("1", places.Replace(x.command))
			if strings.Contains(x.command, "hook.sh") && !full { // what is protected there is so once the call has ended
				x.want = "OK"
				holds(t, x.command, textIn(r), "The sandbox took settings that make git run programs out of", "The sandbox took away")
			}
			expect(t, x.command+"\n"+textIn(r), outcome(r), x.want)
			shell(x.check)
		})
	}
}

// TestNoGrantOutside: where leaving the sandbox is switched off, a call that would have to is denied, and says what would help.
func TestNoGrantOutside(t *testing.T) {
	h := ordinary(t)
	put(t, h.user(), `{"sandbox": {"allowUnsandboxedCommands": false}}`)
	note := filepath.Join(h.dir, "home", "note")
	put(t, note, "x\n")
	r := h.attach(t, in(h.room(t, "kept", nil), nil)).run("1", "mv "+note+" "+note+"2")
	expect(t, textIn(r), outcome(r), "DENIED setting_denied")
	holds(t, "the denial", textIn(r), "allowUnsandboxedCommands", "allowWrite")
	put(t, h.user(), `{"sandbox": {"allowUnsandboxedCommands": false, "filesystem": {"allowWrite": ["~"]}}}`)
	r = h.attach(t, in(h.room(t, "opened", nil), nil)).run("1", "mv "+note+" "+note+"2")
	expect(t, textIn(r), outcome(r), "OK")
	if content(t, note+"2") != "x\n" {
		t.Error("it was not moved")
	}
}

// TestRememberedGrant: what a question suggests to remember opens the same the next time.
func TestRememberedGrant(t *testing.T) {
	h := ordinary(t)
	for i, x := range []struct{ rules, command, again, suggested string }{
		{`"Bash"`, "rm OUT/a", "rm OUT/b", "Edit(/OUT/**)"},
		{`"Bash"`, "mv OUT/a OUT/c", "sed -i s/x/y/ OUT/b", "Edit(/OUT/**)"},
		{`"Bash"`, "echo x > HOME/a1", "echo y > HOME/a1", "Edit(~/a1)"},
		{`"Bash"`, "mv HOME/note HOME/note2", "mv HOME/note2 HOME/note", ""},
	} {
		out, home := filepath.Join(h.dir, "home", fmt.Sprint("kept", i)), filepath.Join(h.dir, "home")
		places := strings.NewReplacer("/OUT/**", fmt.Sprintf("~/kept%d/**", i), "OUT", out, "HOME", home)
		for _, name := range []string{filepath.Join(out, "a"), filepath.Join(out, "b"), filepath.Join(home, "note")} {
			put(t, name, "x\n")
		}
		c := h.attach(t, in(h.room(t, fmt.Sprint("kept", i), nil), allowing(x.rules)))
		c.bash("1", places.Replace(x.command))
		q := c.question("1")
		var rules []string
		var kept []*tooldv1.Remember
		for _, s := range q.GetSuggestions() {
			rules = append(rules, s.GetRule())
			kept = append(kept, &tooldv1.Remember{Scope: tooldv1.Scope_SCOPE_SESSION, List: "allow", Rule: s.GetRule()})
		}
		same(t, x.command+"\nsuggests", rules, strings.Fields(places.Replace(x.suggested))...)
		c.answer(answer(q, yes, kept...))
		first := c.finish("1", no)
		expect(t, x.command+"\n"+textIn(first), outcome(first), "OK")
		want := "OK"
		if len(kept) == 0 {
			want = "asked"
		}
		expect(t, x.again, c.ended("2", places.Replace(x.again)), want)
	}
}

// The same where there are no namespaces: what is opened, and what stays shut.
func TestGrantsNoMoreWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	t.Run("no more", TestGrantsNoMore)
	t.Run("not outside", TestNoGrantOutside)
	t.Run("remembered", TestRememberedGrant)
	t.Run("advice", TestAdviceWorks)
	t.Run("reach", TestReach)
	t.Run("reach asked for", TestReachIsAskedFor)
	t.Run("no reach", TestNoReach)
	t.Run("syntax", TestSyntaxError)
	t.Run("leaving", TestLeaving)
}
