// The confinement of a process, from its start to its end. confine_linux.go starts it.

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// confinementOf is what confines one process.
type confinementOf struct {
	first      int         // the first process of its own process namespace; 0: none
	instance   *instance   // nil: not confined
	supervisor *supervisor // nil: denials are not noticed
	fresh      *fresh      // nil: no files were made for it
	watch      []string    // protected paths that did not exist when it was started
}

// Confinement returns how a process under p would be confined here. An *UnavailableError means that
// the process would not be started.
func (r *Runner) Confinement(p Policy) (Confinement, error) {
	t, err := r.host.tierFor(p)
	if err != nil {
		return Confinement{}, err
	}
	return Confinement{Tier: t, NotCovered: r.host.notCovered(p, t)}, nil
}

// spawn starts the main process under its policy.
func (p *Process) spawn(files []*os.File) error {
	g, c := &p.runner.host, p.command
	t, err := g.tierFor(c.Policy)
	switch {
	case err != nil:
		return err
	case t == None:
		return p.spawnFree(c.Path, c.Args, files)
	case !filepath.IsAbs(c.Path):
		return fmt.Errorf("starting %q: the path of a program must be absolute", c.Path)
	}
	if c.Terminal != nil {
		c.Policy.terminal = p.marker
	}
	empty := makeFresh(c.Policy.Fresh)
	made, err := g.instances.enter(c.Policy, t)
	if err == nil {
		p.confine = confinementOf{instance: made, watch: c.Policy.Absent, fresh: empty}
		var port int
		if port, err = g.instances.wayOut(made, c.Policy.Network); err == nil {
			c.Env = p.environ(wayOut(port, made.userOf(c.ID), c.Policy.Network)...)
			err = p.spawnConfined(&launch{host: g, instance: made, command: c}, files)
		}
		if err == nil {
			return nil
		}
		g.instances.leave(made)
	}
	empty.close()
	return err
}

// userOf returns the user name that identifies a tree to the proxy, with its separator. In Full the
// proxy knows each connection. git and wget need a password as well, which the proxy ignores.
func (c *instance) userOf(id string) string {
	if c.network != nil {
		return ""
	}
	return id + ":x@"
}

// wayOut returns the variables by which programs find the proxy.
func wayOut(port int, user string, n Network) (environ []string) {
	if port == 0 {
		return nil
	}
	proxy := fmt.Sprintf("=http://%s127.0.0.1:%d", user, port)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		environ = append(environ, name+proxy)
	}
	own := slices.DeleteFunc([]string{"localhost", "127.0.0.1", "::1"}, func(host string) bool { return slices.Contains(n.Allowed, host) })
	direct := strings.Join(own, ",") // connections to its own loopback bypass the proxy
	return append(environ, "NO_PROXY="+direct, "no_proxy="+direct, "GIT_HTTP_PROXY_AUTHMETHOD=basic")
}

// spawnConfined starts the process with those descriptors, behind its terminal if it has one.
func (p *Process) spawnConfined(l *launch, files []*os.File) error {
	open := func() (master, slave *os.File, err error) { return l.instance.openTerminal(l.host.instances.users) }
	files, done, err := p.withTerminal(files, open)
	if err != nil {
		return err
	}
	defer done()
	l.files = files
	waited.starting.RLock()
	defer waited.starting.RUnlock()
	b, err := l.start()
	if err != nil {
		return err
	}
	if p.child, err = os.FindProcess(b.main); err != nil {
		b.end()
		return err
	}
	waited.mains.Store(b.main, nil)
	if b.first != 0 {
		waited.mains.Store(b.first, nil)
		p.confine.first = b.first
	}
	if b.listener != nil {
		p.confine.supervisor = newSupervisor(b.listener, l.command.Policy, l.instance, p)
	}
	return nil
}

// isPlain reports whether the instance of a process may outlive the call: it has made nothing that is
// visible elsewhere, and its proxy, if there is one, does not tell calls apart by a name.
func (b *confinementOf) isPlain() bool {
	return b.fresh == nil && (b.instance == nil || len(b.instance.points) == 0 && b.instance.proxy == nil)
}

// hasOrphans reports whether a process of the tree lives whose parents have died.
func (b *confinementOf) hasOrphans() bool {
	if b.first == 0 {
		return false
	}
	list, _ := os.Open(fmt.Sprintf("/proc/%d/task/%[1]d/children", b.first))
	defer list.Close()
	return len(childrenIn(list, b.first)) > 0
}

// unconfine ends the confinement once the tree has ended, and returns the denials.
func (p *Process) unconfine() (denials []Denial) {
	b := &p.confine
	if b.instance == nil {
		return nil
	}
	if b.first != 0 {
		p.endFirst()
	}
	if b.supervisor != nil {
		denials, p.exit.Created = b.supervisor.finish()
	}
	b.fresh.close()
	p.runner.host.instances.leave(b.instance)
	return append(p.made(), denials...)
}

// endFirst kills the first process, and with it everything that may be left, and collects it. It
// does not wait if the kernel holds one of the processes.
func (p *Process) endFirst() {
	first, err := os.FindProcess(p.confine.first)
	if err != nil {
		return
	}
	_ = first.Kill()
	end := func() {
		awaitExit(first.Pid) // no lock is held
		_, _ = collect(first)
	}
	if len(p.exit.Stuck) == 0 {
		end()
	} else {
		go end()
	}
}
