// How the processes of a session's calls are confined: what settings say, and what belongs to the daemon and to its user's
// other programs. What follows for one call is the pipeline's.

package daemon

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/convert"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/net/egress"
)

// keyPlaces are where programs keep what opens doors, below the home directory: the programs' manuals name them.
var keyPlaces = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube", ".docker/config.json", ".config/containers/auth.json", ".s3cfg", ".config/rclone", ".m2/settings.xml", ".netrc", ".npmrc",
	".git-credentials", ".config/git/credentials", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
	".terraform.d/credentials.tfrc.json", ".password-store", ".local/share/keyrings", ".config/op", ".vault-token", ".databrickscfg",
	".pgpass", ".my.cnf", ".config/1Password", ".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird",
}

// manyProcesses is how many processes the user may have besides when a call starts another, unless settings say. Ours: a
// build needs some hundreds, a fork bomb stops there.
const manyProcesses = 4096

// confining works out what settings come to. client are the client's variables that say where caches are.
func (d *Daemon) confining(now *settings.Settings, roots []string, owner access.Principal, client map[string]string) pipeline.Confining {
	s := &now.Sandbox
	limits := s.Within(settings.ProcessLimits{Processes: manyProcesses})
	c := pipeline.Confining{
		Runner: d.runner, Off: s.Disabled != nil, Optional: s.Optional != nil, Filter: s.Filter(), Git: &d.git,
		UnixSockets: s.AllUnixSockets != nil,
		Write:       within(roots, s.AllowWrite), Keep: convert.Each(s.DenyWrite, entryPath), Programs: d.programPlaces(roots),
		Limits: sandbox.Limits{
			Processes: uint64(limits.Processes), OpenFiles: uint64(limits.OpenFiles), Memory: uint64(limits.Memory), FileSize: uint64(limits.FileSize),
		},
	}
	c.Caches = d.caches(owner, roots, client)
	c.Network.Allowed, c.Network.Denied = now.Reach()
	allowed, denied := convert.Each(s.AllowRead, entryPath), convert.Each(slices.Concat(s.DenyRead, s.CredentialFiles), entryPath)
	if d.user.home != "" {
		for _, name := range keyPlaces {
			if path := realPath(filepath.Join(d.user.home, name)); !slices.Contains(allowed, path) {
				c.Hidden = append(c.Hidden, path)
			}
		}
	}
	c.Hidden = append(append(c.Hidden, d.belongings()...), denied...)
	for _, path := range allowed {
		if !slices.Contains(denied, path) && slices.ContainsFunc(c.Hidden, func(dir string) bool { return strings.HasPrefix(path, dir+"/") }) {
			c.Shown = append(c.Shown, path)
		}
	}
	return c
}

// reachedBy returns the hosts that the rules which a session remembers open to its commands.
func reachedBy(kept []remembered, now *settings.Settings) (hosts []string) {
	for _, r := range kept {
		domain, ok := strings.CutPrefix(r.Rule, "WebFetch(domain:")
		if ok && r.List == permission.AllowList && now.Sandbox.ManagedDomainsOnly == nil {
			hosts = append(hosts, strings.TrimSuffix(domain, ")"))
		}
	}
	return hosts
}

// programPlaces are the directories of the daemon's PATH below home, where the user's programs are looked up by name. Those of a
// project are not among them, such as a virtual environment's in a root: that is there to be worked in.
func (d *Daemon) programPlaces(roots []string) (places []string) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if d.user.home == "" || dir == d.user.home || !pathname.Within(d.user.home, dir) {
			continue
		}
		project := func(root string) bool { return pathname.Within(root, dir) && !pathname.Within(root, d.user.home) }
		if !slices.ContainsFunc(roots, project) {
			places = append(places, realPath(dir))
		}
	}
	return places
}

// belongings are what is the daemon's own and of no process that it starts: its state, with tokens and journal, and its
// sockets.
func (d *Daemon) belongings() []string {
	paths := []string{realPath(d.StateDir)}
	for _, l := range d.endpoints.listening() {
		if path, ok := strings.CutPrefix(l.GetAddress(), "unix:"); ok {
			paths = append(paths, realPath(path), realPath(path+".lock"))
		}
	}
	return paths
}

// escapeOf is what settings say of leaving the sandbox.
func escapeOf(now *settings.Settings, anchors permission.Anchors) permission.Escape {
	s := &now.Sandbox
	e := permission.Escape{Denied: s.NoEscape, AutoAllow: s.AutoAllow}
	if len(s.Excluded) > 0 {
		e.Excluded = permission.Compile(s.Excluded, anchors)
	}
	return e
}

// outlet serves ways out by the daemon's own proxy. What it refuses is a denial of the process that asked.
func outlet(denied func(id string, d sandbox.Denial)) sandbox.Outlet {
	return func(n sandbox.Network, l net.Listener) io.Closer {
		proxy := egress.NewProxy(egress.Policy{Allowed: n.Allowed, Denied: n.Denied}, func(r egress.Refusal) {
			denied(r.User, sandbox.Denial{Operation: sandbox.Connecting, Target: r.Host, Count: 1})
		})
		go func() { _ = proxy.Serve(l) }() // until Close, which joins it
		return proxy
	}
}

func pathOf(e settings.Entry) string { return e.Path }

func entryPath(e settings.Entry) string { return realPath(e.Path) }

// within returns where entries lead, but for those in a root that lead out of it: who works in the root may have made the link.
func within(roots []string, entries []settings.Entry) (paths []string) {
	for _, e := range entries {
		real := realPath(e.Path)
		if !slices.ContainsFunc(roots, func(root string) bool { return pathname.Within(root, e.Path) && !pathname.Within(root, real) }) {
			paths = append(paths, real)
		}
	}
	return paths
}

// realPath is where the path leads as far as it exists.
func realPath(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
