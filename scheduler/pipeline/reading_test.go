package pipeline

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
)

// TestConfigured: what is the user's own configuration can be read in the fast tier, and what is hidden of it takes the other.
func TestConfigured(t *testing.T) {
	tests := []struct {
		name, command string
		change        func(r *room)
		tier          sandbox.Tier
		reads         []string
		not           string // may not be read
	}{
		{"git", "git log", nil, sandbox.Fast, []string{"read dotfiles/gitconfig", "read home/.config/git/ignore", "read home/ignored", "read home/more"}, ""},
		{"and beside what writes", "git log; make", nil, sandbox.Full, nil, ""},
		{"another program", "cat file", nil, sandbox.Fast, nil, ""},
		{"behind another", "timeout 5 jq . file", nil, sandbox.Fast, []string{"read home/.jq"}, ""},
		{"a rule hides it", "git log", func(r *room) {
			r.rules = []string{"deny Read(//" + strings.TrimPrefix(r.at("dotfiles/gitconfig"), "/") + ")"}
		}, sandbox.Full, nil, ""},
		{"it leads to what is hidden", "git log", func(r *room) { r.Hidden = append(r.Hidden, r.at("home/ignored")) }, sandbox.Full, nil, "read home/ignored"},
		{"the repository names more", "git log", func(r *room) {
			r.write("root/.git/config", "[include]\npath = "+r.at("other/config")+"\n")
			r.plant("other/config")
		}, sandbox.Full, nil, ""},
		{"its own processes", "cat /proc/self/status", nil, sandbox.Full, nil, ""},
		{"by its number", "cat /proc/$$/status", nil, sandbox.Full, nil, ""},
		{"its own input", "cat /dev/stdin", nil, sandbox.Fast, nil, ""},
		{"the machine", "cat /proc/cpuinfo", nil, sandbox.Fast, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoom(t)
			r.plant("home/.config/git/ignore", "home/ignored", "home/.jq", "home/.ssh/config", "home/.bashrc")
			r.write("dotfiles/gitconfig", "[core]\n excludesFile = ~/ignored\n[include]\n path = more\n path = ~/.ssh/absent\n")
			r.write("home/more", "[user]\n name = A\n")
			if err := os.Symlink("../dotfiles/gitconfig", r.at("home/.gitconfig")); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(r)
			}
			p := r.policy(tt.command)
			var reads []string
			for _, line := range r.shown(p) {
				if strings.HasPrefix(line, "read home/") || strings.HasPrefix(line, "read dotfiles/") || strings.HasPrefix(line, "read /proc") {
					reads = append(reads, line)
				}
			}
			if p.Tier == sandbox.Full { // there all is in sight that is not hidden, but for what lies in a temporary directory
				reads = slices.DeleteFunc(reads, func(line string) bool { return line != tt.not })
			}
			if p.Tier != tt.tier || p.Strict != (tt.tier == sandbox.Fast) || !slices.Equal(reads, tt.reads) {
				t.Errorf("%s: tier %s, strict %v, %q; want %s, %q", tt.command, p.Tier, p.Strict, reads, tt.tier, tt.reads)
			}
		})
	}
}

func (r *room) write(name, text string) {
	r.t.Helper()
	r.plant(name)
	if err := os.WriteFile(r.at(name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func TestOwnProcess(t *testing.T) {
	for path, want := range map[string]bool{
		"/proc/self/status": true, "/proc/thread-self/comm": true, "/proc/self/fd": true, "/proc/self/fd/12": true, "/dev/fd": true, "/proc/mounts": true,
		"/proc/self/mem": false, "/proc/self/cwd": false, "/proc/self/cwd/x": false, "/proc/self/root": false, "/proc/self/fd/3/x": false, "/proc/self/fd/": false,
		"/proc/self/fd/../cwd": false, "/proc/1/status": false, "/proc/self": false, "/proc/selfish/status": false, "/proc/net/tcp": true, "/proc/net/../1/environ": false,
		"/proc/self/task/1/status": false, "/dev/fd/../cwd/.env": false, "/proc/self//status": false, "relative": false, "": false,
	} {
		if got := isOwnProcess(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
