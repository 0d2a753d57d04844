package permission_test

import (
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// That a command needs no answer does not let it leave the sandbox: what is not listed keeps the whole call inside.
func TestExcludes(t *testing.T) {
	escape := permission.Escape{Excluded: compile(t, "allow Bash(docker *)", "allow Bash(git push *)", "allow Bash(mktemp *)",
		"allow Bash(./run.sh *)", "allow Bash(python3 build.py)", "allow Bash(sudo reboot)")}
	for command, want := range map[string]bool{
		"docker ps": true, "docker": true, "git push origin main": true, "docker build . && git push": true,
		"timeout 5 docker ps": true, "bash -c 'docker ps'": true, "echo x | xargs docker rm": true, "for x in a b; do docker rm $x; done": true,
		"docker ps > out.txt": true, "docker ps 2> /dev/null": true, "docker load < img.tar": true, "sudo reboot": true,
		"echo start; docker ps && printf '%s\n' \"$x\"": true, "cd sub && docker ps": true, "test -f x && docker ps; exit 1": true,
		"[ -f x ] || docker ps; true; false": true, "docker ps > /dev/null; echo done > /dev/stderr": true, "./run.sh a": true,
		"mktemp -u x.XXXX; git status": false, "docker ps | grep x": false, "cat f; docker ps": false, "docker ps | cat": false,
		"ls": false, "make": false, "git pushy": false, "dockerd": false, "./docker ps": false, "/usr/bin/docker ps": false, "echo x": false,
		"docker ps && make": false, "make; docker ps": false, "docker ps $(make)": false, "docker ps $(cat f)": false, "env X=1 make": false,
		"sh -c 'docker ps; make'": false, "$X ps": false, "docker ps; eval \"$X\"": false, "docker ps; git status": false,
		"echo x > f; docker ps": false, "echo $(docker ps)": false, "echo `docker ps`; docker ps": false, "test \"$(docker ps)\"; docker ps": false,
		"printf -v PATH /x; docker ps": false, "[ -v 'a[$(x)]' ]; docker ps": false, "[[ -f x ]] && docker ps": false, "((n++)); docker ps": false,
		"/bin/echo x; docker ps": false, "FOO=x; docker ps": false, "PATH=/x docker ps": false, "PATH=/x; docker ps": false, "export PATH=/x; docker ps": false,
		"docker() { make; }; docker ps": false, "echo() { make; }; echo x; docker ps": false, "exec docker ps": false, "exec > f; docker ps": false,
		"sudo make": false, "find . -exec docker ps \\;": false, "ls | xargs docker rm": false, "env docker ps": false,
		"cd sub && ./run.sh": false, "cd sub && python3 build.py": false, "cd \"$X\" && ./run.sh": false, "cd sub; docker build .": true,
		"docker ps; echo x; > f": false,
	} {
		if got := escape.Excludes(factsOf(t, "Bash "+command)); got != want {
			t.Errorf("%s: excluded %v, want %v", command, got, want)
		}
	}
	if (permission.Escape{}).Excludes(factsOf(t, "Bash docker ps")) {
		t.Error("without rules something is excluded")
	}
}

// What leaves the sandbox, and what being in it allows.
func TestEscape(t *testing.T) {
	at := permission.Origin{File: "/etc/toold/settings.json", Line: 3}
	tests := []struct {
		name       string
		escape     permission.Escape
		unconfined bool
		boxed      bool
		rules      []string
		want       permission.Decision
		says       string
	}{
		{"asks to leave", permission.Escape{}, true, false, []string{"allow Bash"}, permission.Ask, "outside the sandbox"},
		{"may not leave", permission.Escape{Denied: &at}, true, false, []string{"allow Bash"}, permission.Deny, "allowUnsandboxedCommands in /etc/toold/settings.json"},
		{"stays", permission.Escape{Denied: &at}, false, false, []string{"allow Bash"}, permission.Allow, ""},
		{"nothing allows it", permission.Escape{}, false, true, nil, permission.Ask, ""},
		{"confined is enough", permission.Escape{AutoAllow: &at}, false, true, nil, permission.Allow, "autoAllowBashIfSandboxed in /etc/toold/settings.json"},
		{"not confined", permission.Escape{AutoAllow: &at}, false, false, nil, permission.Ask, ""},
		{"an ask rule is heard", permission.Escape{AutoAllow: &at}, false, true, []string{"ask Bash(make *)"}, permission.Ask, ""},
		{"a deny rule is heard", permission.Escape{AutoAllow: &at}, false, true, []string{"deny Bash(make *)"}, permission.Deny, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := factsOf(t, "Bash make all")
			f.Unconfined, f.Boxed = tt.unconfined, tt.boxed
			v := permission.Decide(f, permission.Policy{Rules: compile(t, tt.rules...), Escape: tt.escape})
			if v.Decision != tt.want || !strings.Contains(v.Text, tt.says) {
				t.Errorf("%s: %s; want %s with %q", v.Decision, v.Text, tt.want, tt.says)
			}
		})
	}
}

func TestUnreadablePaths(t *testing.T) {
	for _, tt := range []struct {
		rules []string
		paths []string
		all   bool
	}{
		{nil, nil, true},
		{[]string{"deny Read(//srv/keys/**)", "ask Read(~/notes)"}, []string{"/srv/keys", "/home/me/notes"}, true},
		{[]string{"deny Read(.env)", "deny Read(//srv/x)"}, []string{"/srv/x"}, false},
		{[]string{"deny Read(./secrets/*.key)"}, nil, false},
		{[]string{"allow Read(//srv/x)", "deny Edit(//srv/y)"}, nil, true},
	} {
		paths, all := compile(t, tt.rules...).UnreadablePaths()
		for _, want := range tt.paths {
			if !strings.Contains(strings.Join(paths, "\n")+"\n", want+"\n") {
				t.Errorf("%q: %q, want %s among them", tt.rules, paths, want)
			}
		}
		if all != tt.all {
			t.Errorf("%q: all %v, want %v", tt.rules, all, tt.all)
		}
	}
}
