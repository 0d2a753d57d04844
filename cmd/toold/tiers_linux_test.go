package main

// What programs find where the kernel gives no namespaces: the machine's own devices and processes as far as they may be seen,
// no sockets, and the user's caches without a way to write to them.

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A met is a command and what comes of it in the fallback: what its result has in it and, after !, that it fails.
type met struct{ command, want string }

// meet sends commands that may write, and none of which is asked about twice.
func (c *talk) meet(list []met) {
	c.t.Helper()
	for _, x := range list {
		want, fails := strings.CutPrefix(x.want, "!")
		r := c.run(x.command, x.command)
		if failed := r.GetOutcome() != tooldv1.Outcome_OUTCOME_OK; failed != fails || r.GetConfinement().GetTier() != tooldv1.SandboxTier_SANDBOX_TIER_FAST {
			c.t.Errorf("%s\nends %s in %s:\n%s", x.command, outcome(r), r.GetConfinement().GetTier(), textIn(r))
		}
		holds(c.t, x.command, textIn(r), want)
	}
}

func TestSystemWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	h := ordinary(t)
	root := h.room(t, "system", map[string]string{
		"unix.py": "import socket\nsocket.socket(socket.AF_UNIX)\n",
		"tcp.py":  "import socket\nsocket.create_server((\"127.0.0.1\", 0))\n",
		"shm.sh":  "echo x >/dev/shm/toold-kept\n",
	})
	h.attach(t, in(root, nil)).meet([]met{
		{"cat /proc/self/comm", "cat"},
		{"touch x; cat /proc/self/comm", "cat"},
		{"df . | tail -n 1", "%"},
		{"touch x; df . | tail -n 1", "%"},
		{"cat <(echo by descriptor); touch x", "by descriptor"},
		{"ls /dev/fd; touch x", "0"},
		{"sh shm.sh", "!Permission denied"},
		{"python3 unix.py", "!PermissionError"},
		{"python3 tcp.py", "!PermissionError"},
		{"echo x | python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"pair\"); print(b.recv(9))'", "pair"},
		{"touch x; curl -sS https://host.example/", "!host.example"},
	})
}

// TestCachesWithoutNamespaces: calls read what the user's caches hold, write elsewhere, and find that again.
func TestCachesWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	inLasting(t)
	h := newHouse(t, map[string]string{
		"home/.cache/tool/own": "warm\n", "home/.cache/pip/own": "warm\n", "home/.cargo/registry/crate": "a crate\n", "home/.cargo/credentials.toml": "a token\n",
	})
	root := h.room(t, "caches", map[string]string{
		"read.sh":  "cat ~/.cache/tool/own ~/.cargo/registry/crate\n",
		"token.sh": "cat ~/.cargo/credentials.toml\n",
		"write.sh": "echo more >>~/.cache/tool/own\n",
		"keep.sh":  "echo kept >\"$XDG_CACHE_HOME/kept\" && echo wrote\n",
		"again.sh": "cat \"$XDG_CACHE_HOME/kept\"\n",
	})
	h.attach(t, in(root, nil)).meet([]met{
		{"sh read.sh", "warm\na crate"},
		{"sh token.sh", "!denied"},
		{"sh write.sh", "!denied"},
		{"sh keep.sh", "wrote"},
		{"sh again.sh", "kept"},
	})
	a := &tooldv1.Attach{SessionId: "beside", Roots: []string{root}, Capabilities: &tooldv1.Capabilities{Answers: true}}
	h.attach(t, a).meet([]met{{"sh again.sh", "kept"}})
	home := filepath.Join(h.dir, "home")
	expect(t, "the user's own cache", content(t, filepath.Join(home, ".cache/tool/own")), "warm\n")
	absent(t, home, ".cache/kept")
}

// TestMachineTemporaryWithoutNamespaces: of the machine's temporary directories a command sees what it names, and nothing beside it.
func TestMachineTemporaryWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	h, places := aTemporaryHouse(t)
	dir := places.Replace("PIC")
	put(t, filepath.Join(dir, "beside"), "not named\n")
	root := h.room(t, "machine", map[string]string{"dir": dir, "beside.sh": "cat \"$(cat dir)/beside\"\n", "list.sh": "ls \"$(cat dir)\"\n"})
	h.attach(t, in(root, nil)).meet([]met{
		{"cat " + dir + "/shot.txt", "of the machine"},
		{"touch x; cat " + dir + "/shot.txt", "of the machine"},
		{"sh beside.sh", "!denied"},
		{"sh list.sh", "!denied"},
		{"cat " + dir + "/shot.txt && sh beside.sh", "!denied"},
	})
}

// TestTierOfReads: what only reads gets the fast tier, and the full one where that would show something else.
func TestTierOfReads(t *testing.T) {
	h := ordinary(t)
	if h.tier(t) != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		skip(t, "run this where users may make namespaces")
	}
	root := h.room(t, "tiers", map[string]string{"x": "1\n", "go.mod": "module example.com/m\n"})
	put(t, filepath.Join(h.dir, "home/.cache/tool/own"), "warm\n")
	c := h.attach(t, in(root, nil))
	c.run("export", "export F=x T=/tmp/made API_KEY=k; echo 1 > $T; git init -q")
	for i, x := range []struct{ command, tier, want string }{
		{"wc -l $F", "FAST", "1 x"},
		{`test -n "$API_KEY" && echo set || echo unset`, "FAST", "unset"},
		{"for f in *; do wc -l < $f; done", "FULL", "1"},
		{"git config user.name", "FAST", "A"},
		{"head -1 /proc/cpuinfo", "FAST", "processor"},
		{"cat ~/.cache/tool/own", "FAST", "warm"},
		{"cat " + filepath.Join(h.dir, "home/.ssh/id"), "FAST", "the key"},
		{"sleep 1000 & echo left", "FULL", "left"},
		{"cat $T", "FULL", "1"},
		{"ls /tmp", "FULL", "made"},
		{"cat /proc/self/comm", "FULL", "cat"},
		{"cat <(echo by descriptor)", "FAST", "by descriptor"},
		{"df . | tail -n 1", "FULL", "%"},
		{"ss -ltn", "FULL", "State"},
		{"go env GOOS", "FULL", "linux"},
	} {
		r := c.run(fmt.Sprint(i), x.command)
		if tier := strings.TrimPrefix(r.GetConfinement().GetTier().String(), "SANDBOX_TIER_"); tier != x.tier {
			t.Errorf("%s runs in %s, and not in %s", x.command, tier, x.tier)
		}
		holds(t, x.command, textIn(r), x.want)
	}
}
