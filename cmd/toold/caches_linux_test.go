package main

// The user's own caches, in the sandbox: what they hold is there, and nothing that calls write gets into them. How the one is laid
// over the other is not known here.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestWarmCaches(t *testing.T) {
	inLasting(t)
	h := newHouse(t, map[string]string{
		"home/.cache/tool/own": "warm\n", "home/.cache/secret/key": "hidden\n", "home/.cargo/registry/crate": "a crate\n",
		"home/.cargo/credentials.toml": "a token\n", "home/.npm/_cacache/x": "a package\n",
	})
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.GetSandbox() != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		skip(t, "run this where users may make namespaces")
	}
	root := h.room(t, "caches", map[string]string{
		"read.sh":  `cat ~/.cache/tool/own ~/.cargo/registry/crate ~/.npm/_cacache/x; cat ~/.cargo/credentials.toml ~/.cache/secret/key 2>/dev/null; echo read`,
		"write.sh": `echo more >>~/.cache/tool/own; echo new >~/.npm/new; rm ~/.npm/_cacache/x; mv ~/.cargo/registry/crate ~/.cargo/registry/moved; chmod 600 ~/.cache/tool/own; mkfifo ready; echo wrote`,
		"again.sh": `cat ~/.cache/tool/own ~/.npm/new ~/.cargo/registry/moved; ls ~/.npm/_cacache`,
		"hold.sh":  `echo from behind >~/.cache/tool/behind; echo up >ready; exec sleep 600`,
		"meet.sh":  `cat ready ~/.cache/tool/behind; echo from here >>~/.cache/tool/behind; cat ~/.cache/tool/behind`,
	})
	home := filepath.Join(h.dir, "home")
	a := in(root, &tooldv1.Options{SettingsJson: proto.String(`{"sandbox":{"filesystem":{"denyRead":["` + home + `/.cache/secret"]}}}`)})
	c := h.attach(t, a)
	same(t, "reads", printedLines(textIn(c.run("1", "sh read.sh"))), "warm", "a crate", "a package", "read")
	same(t, "writes", printedLines(textIn(c.run("2", "sh write.sh"))), "wrote")
	same(t, "finds", printedLines(textIn(c.run("3", "sh again.sh"))), "warm", "more", "new", "a crate")

	// Two calls that may do different things at once, over the same caches.
	c.use("4", "Bash", `{"command":"sh hold.sh","run_in_background":true}`)
	c.finish("4", yes)
	same(t, "meets", printedLines(textIn(c.run("5", "touch "+h.dir+"/beside; sh meet.sh"))), "up", "from behind", "from behind", "from here")

	// Another session in the same root finds them too, one in another root does not.
	c = h.attach(t, &tooldv1.Attach{SessionId: "beside", Roots: []string{root}, Capabilities: &tooldv1.Capabilities{Answers: true}})
	same(t, "finds beside", printedLines(textIn(c.run("6", "sh again.sh"))), "warm", "more", "new", "a crate")
	other := h.room(t, "elsewhere", map[string]string{"read.sh": `cat ~/.cache/tool/own ~/.cargo/registry/crate; ls ~/.npm`})
	c = h.attach(t, in(other, nil))
	same(t, "reads elsewhere", printedLines(textIn(c.run("7", "sh read.sh"))), "warm", "a crate", "_cacache")

	for name, want := range map[string]string{
		".cache/tool/own": "warm\n", ".cargo/registry/crate": "a crate\n", ".npm/_cacache/x": "a package\n", ".npm/new": "", ".cache/tool/behind": "",
		".cargo/registry/moved": "", ".cargo/credentials.toml": "a token\n",
	} {
		if got := content(t, filepath.Join(home, name)); got != want {
			t.Errorf("the user's own ~/%s holds %q, and is to hold %q", name, got, want)
		}
	}
}

