package main

// What programs find where the kernel gives no namespaces: the machine's own devices and processes as far as they may be seen,
// no sockets, and the user's caches without a way to write to them.

import (
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
