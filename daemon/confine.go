// How the processes of a session's calls are confined: what settings say, what belongs to the
// daemon and to its user's other programs, and the session's directories for temporary files. What
// follows for one call is the pipeline's.

package daemon

import (
	"context"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/net/egress"
)

// keyPlaces are where programs keep what opens doors, below the home directory: the programs'
// manuals name them.
var keyPlaces = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube", ".docker/config.json", ".config/containers/auth.json", ".s3cfg", ".config/rclone", ".m2/settings.xml", ".netrc", ".npmrc",
	".git-credentials", ".config/git/credentials", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
	".terraform.d/credentials.tfrc.json", ".password-store", ".local/share/keyrings", ".config/op", ".vault-token", ".databrickscfg",
	".pgpass", ".my.cnf", ".config/1Password", ".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird",
}

// keysBelow returns those places below a home directory; none if it is not known.
func keysBelow(home string) (paths []string) {
	for _, name := range keyPlaces {
		if home != "" {
			paths = append(paths, filepath.Join(home, name))
		}
	}
	return paths
}

// manyProcesses is how many processes the user may have besides when a call starts another, unless
// settings say. Ours: a build needs some hundreds, a fork bomb stops there.
const manyProcesses = 4096

// confining works out what settings come to. client are the client's variables that say where
// caches are.
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
	c.HostsManaged = s.ManagedDomainsOnly != nil
	allowed, denied := convert.Each(s.AllowRead, entryPath), convert.Each(slices.Concat(s.DenyRead, s.CredentialFiles), entryPath)
	belongings, real := d.belongings(), leadsTo{}
	c.Hidden = make([]string, 0, len(d.user.keys)+len(belongings)+len(denied))
	for _, name := range d.user.keys {
		if path := real.of(name); !slices.Contains(allowed, path) {
			c.Hidden = append(c.Hidden, path)
		}
	}
	c.Hidden = append(append(c.Hidden, belongings...), denied...)
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

// programPlaces are the directories of the daemon's PATH below home, where the user's programs are
// looked up by name. Those of a project are not among them, such as a virtual environment's in a
// root: that is there to be worked in.
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