// TestCachesOfTheClient: what the client's environment names counts if it lies below home, and the user's own files there do not
// change either. A place elsewhere does not, and nor does one that is hidden.
func TestCachesOfTheClient(t *testing.T) {
	h := ordinary(t)
	if h.tier(t) != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		skip(t, "run this where users may make namespaces")
	}
	home, elsewhere := filepath.Join(h.dir, "home"), filepath.Join(h.dir, "elsewhere")
	for _, dir := range []string{filepath.Join(home, "work/go-build"), filepath.Join(home, "other"), elsewhere} {
		put(t, filepath.Join(dir, "own"), "warm\n")
	}
	root := h.room(t, "client", map[string]string{
		"write.sh": "cat \"$1/own\" && echo more >>\"$1/own\" && cat \"$1/own\"\n",
		"below.sh": "sh write.sh \"$(cd ~/.. && pwd)/$1\"\n", // so that no word of a command names the directory
	})
	a := in(root, nil)
	a.Env = map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": home, "GOCACHE": filepath.Join(home, "work/go-build"), "npm_config_cache": elsewhere,
		"PIP_CACHE_DIR": home, "CCACHE_DIR": filepath.Join(home, ".ssh"),
	}
	c := h.attach(t, a)
	same(t, "writes", printedLines(textIn(c.run("1", "sh write.sh ~/work/go-build"))), "warm", "warm", "more")
	for i, x := range []struct{ path, says string }{{"elsewhere", "Read-only"}, {"home/other", "Read-only"}, {"home/.ssh", "denied"}} {
		r := c.run(string(rune('a'+i)), "sh below.sh "+x.path)
		holds(t, x.path, strings.ToLower(textIn(r)), strings.ToLower(x.says))
	}
	a.Env["GOCACHE"] = filepath.Join(home, "other") // who attaches again says so
	c = h.attach(t, a)
	same(t, "writes", printedLines(textIn(c.run("2", "sh write.sh ~/other"))), "warm", "warm", "more")
	for _, dir := range []string{filepath.Join(home, "work/go-build"), filepath.Join(home, "other"), elsewhere} {
		expect(t, dir, content(t, filepath.Join(dir, "own")), "warm\n")
	}
	expect(t, "the key", content(t, filepath.Join(home, ".ssh/id")), "the key\n")
}

// TestFirstBuild: what the user has compiled is not compiled again, and Go's settings are the user's.
func TestFirstBuild(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		skip(t, "install go")
	}
	inLasting(t)
	environ, ws := home(t)
	h := &house{dir: filepath.Dir(ws)}
	h.environ = append(environ, "HOME="+filepath.Join(h.dir, "home"), "CLAUDE_CONFIG_DIR=", "GOCACHE=", "GOMODCACHE=", "GOPATH=", "GOFLAGS=", "XDG_CACHE_HOME=")
	root := h.room(t, "first", map[string]string{
		"go.mod": "module first\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() { println(\"built\") }\n",
	})
	if out, code := h.inShell(t, root, "mkdir -p ~ && go build -o built ."); code != 0 {
		t.Fatal(out)
	}
	h.start(t, root)
	c := h.attach(t, in(root, nil))
	for i, command := range []string{"go env GOCACHE GOMODCACHE GOPATH", "go build -v -o again . && ./again", "go env GOCACHE; touch x"} {
		want, _ := h.inShell(t, root, command)
		if got, _ := raw(t, c.run(string(rune('a'+i)), command)); got != want {
			t.Errorf("%s\nprints %q in the sandbox, and %q in a shell", command, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "again")); err != nil {
		t.Error(err)
	}
}

func printedLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// TestCachesAsNobody compiles nothing for the first time, but with TOOLD_ALL: that takes long, and is the same for every user.
func TestCachesAsNobody(t *testing.T) {
	tests := "^(TestWarmCaches|TestCachesOfTheClient)$"
	if allIsTried() {
		tests = "^(TestWarmCaches|TestFirstBuild|TestCachesOfTheClient)$"
	}
	asNobody(t, "testdata/home", tests)
}
