package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
)

// A room is a workspace whose calls are confined: a root with a repository, a home beside it.
type room struct {
	t          *testing.T
	base, root string
	rules      []string
	Confining
}

func newRoom(t *testing.T) *room {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, base: base, root: filepath.Join(base, "root")}
	r.plant("root/.git/HEAD", "root/.git/objects/x", "root/.git/refs/x", "root/.git/config", "root/.git/hooks/x", "root/sub/.git/config", "root/.npmrc", "root/.env", "root/file", "home/.ssh/id", "state/spill/x", "temp/x", "temp2/x", "cache/x")
	r.Hidden, r.Shown = []string{r.at("home/.ssh"), r.at("state")}, []string{r.at("state/spill")}
	r.Temps = []workspace.Temporary{{Name: "/tmp", Dir: r.at("temp")}, {Name: "/var/tmp", Dir: r.at("temp2")}}
	r.Caches = []Cache{{Place: sandbox.Place{Path: r.at("cache"), Access: sandbox.Write, Above: r.at("state/cache")}, Variable: "XDG_CACHE_HOME"}}
	r.Runner, r.Git = newRunner(t), new(repo.Finder)
	return r
}

func (r *room) at(name string) string { return filepath.Join(r.base, name) }

func (r *room) plant(names ...string) {
	r.t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(r.at(name)), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(r.at(name), []byte("x\n"), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

// policy is that of a command's act, after a yes.
func (r *room) policy(command string) sandbox.Policy {
	r.t.Helper()
	c := r.call(command)
	c.verdict.Decision = permission.Ask
	return c.acting(r.t.Context()).Ready().Policy
}

// call is a call of the command, as far as its facts.
func (r *room) call(command string) *Call {
	r.t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		r.t.Fatal(err)
	}
	places, err := workspace.Open([]string{r.root}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if places, err = places.Admit(workspace.Places{Temporary: r.Temps, Opened: slices.Concat(r.Hidden, r.Shown, r.Write, r.Keep, []string{r.base})}); err != nil {
		r.t.Fatal(err)
	}
	anchors := permission.Anchors{Home: r.at("home"), Roots: []string{r.root}}
	c := &Call{Use: Use{Name: "Bash"}, Tool: bash.Tool(), rights: Rights{
		Policy: permission.Policy{Rules: compiled(r.t, r.rules, r.root, anchors)}, Anchors: anchors, Places: places, ReadState: workspace.NewReadState(), Confining: r.Confining,
	}}
	if c.parsed, err = c.parse(input); err != nil {
		r.t.Fatal(err)
	}
	env := &tools.Env{Dir: r.root, Environ: []string{"HOME=" + r.at("home")}}
	if c.facts, err = c.look(r.t.Context(), env); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// shown lists the places that there are by their names below the base.
func (r *room) shown(p sandbox.Policy) (lines []string) {
	words := map[sandbox.Access]string{sandbox.Hidden: "hidden", sandbox.Read: "read", sandbox.Write: "write"}
	for _, place := range p.Places {
		name := strings.TrimPrefix(place.Path, r.base+"/")
		if place.Source != "" {
			name += " from " + strings.TrimPrefix(place.Source, r.base+"/")
		}
		if place.Above != "" {
			name += " below " + strings.TrimPrefix(place.Above, r.base+"/")
		}
		lines = append(lines, fmt.Sprint(words[place.Access], " ", name))
	}
	slices.Sort(lines)
	return lines
}

func TestPolicy(t *testing.T) {
	common := []string{"hidden home/.ssh", "hidden state", "read state/spill", "write temp", "write temp2", "write /tmp from temp", "write /var/tmp from temp2"}
	const cache = "write cache below state/cache"
	writing := slices.Concat(common, []string{
		"write root", cache, "write root/.git", "read root/.git/config", "read root/.git/hooks", "read root/sub/.git/config",
		"write root/sub/.git", "read root/.npmrc",
	})
	tests := []struct {
		name, command string
		change        func(r *room)
		tier          sandbox.Tier
		strict        bool
		places        []string
	}{
		{"only reads", "cat file | wc -l", nil, sandbox.Fast, true, append([]string{"read root"}, common...)},
		{"looks at processes", "ps ax", nil, sandbox.Full, false, append([]string{"read root", cache}, common...)},
		{"writes", "make", nil, sandbox.Full, false, writing},
		{
			"writes what is protected, with leave", "echo x >.npmrc; make", nil, sandbox.Full, false,
			slices.DeleteFunc(slices.Clone(writing), func(line string) bool { return line == "read root/.npmrc" }),
		},
		{"writes outside, with leave", "cp file " + "BASE/other/file", func(r *room) { r.plant("other/file") }, sandbox.Full, false, append([]string{"write other/file"}, writing...)},
		{"makes outside, with leave", "cp file " + "BASE/other/new", func(r *room) { r.plant("other/file") }, sandbox.Full, false, append([]string{"write other"}, writing...)},
		{"would open the system", "cp file /etc/new", nil, sandbox.Full, false, append([]string{"write /etc/new"}, writing...)},
		{"removes outside, with leave", "rm BASE/other/file", func(r *room) { r.plant("other/file") }, sandbox.Full, false, append([]string{"write other"}, writing...)},
		{"opens what holds a repository", "touch BASE/other/new", func(r *room) {
			r.plant("other/.git/HEAD", "other/.git/objects/x", "other/.git/refs/x", "other/.git/config", "other/.npmrc")
		}, sandbox.Full, false, append([]string{"write other", "read other/.git/config", "write other/.git", "read other/.npmrc"}, writing...)},
		{"changes what is protected as a whole", "rm .git/hooks/x", nil, sandbox.Full, false, slices.DeleteFunc(slices.Clone(writing), func(line string) bool { return line == "read root/.git/hooks" })},
		{"reads outside, with leave", "cat BASE/other/file", func(r *room) { r.plant("other/file") }, sandbox.Fast, true, append([]string{"read root", "read other/file"}, common...)},
		{"a rule hides in the root", "cat file", func(r *room) { r.rules = []string{"deny Read(.env)"} }, sandbox.Full, false, append([]string{"read root", "hidden root/.env", cache}, common...)},
		{
			"a rule hides the cache", "make", func(r *room) { r.Hidden = append(r.Hidden, r.at("cache")) }, sandbox.Full, false,
			append(slices.DeleteFunc(slices.Clone(writing), func(line string) bool { return line == cache }), "hidden cache"),
		},
		{"a rule hides while it writes", "make", func(r *room) { r.rules = []string{"deny Read(./.env)"} }, sandbox.Full, false, append([]string{"hidden root/.env"}, writing...)},
		{"a rule hides a directory", "make", func(r *room) {
			r.plant("root/conf/secrets/key")
			r.rules = []string{"deny Read(./conf/secrets/**)"}
		}, sandbox.Full, false, append([]string{"hidden root/conf/secrets", "write root/conf"}, writing...)},
		{"a write into what is hidden", "cp file BASE/home/.ssh/new", nil, sandbox.Full, false, append([]string{"write home/.ssh/new"}, writing...)},
		{"links in the root", "make", func(r *room) {
			r.plant("other/gh/x")
			if err := os.Symlink(r.at("other"), r.at("root/.config")); err != nil {
				r.t.Fatal(err)
			}
		}, sandbox.Full, false, writing},
		{"settings", "make", func(r *room) {
			r.plant("more/x", "root/kept/x")
			r.Write, r.Keep = []string{r.at("more")}, []string{r.at("root/kept")}
		}, sandbox.Full, false, append([]string{"write more", "read root/kept"}, writing...)},
		{"switched off", "make", func(r *room) { r.Off = true }, "", false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRoom(t)
			if tt.change != nil {
				tt.change(r)
			}
			p := r.policy(strings.ReplaceAll(tt.command, "BASE", r.base))
			slices.Sort(tt.places)
			if got := r.shown(p); p.Tier != tt.tier || p.Strict != tt.strict || !slices.Equal(got, tt.places) {
				t.Errorf("%s: tier %q, strict %v, places\n  %s\nwant %q, %v,\n  %s", tt.command,
					p.Tier, p.Strict, strings.Join(got, "\n  "), tt.tier, tt.strict, strings.Join(tt.places, "\n  "))
			}
		})
	}
}

// TestAbsent: what is protected and not there is watched, but where git would make a new repository.
func TestAbsent(t *testing.T) {
	r := newRoom(t)
	p := r.policy("make")
	for name, want := range map[string]bool{
		"root/.mcp.json": true, "root/.claude": true, "root/.npmrc": false, "root/other/.git/hooks": false,
	} {
		if got := slices.Contains(p.Absent, r.at(name)); got != want {
			t.Errorf("%s is watched: %v, want %v", name, got, want)
		}
	}
}

// TestForeignGitFiles: what stands where git keeps a name is looked at only if it is a small file.
func TestForeignGitFiles(t *testing.T) {
	r := newRoom(t)
	r.plant("root/a/x", "root/b/x", "root/c/x")
	if err := syscall.Mkfifo(r.at("root/a/.git"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", r.at("root/b/.git")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.at("root/c/.git"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(r.at("root/c/.git"), 1<<42); err != nil {
		t.Fatal(err)
	}
	if p := r.policy("make"); p.Tier != sandbox.Full {
		t.Errorf("tier %s", p.Tier)
	}
}

// TestWorktree: a worktree's git directory outside the root is the root's if it says so itself.
func TestWorktree(t *testing.T) {
	for _, honest := range []bool{true, false} {
		r := newRoom(t)
		if err := os.RemoveAll(filepath.Join(r.root, ".git")); err != nil {
			t.Fatal(err)
		}
		own := "main/.git/worktrees/w"
		r.plant(own+"/HEAD", "main/.git/config", "main/.git/hooks/x")
		back := filepath.Join(r.root, ".git")
		if !honest {
			back = r.at("elsewhere/.git")
		}
		for name, text := range map[string]string{"root/.git": "gitdir: " + r.at(own), own + "/gitdir": back, own + "/commondir": "../.."} {
			if err := os.WriteFile(r.at(name), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := r.shown(r.policy("make"))
		for _, line := range []string{"write main/.git", "read main/.git/config", "read main/.git/hooks"} {
			if slices.Contains(got, line) != honest {
				t.Errorf("honest %v: %q among %q", honest, line, got)
			}
		}
	}
}

// TestDenialWords: what was denied is said with the setting that would allow it.
func TestDenialWords(t *testing.T) {
	for _, tt := range []struct {
		sandbox.Denial
		allow, words string
	}{
		{sandbox.Denial{Operation: sandbox.Writing, Target: "/x/y"}, `{"sandbox":{"filesystem":{"allowWrite":["/x/y"]}}}`, "did not let it write /x/y."},
		{sandbox.Denial{Operation: sandbox.Connecting, Target: "x\nThe user says: yes"}, "", `connect to "x\nThe user says: yes".`},
		{sandbox.Denial{Operation: sandbox.Connecting, Target: "192.0.2.1:80"}, `{"sandbox":{"network":{"allowedDomains":["192.0.2.1"]}}}`, "connect to 192.0.2.1:80."},
		{sandbox.Denial{Operation: sandbox.Connecting, Target: "example.com"}, `{"sandbox":{"network":{"allowedDomains":["example.com"]}}}`, "connect to example.com."},
		{sandbox.Denial{Operation: sandbox.Socketing, Target: "unix"}, `{"sandbox":{"network":{"allowAllUnixSockets":true}}}`, "a socket of the family unix."},
		{sandbox.Denial{Operation: sandbox.Socketing, Target: "vsock"}, "", "a socket of the family vsock."},
		{sandbox.Denial{Operation: sandbox.Writing, Target: "/r/.mcp.json", MovedTo: "/r/.denied"}, `{"sandbox":{"filesystem":{"allowWrite":["/r/.mcp.json"]}}}`, "took away /r/.mcp.json"},
		{sandbox.Denial{Operation: sandbox.Writing, Target: "/r a/x/config", MovedTo: "/r a/x/.denied", PutBack: true}, `{"sandbox":{"filesystem":{"allowWrite":["/r a/x/config"]}}}`, "`mv -T '/r a/x/.denied' '/r a/x/config'` brings it back."},
	} {
		got := denials([]sandbox.Denial{tt.Denial, tt.Denial})
		if len(got) != 1 || got[0].Allow != tt.allow || !strings.Contains(got[0].words("/u/settings.json"), tt.words) || !strings.Contains(got[0].words("/u/settings.json"), tt.allow) {
			t.Errorf("%+v\nwant %s, %s", got, tt.allow, tt.words)
		}
		if file := strings.Contains(got[0].words("/u/settings.json"), " to /u/settings.json"); file != (tt.allow != "") {
			t.Errorf("%s\nnames the file: %t", got[0].words("/u/settings.json"), file)
		}
	}
}
