package sandbox

// What a process is confined with, from its start to its end. How that is made is confine_linux.go's.

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A confine is what confines one process.
type confinementOf struct {
	first    int       // the first process of its own process namespace; 0: it has none
	instance *instance // nil: it is not confined
	guard    *guard    // nil: nobody learns of denials
	fresh    *fresh    // nil: nothing was made for it
	watch    absences
}

// confineWith finds out what there is to confine with.
func (r *Runner) confineWith(outlet Outlet) {
	r.host.instances = instances{
		outlet: outlet, all: map[string]*instance{}, points: map[mountPoint]int{}, networks: map[string]*network{}, layers: map[string]*layers{},
	}
	r.host.probe()
}

func (r *Runner) letGo() { r.host.close() }

// Confinement returns how a process under p would be confined here. An *UnavailableError says that it would not be started.
func (r *Runner) Confinement(p Policy) (Confinement, error) {
	t, err := r.host.tierFor(p)
	if err != nil {
		return Confinement{}, err
	}
	return Confinement{Tier: t, NotCovered: r.host.notCovered(p, t)}, nil
}

// spawn starts the main process as its policy says.
func (p *Process) spawn(c Command, environ []string, files []*os.File) error {
	t, err := p.runner.host.tierFor(c.Policy)
	if err != nil {
		return err
	}
	if t == None {
		return p.spawnFree(c, environ, files)
	}
	if len(c.Path) == 0 || c.Path[0] != '/' {
		return fmt.Errorf("starting %q: the path of a program is absolute", c.Path)
	}
	g := &p.runner.host
	empty := makeFresh(c.Policy.Fresh)
	made, err := g.instances.enter(c.Policy, t)
	if err != nil {
		empty.close()
		return err
	}
	p.confine = confinementOf{instance: made, watch: c.Policy.Absent, fresh: empty}
	if err := p.spawnConfined(&launch{
		policy: c.Policy, tier: t, instance: made, users: g.instances.users, command: c, environ: slices.Insert(environ, len(environ)-1, wayOut(made.port, c.ID, c.Policy.Network)...), files: files, first: g.first, threads: &g.threads,
	}); err != nil {
		empty.close()
		g.instances.leave(made)
		return err
	}
	return nil
}

// wayOut are the variables by which programs find the proxy; the user's name in them says which call asks. git and wget want a
// password beside it, which the proxy does not look at.
func wayOut(port int, id string, n Network) (environ []string) {
	if port == 0 {
		return nil
	}
	proxy := fmt.Sprintf("=http://%s:x@127.0.0.1:%d", id, port)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		environ = append(environ, name+proxy)
	}
	own := slices.DeleteFunc([]string{"localhost", "127.0.0.1", "::1"}, func(host string) bool { return slices.Contains(n.Allowed, host) })
	direct := strings.Join(own, ",") // its own loopback is not the proxy's
	return append(environ, "NO_PROXY="+direct, "no_proxy="+direct, "GIT_HTTP_PROXY_AUTHMETHOD=basic")
}

func (p *Process) spawnConfined(l *launch) error {
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
	await(b.main)
	if b.first != 0 {
		await(b.first)
		p.confine.first = b.first
	}
	if b.listener != nil {
		p.confine.guard = newGuard(b.listener, l.policy, l.instance)
	}
	return nil
}

// hasOrphans reports whether something of the tree lives whose parents have died.
func (b *confinementOf) hasOrphans() bool {
	if b.first == 0 {
		return false
	}
	list, err := os.Open(fmt.Sprintf("/proc/%d/task/%[1]d/children", b.first))
	if err != nil {
		return len(childrenByScan(b.first)) > 0
	}
	defer list.Close()
	return len(childrenIn(list, b.first)) > 0
}

// unconfine ends what confines the process, when its tree is at its end, and says what was denied.
func (p *Process) unconfine() (denials []Denial) {
	b := &p.confine
	if b.instance == nil {
		return nil
	}
	if b.first != 0 {
		p.endFirst()
	}
	if b.guard != nil {
		denials, p.exit.Created = b.guard.finish()
	}
	b.fresh.close()
	p.runner.host.instances.leave(b.instance)
	return append(p.made(), denials...)
}

// endFirst kills the first process, and with it all that may be left, and collects it. Its end waits for that of all
// others: not here, when the kernel holds one of them.
func (p *Process) endFirst() {
	first, err := os.FindProcess(p.confine.first)
	if err != nil {
		return
	}
	_ = first.Kill()
	end := func() {
		awaitExit(first.Pid) // holding nothing
		_, _ = collect(first)
	}
	if len(p.exit.Stuck) == 0 {
		end()
	} else {
		go end()
	}
}
