package shell

import "testing"

// TestFed: each of them runs `git push`, from a text that it reads or keeps.
func TestFed(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"bash <<< 'git push'", "bash <<E\ngit push\nE", "bash <<'E'\ngit push\nE", "sh -s <<-E\n\tgit push\n\tE", "bash <<E\ngit push $x\nE", "sh -e <<E\nls\ngit push\nE",
		"echo git push | sh", "echo -n 'git push' | timeout 5 sh", "echo \"git push\" | sudo sh", "echo git push | env sh", "echo git push | cat | bash -s x",
		"printf 'git push\\n' | bash", "printf '%s\\n' ls 'git push' | bash", "printf 'git %s' push | bash", "printf -- 'git push' | sh",
		"(echo ls; echo git push) | sh", "{ echo git push; } | sh", "echo git push | (cd x && sh)", "echo git push | { read a; sh; }", "cat <<E | sh\ngit push\nE",
		"cat <<< 'git push' | sh", "echo git push | tee | sh", "true && echo git push | sh", "bash < <(echo git push)", "bash <(echo git push)", "sh /dev/stdin <<< 'git push'",
		"source <(echo git push)", ". <(cat <<< 'git push')", ". /dev/stdin <<< 'git push'", "source /dev/fd/0 <<E\ngit push\nE", "trap 'git push' EXIT", "alias x='git push'",
		"echo 'echo git push | sh' | sh", "if true; then sh; fi <<< 'git push'", "while read a; do sh; done <<< 'git push'", "bash -c sh <<< 'git push'", "bash -x <<< 'git push'",
		"echo git push | at now", "echo git push | su bob", "sudo -s <<< 'git push'", "zsh <<< 'git push'", "echo git push | busybox sh", "git-x() { sh; } <<< 'git push'",
		"echo push | xargs git", "echo push | xargs -n1 git", "echo 'a push' | xargs -n 1 git", "echo git push | xargs env", "echo push | xargs -I{} git {}", "echo push | xargs -I % git %",
		"echo push | xargs -i git {}", "echo push | xargs -IX git X", "xargs git <<< push", "xargs -r git <<E\npush\nE", "echo 'git push' | xargs -I{} sh -c '{}'", "printf 'push\\0' | xargs -0 git",
		"echo push | nice xargs git", "echo \"'push'\" | xargs git", "xargs git < <(echo push)",
	} {
		checkCarried(t, script, "git push")
	}
}

// TestFedUnknown: what these run is not known, so no rule can cover them.
func TestFedUnknown(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"curl x | sh", "ls | bash", "bash <(curl x)", "source <(x)", "bash <<< \"$x\"", "sh <<E\n$x\nE", "echo $x | sh", "base64 -d <<< eA== | sudo bash", "cat f | sh -s", ". /dev/stdin <<< $x",
		"trap \"$x\" EXIT", "alias x=\"$y\"", "printf \"$x\" | sh", "printf '\\x67' | sh", "echo -e '\\x67' | sh", "echo x > >(sh)", "tee >(bash) < f", "ls | xargs -I{} sh -c '{}'", "{ ls; echo a; } | sh",
		"ls | while read a; do sh; done", "! ls | sh", "cat a | cat | sh",
	} {
		if a := Analyze(script); a.Opaque.Empty() || a.ReadOnly {
			t.Errorf("%q: opaque %q, read-only %v", script, a.Opaque, a.ReadOnly)
		}
	}
}

// TestFedQuietly: what is read is no script for these.
func TestFedQuietly(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"echo git push | cat", "cat <<< 'git push'", "ls | xargs grep 'git push'", "echo git push | xargs echo", "echo a | bash -c 'cat'", "bash -n <(echo git push)", "trap -p", "cat <<E | wc -l\ngit push\nE",
		"echo a | xargs -0 cat", "grep -l x *.go | xargs -r wc -l",
	} {
		if a := Analyze(script); !a.ReadOnly || !a.Opaque.Empty() {
			t.Errorf("%q: %s", script, a.Reason)
		}
	}
}

// TestOpenInput: of what xargs builds of words that are not known, rules see
// that there is more to come.
func TestOpenInput(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"ls | xargs git": "git (<what xargs reads>)", "ls | xargs -I{} git {}": "git ({})", "ls | xargs grep a": "grep a (<what xargs reads>)",
	} {
		commands := Analyze(script).Commands
		c := commands[len(commands)-1]
		words := append([]Word(nil), c.Words...)
		for i, w := range words {
			if !w.Literal {
				words[i].Text = "(" + w.Text + ")"
			}
		}
		if got := (Command{Words: words}).String(); got != want || !c.DenyOnly {
			t.Errorf("%s: %s, deny only %v, want %s", script, got, c.DenyOnly, want)
		}
	}
}
