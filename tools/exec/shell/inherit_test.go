package shell

import "testing"

// armings are assignments of which each can make a harmless program run another
// one, or read another file.
var armings = []string{
	"BASH_ENV=<(echo touch PWNED)", "ENV=f", "PATH=.:$PATH", "PATH=.", "LD_PRELOAD=./x.so", "LD_AUDIT=x", "SHELLOPTS=xtrace PS4='$(x)'", "IFS=x",
	"GIT_EXTERNAL_DIFF=x", "GIT_PAGER=x", "RIPGREP_CONFIG_PATH=x", "LANG=zh_TW.Big5", "LC_ALL=$x", "HOME=.", "a=b", "A[0]=1", "LANG+=C", "TZ=/x",
}

// runners run the command behind them, as every rule looks through them.
var runners = []struct{ before, after string }{
	{"timeout 5 ", ""},
	{"timeout -k 1 5 ", ""},
	{"nice ", ""},
	{"nice -n 5 ", ""},
	{"nohup ", ""},
	{"stdbuf -oL ", ""},
	{"command ", ""},
	{"command -p ", ""},
	{"builtin ", ""},
	{"/usr/bin/nice ", ""},
	{"xargs ", ""},
	{"xargs -0 ", ""},
	{"xargs -I{} ", ""},
	{"eval ", ""},
	{"eval '", "'"},
	{"bash -c \"", "\""},
	{"bash -ec '", "'"},
	{"sh -c \"", "\""},
	{"dash -c '", "'"},
	{"env ", ""},
	{"env -i ", ""},
	{"env - ", ""},
	{"exec ", ""},
	{"time ", ""},
	{"/usr/bin/time ", ""},
	{"setsid ", ""},
	{"sudo ", ""},
	{"ionice ", ""},
	{"flock f ", ""},
	{"busybox ", ""},
	{"zsh -c '", "'"},
	{"bash -lc '", "'"},
	{"find . -exec ", " {} +"},
}

var quiet = []string{"ls", "git diff", "rg y", "echo a", "[[ a ]]", "true; ls", "{ ls; }", ":", "", "# a", "cd x", "command -v ls", "set", "x=1; echo $x", "(ls)", "ls | cat"}

// TestInheritedAssignments: what is assigned in front of a wrapper reaches what
// it runs, however deep, and none of it is read-only.
func TestInheritedAssignments(t *testing.T) {
	t.Parallel()
	for _, steer := range armings {
		for _, outer := range runners {
			for _, inner := range quiet {
				checkSteered(t, steer+" "+outer.before+inner+outer.after)
			}
			for _, second := range runners {
				if outer.after == "" || second.after == "" || outer.after == " {} +" {
					checkSteered(t, steer+" "+outer.before+second.before+"ls"+second.after+outer.after)
				}
			}
		}
	}
}

func checkSteered(t *testing.T, script string) {
	t.Helper()
	a := Analyze(script)
	if a.ReadOnly {
		t.Errorf("%q is read-only", script)
	}
	checkBlamed(t, script, a)
	for _, c := range a.Commands {
		if c.Via != "" && (len(c.Assigns) == 0 || c.ReadOnly || c.Transparent) {
			t.Errorf("%q: %q has assignments %q, read-only %v, transparent %v", script, c.Text, c.Assigns, c.ReadOnly, c.Transparent)
		}
	}
}
