package main

// What a rule that lets a command run does not open: paths outside, hidden places and hosts that the command names.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// reaching makes a house outside of the temporary directories, with a key and a folder beside the roots.
func reaching(t *testing.T) (h *house, places *strings.Replacer) {
	t.Helper()
	inLasting(t)
	h = newHouse(t, map[string]string{"home/.ssh/id_rsa": "the key\n", "home/notes": "mine\n", "out/there": "old\n", "out/kept": "kept\n"})
	return h, strings.NewReplacer("HOME", filepath.Join(h.dir, "home"), "OUT", filepath.Join(h.dir, "out"))
}

// allowing are options whose settings allow what the rules say.
func allowing(rules string) *tooldv1.Options {
	return &tooldv1.Options{SettingsJson: proto.String(fmt.Sprintf(`{"permissions": {"allow": [%s]}}`, rules))}
}

// TestReach: what is named outside needs a rule that names it; where no client can answer, the denial names one.
func TestReach(t *testing.T) {
	h, places := reaching(t)
	const key, file = "cat ~/.ssh/id_rsa", "echo x > OUT/f"
	for i, x := range []struct {
		rules, command, want string // want: what the result has in it; after "!", of a call that is denied
	}{
		{`"Bash"`, key, "!Read(~/.ssh/id_rsa) would"},
		{`"Bash(*)"`, key + "; true", "!Read(~/.ssh/id_rsa) would"},
		{`"Bash(cat *)"`, key, "!Read(~/.ssh/id_rsa) would"},
		{`"Bash", "Read", "Edit"`, key, "!Read(~/.ssh/id_rsa) would"},
		{`"Bash", "Read(~/**)"`, key, "!hidden from commands"},
		{`"Bash", "Read(//**)"`, key + "; touch made", "!hidden from commands"},
		{`"Bash(cp *)"`, "cp ~/.ssh/id_rsa copy", "!Read(~/.ssh/id_rsa) would"},
		{`"Bash"`, "cat < ~/.ssh/id_rsa", "!Read(~/.ssh/id_rsa) would"},
		{`"Bash", "Bash(cat HOME/*)"`, "cat HOME/.ssh/id_rsa", "!Read(~/.ssh/id_rsa) would"},
		{`"Bash", "Read(~/.ssh/id_rsa)"`, key, "the key"},
		{`"Bash(cp *)", "Read(~/.ssh/**)"`, "cp ~/.ssh/id_rsa copy", ""},
		{`"Bash", "Read(~/.ssh/*_rsa)"`, key + "; touch made", "the key"},
		{`"Bash(cat HOME/.ssh/id_rsa)"`, "cat HOME/.ssh/id_rsa", "the key"},
		{`"Bash(cat HOME/.ssh/id_rsa *)"`, "cat HOME/.ssh/id_rsa HOME/notes", "!Read(~/notes) would"},
		{`"Bash"`, file, "!Edit(/OUT/f) would"},
		{`"Bash(tee *)"`, "echo x | tee OUT/f", "!Edit(/OUT/f) would"},
		{`"Bash(tee *)"`, "echo x | tee there", ""},
		{`"Bash"`, "cat ~/notes", "!Read(~/notes) would"},
		{`"Bash"`, "cd ~ && ls", "!outside the roots"},
		{`"Bash", "Edit(/OUT/f)"`, file + "; cat OUT/f", "x"},
		{`"Bash(tee *)", "Edit(/OUT/**)"`, "echo x | tee OUT/g", "x"},
		{`"Bash(tee OUT/h)"`, "echo x | tee OUT/h", "x"},
		{`"Bash(cp * OUT/there)"`, "echo new > n && cp n OUT/there", "!write"},
		{`"Bash(cp * OUT/there)", "Edit(./*)"`, "echo new > n && cp n OUT/there && cat n", "new"},
		{`"Bash(cp * OUT)", "Bash(tee *)"`, "echo x | tee OUT/f", "!Edit(/OUT/f) would"},
		{`"Bash(python3 *)"`, "python3 -c pass ~/.ssh/id_rsa", "!names HOME/.ssh/id_rsa"},
		{`"Bash"`, "sh show.sh --file=OUT/there", "!Read(/OUT/there) would"},
		{`"Bash", "Read(/OUT/kept)"`, "sh show.sh OUT/kept", "kept"},
		{`"Bash(sh show.sh OUT/kept)"`, "sh show.sh OUT/kept", "kept"},
		{`"Bash"`, "sh show.sh OUT/none; sh show.sh show.sh", "cat"},
		{`"Bash"`, "curl -s https://host.invalid/x", "!WebFetch(domain:host.invalid) would"},
		{`"Bash(curl *)"`, "curl -s host.invalid/x", "!WebFetch(domain:host.invalid) would"},
		{`"Bash(git clone *)"`, "git clone git@host.invalid:a/b.git", "!WebFetch(domain:host.invalid) would"},
		{`"Bash"`, "echo https://host.invalid; true http://127.0.0.1", "host.invalid"},
		{`"Bash"`, "cat OUT/there 2> /dev/null > /dev/null", "!Read(/OUT/there) would"},
	} {
		t.Run(x.rules+" "+x.command, func(t *testing.T) {
			root := h.room(t, fmt.Sprint(i), map[string]string{"show.sh": "cat \"$1\"\n"})
			a := in(root, allowing(places.Replace(x.rules)))
			a.Capabilities = nil // nobody answers
			r := h.attach(t, a).run("1", places.Replace(x.command))
			want, outcomeWant := places.Replace(x.want), "OK"
			if denied, ok := strings.CutPrefix(want, "!"); ok {
				want, outcomeWant = denied, "DENIED cannot_ask"
				absent(t, h.dir, "out/f")
				absent(t, root, "copy")
				absent(t, root, "made")
			}
			expect(t, x.command+"\n"+textIn(r), outcome(r), outcomeWant)
			holds(t, x.command, textIn(r), want)
			_ = os.Remove(filepath.Join(h.dir, "out", "f"))
		})
	}
}