// belongings are what is the daemon's own and of no process that it starts: its state, with tokens
// and journal, and its sockets.
func (d *Daemon) belongings() []string {
	real := leadsTo{}
	paths := []string{real.of(d.StateDir)}
	for _, l := range d.endpoints.listening() {
		if path, ok := strings.CutPrefix(l.GetAddress(), "unix:"); ok {
			paths = append(paths, real.of(path), real.of(path+".lock"))
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

// outlet serves a way out by the daemon's own proxy. What it refuses is a denial of the tree that
// has asked for it.
func outlet(l net.Listener, clients sandbox.Clients) io.Closer {
	proxy := egress.NewProxy(func(remote, user string) (egress.Client, bool) {
		from, known := clients(remote, user)
		return clientOf(from), known
	})
	go func() { _ = proxy.Serve(l) }() // until Close, which joins it
	return proxy
}

// clientOf is the proxy's view of a tree.
func clientOf(tree sandbox.Client) egress.Client {
	c := egress.Client{
		Policy: egress.Policy{Allowed: tree.Network.Allowed, Denied: tree.Network.Denied},
		Refused: func(r egress.Refusal) {
			tree.Denied(sandbox.Denial{Operation: sandbox.Connecting, Target: r.Host, Count: 1, Answer: answerOf(r.Reason)})
		},
	}
	if tree.Ask != nil {
		c.Ask = func(ctx context.Context, host string, port uint16) egress.Reason {
			return reasonOf(tree.Ask(ctx, sandbox.Host{Name: host, Port: port}))
		}
	}
	return c
}

// reasonOf returns the proxy's reason for what a question about a host has come to; empty: it may be
// reached.
func reasonOf(a sandbox.Answer) egress.Reason {
	switch a {
	case sandbox.Permitted:
		return ""
	case "":
		return egress.NotAllowed
	}
	return egress.Reason(a) // the codes are the same
}

// answerOf returns what a question had come to that led to a refusal; empty: none was asked.
func answerOf(r egress.Reason) sandbox.Answer {
	if r == egress.NotPermitted || r == egress.Unanswered {
		return sandbox.Answer(r)
	}
	return ""
}

func textOf(e settings.Entry) string { return e.Text }

func entryPath(e settings.Entry) string { return realPath(e.Text) }

// within returns where entries lead, but for those in a root that lead out of it: who works in the
// root may have made the link.
func within(roots []string, entries []settings.Entry) (paths []string) {
	for _, e := range entries {
		real := realPath(e.Text)
		if !slices.ContainsFunc(roots, func(root string) bool { return pathname.Within(root, e.Text) && !pathname.Within(root, real) }) {
			paths = append(paths, real)
		}
	}
	return paths
}

// realPath is where the path leads as far as it exists.
func realPath(path string) string { return leadsTo{}.of(path) }

// leadsTo is realPath of the directories that were met so far, each of which is looked at once. It holds for the moment
// in which it is made.
type leadsTo map[string]string

// of is realPath.
func (r leadsTo) of(path string) string {
	if real, known := r[path]; known {
		return real
	}
	clean := filepath.Clean(path)
	if clean != path || pathname.IsLink(path) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	dir := filepath.Dir(clean)
	if dir == clean {
		return clean
	}
	real := r.of(dir)
	r[dir] = real
	if real == dir {
		return clean
	}
	return filepath.Join(real, filepath.Base(clean))
}

// scratchNames are the machine's directories for temporary files, and what the session's own are
// called.
var scratchNames = []struct{ name, dir string }{{"/tmp", "tmp"}, {"/var/tmp", "var-tmp"}}

// temporaries returns the directories for temporary files that the session's calls have; none where
// nothing confines their processes, which then have the machine's. opened are what stays the
// machine's below their names. With whole false one could not be made, which may be otherwise a
// moment later.
func (j *judge) temporaries(now *settings.Settings, opened []string) (temps []workspace.Temporary, whole bool) {
	confinement, err := j.daemon.runner.Confinement(sandbox.Policy{Tier: sandbox.Full, Optional: now.Sandbox.Optional != nil})
	if now.Sandbox.Disabled != nil || err != nil || confinement.Tier == sandbox.None {
		return nil, true
	}
	whole = true
	if j.outputs == "" { // a session that is only imagined starts no process that would need a mount point
		opened = nil
	}
	for _, known := range scratchNames {
		t := workspace.Temporary{Name: known.name, Dir: filepath.Join(j.temporary, known.dir)}
		if now.Sandbox.SharedTmp != nil {
			t.Dir = t.Name
		} else if err := makeScratch(t, opened); err != nil {
			j.daemon.Log.Warn("there is no directory for temporary files", zap.String("session", j.name), zap.Error(err))
			whole = false
			continue
		}
		temps = append(temps, t)
	}
	return temps, whole
}

// makeScratch makes the directory, with the mode that the machine's has as a rule, and in it what
// the sandbox needs to show the opened paths at their names.
func makeScratch(t workspace.Temporary, opened []string) error {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, path := range opened {
		if rel, err := filepath.Rel(t.Name, path); err == nil && rel != "." && filepath.IsLocal(rel) {
			_ = workspace.MakeMountPoint(root, rel, path) // a call may have put something in the way, and has to do without
		}
	}
	return root.Chmod(".", 0o777|os.ModeSticky)
}

// tempOf is where a session's directories for temporary files are.
func (d *Daemon) tempOf(session string) string {
	return filepath.Join(realPath(d.StateDir), "temp", session)
}

// lends returns the function that reports whether a real path is an output of another session than
// own that may be read in one of the principal with these roots: the session has the same principal
// and the same roots.
func (x *sessionSet) lends(own string, who access.Principal, roots []string) func(real string) bool {
	outputs := filepath.Join(realPath(x.d.StateDir), "sessions")
	return func(real string) bool {
		rest, below := strings.CutPrefix(real, outputs+"/")
		name, file := filepath.Split(rest)
		name = strings.TrimSuffix(name, "/")
		if !below || name == own || strings.Contains(name, "/") || !slices.Contains([]string{".out", ".txt"}, filepath.Ext(file)) {
			return false
		}
		about := x.keptMeta(name)
		if s, open := x.find(name); open {
			about = s.meta
		}
		return len(about.Roots) > 0 && slices.Equal(about.Roots, roots) && about.owner() == who
	}
}

// removeTree removes what is at the path, with all that is in it. A directory that its owner may
// not change does not keep it; Go's module cache consists of those. Nothing outside of it is
// touched.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	root, openErr := os.OpenRoot(path)
	if openErr != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = root.Chmod(name, 0o700) // it is called before what is in the directory is read
		}
		return nil
	})
	return os.RemoveAll(path)
}