// TestReachIsAskedFor: a yes opens what the question named, and a kept rule settles the same call from then on.
func TestReachIsAskedFor(t *testing.T) {
	h, places := reaching(t)
	for i, x := range []struct{ settings, command, suggested, says string }{
		{`{"permissions": {"allow": ["Bash"]}}`, "cat ~/.ssh/id_rsa", "Read(~/.ssh/id_rsa)", "the key"},
		{`{"permissions": {"allow": ["Bash"]}}`, "cat ~/.ssh/id_rsa; touch made", "Read(~/.ssh/id_rsa)", "the key"},
		{`{"permissions": {"allow": ["Bash(cat *)"]}}`, "cat ~/.ssh/id_rsa", "Read(~/.ssh/id_rsa)", "the key"},
		{`{"permissions": {"allow": ["Bash"]}}`, "echo x > ~/f; cat ~/f", "Edit(~/f)", "x"},
		{`{"sandbox": {"autoAllowBashIfSandboxed": true}}`, "touch made; cat ~/.ssh/id_rsa", "", "the key"},
		{`{"sandbox": {"autoAllowBashIfSandboxed": true}}`, "touch made; tee OUT/there < made", "", ""},
	} {
		t.Run(x.command, func(t *testing.T) {
			put(t, filepath.Join(h.dir, "home", "f"), "")
			options := &tooldv1.Options{SettingsJson: proto.String(x.settings)}
			c := h.attach(t, in(h.room(t, fmt.Sprint("asked", i), nil), options))
			c.bash("1", places.Replace(x.command))
			q := c.question("1")
			var rules []string
			var kept []*tooldv1.Remember
			for _, s := range q.GetSuggestions() {
				rules = append(rules, s.GetRule())
				kept = append(kept, &tooldv1.Remember{Scope: tooldv1.Scope_SCOPE_SESSION, List: "allow", Rule: s.GetRule()})
			}
			expect(t, "the suggestions", strings.Join(rules, " "), x.suggested)
			c.answer(answer(q, yes, kept...))
			first := c.finish("1", no)
			expect(t, textIn(first), outcome(first), "OK")
			holds(t, x.command, textIn(first), x.says)
			if again := c.ended("2", places.Replace(x.command)); len(kept) > 0 && again != "OK" {
				t.Errorf("with %q kept it is %s", rules, again)
			}
		})
	}
}

// TestNoReach: what the sandbox has of its own, and what settings open, is free for a command that may run.
func TestNoReach(t *testing.T) {
	h, places := reaching(t)
	mine := filepath.Join(t.TempDir(), "x")
	options := &tooldv1.Options{SettingsJson: proto.String(places.Replace(
		`{"permissions": {"allow": ["Bash"]}, "sandbox": {"filesystem": {"allowWrite": ["OUT"]}}}`))}
	c := h.attach(t, in(h.room(t, "free", nil), options))
	temporary := "OK"
	if h.tier(t) != tooldv1.SandboxTier_SANDBOX_TIER_FULL { // where a command is told the real path
		temporary = "DENIED temporary_path"
	}
	name := "toold-" + filepath.Base(h.dir)
	for i, x := range []struct{ command, want string }{
		{"echo one > /tmp/" + name + "; cat /tmp/" + name, temporary},
		{"cd /tmp && echo two > " + name + "2 && cat /tmp/" + name, temporary},
		{"ls /tmp", temporary},
		{"mkdir -p /var/tmp/" + name + "-dir/a && rm -r /var/tmp/" + name + "-dir", temporary},
		{"touch $TMPDIR/x; cat /proc/cpuinfo > /dev/null 2>&1", "OK"},
		{"cat /proc/self/status > status", "OK"},
		{"cat /etc/hosts /usr/share/none; true", "OK"},
		{"echo x > OUT/new; cat OUT/there", "OK"},
		{"cat OUT/there", "OK"},
		{"touch /tmp/" + name + "3; rm -rf /tmp/*", temporary},
		{"echo x > " + mine, "asked"},
	} {
		expect(t, x.command, c.ended(fmt.Sprint(i), places.Replace(x.command)), x.want)
	}
	if _, err := os.Lstat("/tmp/" + name); err == nil {
		t.Errorf("/tmp/%s was made in the machine's own directory", name)
	}
}
