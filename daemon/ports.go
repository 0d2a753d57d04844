// Ports on which background tasks listen in the sandbox, opened at an address of the machine's
// loopback that only this session has. How connections are passed on is not known here.

package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/net/forward"
)

const (
	// lowestPort is the first port that a user without rights may listen on.
	lowestPort = 1024
	// manyOpenPorts is how many ports of a session are open at the same time; ours. A project has a
	// few servers.
	manyOpenPorts = 16
	// portTick is how often it is looked whether a port that is open or asked about is still
	// served: the kernel reports the end of a listener to no one. It is also how long a port has to
	// be served before the user is asked, so that tests with servers of their own ask nothing.
	portTick = time.Second
)

// A portForwarder opens the ports of one session.
type portForwarder struct {
	s  *session
	at netip.Addr // the session's own address

	mu      sync.Mutex // held while ports are reviewed; taken before update
	ports   map[int]*servedPort
	looking bool // a goroutine reviews them with each tick
}

// A servedPort is one on which a task listens.
type servedPort struct {
	tools.Port
	task    *background.Task
	since   time.Time        // when it was first seen
	forward *forward.Forward // nil: it is not open
}

// review compares the ports with those on which tasks listen now, and opens, asks about and closes
// them. It must not be called inside an update.
func (f *portForwarder) review() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.served()
	for number, p := range f.ports {
		if next := now[number]; next == nil || next.task != p.task {
			f.end(p)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(now)) {
		if f.ports[number] == nil {
			f.ports[number] = now[number]
		}
		f.advance(f.ports[number])
	}
	f.look()
}

// clientCame reviews the ports if one of them could not be asked about, now that a client came.
func (f *portForwarder) clientCame() {
	f.mu.Lock()
	waits := f.count(func(p *servedPort) bool { return p.State == tools.PortUnanswered }) > 0
	f.mu.Unlock()
	if waits {
		f.s.goUnlessStopping(func(context.Context) { f.review() })
	}
}

// served returns the ports on which tasks listen; if two tasks listen on one port, the older one
// counts.
func (f *portForwarder) served() map[int]*servedPort {
	ports := map[int]*servedPort{}
	for _, task := range f.s.tasks.running() {
		for _, l := range task.Listening() {
			if l.Port >= lowestPort && ports[l.Port] == nil {
				url := "http://" + netip.AddrPortFrom(f.at, uint16(l.Port)).String()
				ports[l.Port] = &servedPort{Port: tools.Port{Number: l.Port, URL: url, Program: l.Program}, task: task, since: time.Now()}
			}
		}
	}
	return ports
}

// advance brings a port into the state that settings, answers and the machine allow. mu is held.
func (f *portForwarder) advance(p *servedPort) {
	before := p.State
	p.State = f.permitted(p)
	switch {
	case p.State != tools.PortOpen:
		p.close()
	case p.forward == nil:
		p.State = f.open(p)
	}
	if p.State != before {
		f.notify(p, before)
	}
}

// permitted returns PortOpen, or why the port is not to be opened. It asks the user if need be, and
// withdraws a question that settings have decided meanwhile. mu is held.
func (f *portForwarder) permitted(p *servedPort) (permitted tools.PortState) {
	setting := f.s.judge.policy().settings.Sandbox.ForwardPorts
	f.s.update(func(its *state) {
		yes, answered := its.questions.ports[p.Number]
		switch {
		case setting == settings.ForwardNever:
			permitted = tools.PortNever
		case setting == settings.ForwardAlways || answered && yes:
			permitted = tools.PortOpen
		case answered:
			permitted = tools.PortRefused
		default:
			permitted = f.s.asker.askPort(its, p)
			return
		}
		f.s.asker.withdrawPort(its, p.Number, "settings decide about it by now")
	})
	return permitted
}

// open opens the port, and returns the state that it has then. mu is held.
func (f *portForwarder) open(p *servedPort) tools.PortState {
	if f.count(func(o *servedPort) bool { return o.forward != nil }) >= manyOpenPorts {
		return tools.PortLimited
	}
	opened, err := forward.Open(netip.AddrPortFrom(f.at, uint16(p.Number)), func(ctx context.Context) (*net.TCPConn, error) {
		c, err := p.task.Dial(ctx, p.Number)
		if errors.Is(err, syscall.ECONNREFUSED) {
			f.s.goUnlessStopping(func(context.Context) { f.review() }) // nothing listens there any more
		}
		return c, err
	})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return tools.PortTaken
	case err != nil:
		f.s.daemon.Log.Warn("a port could not be opened", zap.String("session", f.s.name), zap.String("url", p.URL), zap.Error(err))
		return tools.PortFailed
	}
	p.forward = opened
	return tools.PortOpen
}

func (p *servedPort) close() {
	if p.forward != nil {
		p.forward.Close()
		p.forward = nil
	}
}

// end forgets a port on which nothing listens any more. mu is held.
func (f *portForwarder) end(p *servedPort) {
	delete(f.ports, p.Number)
	p.close()
	f.s.update(func(its *state) { f.s.asker.withdrawPort(its, p.Number, "nothing listens on the port any more") })
	if p.State == tools.PortOpen {
		text := fmt.Sprintf("%s is closed: the background task %s no longer listens on port %d.", p.URL, p.task.ID, p.Number)
		f.record(p, pipeline.Noticed{Code: "port_closed", Message: text})
	}
}

// notify notifies clients of a port whose state was another one before. A question is its own
// notice.
func (f *portForwarder) notify(p *servedPort, before tools.PortState) {
	text := fmt.Sprintf("%s The background task is %s, and the program that listens states its command line as: %s", p.Port, p.task.ID, p.Program)
	switch p.State {
	case tools.PortOpen:
		f.record(p, pipeline.Noticed{Code: "port_opened", Message: text})
	case tools.PortTaken, tools.PortLimited, tools.PortFailed, tools.PortUnanswered:
		f.record(p, pipeline.Noticed{Code: "port_not_opened", Message: text})
	default:
		if before == tools.PortOpen {
			f.record(p, pipeline.Noticed{Code: "port_closed", Message: text})
		}
	}
}

// A portEvent is what notices about ports carry for programs.
type portEvent struct {
	tools.Port
	TaskID string `json:"task_id"`
}

// record records a notice about the port, with the call that has started its task.
func (f *portForwarder) record(p *servedPort, n pipeline.Noticed) {
	n.Details = portEvent{p.Port, p.task.ID}
	f.s.update(func(its *state) {
		n.CallID = its.ledger.idOf(f.s.tasks.keyOf(p.task))
		its.ledger.append(entry(nil, n))
	})
}

// look has the ports reviewed with each tick, as long as one of them is open or about to be. mu is
// held.
func (f *portForwarder) look() {
	if f.looking || !f.due() {
		return
	}
	f.looking = true
	f.s.goUnlessStopping(func(ctx context.Context) {
		tick := time.NewTicker(portTick)
		defer tick.Stop()
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			f.review()
			f.mu.Lock()
			more = f.due()
			f.looking = more
			f.mu.Unlock()
		}
	})
}

// due reports whether a port may change its state although no task reports anything. mu is held.
func (f *portForwarder) due() bool {
	waiting := []tools.PortState{tools.PortOpen, tools.PortAsked, tools.PortTaken, tools.PortLimited}
	return f.count(func(p *servedPort) bool { return slices.Contains(waiting, p.State) }) > 0
}

// count returns how many ports meet a condition. mu is held.
func (f *portForwarder) count(meets func(*servedPort) bool) (n int) {
	for _, p := range f.ports {
		if meets(p) {
			n++
		}
	}
	return n
}

// of returns the ports of the task as they are now. It must not be called inside an update.
func (f *portForwarder) of(task *background.Task) (list []tools.Port) {
	f.review()
	return f.byTask()[task]
}

// byTask returns the ports of each task, in order, as they were when they were last reviewed. It
// must not be called inside an update.
func (f *portForwarder) byTask() map[*background.Task][]tools.Port {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[*background.Task][]tools.Port{}
	for _, number := range slices.Sorted(maps.Keys(f.ports)) {
		p := f.ports[number]
		all[p.task] = append(all[p.task], p.Port)
	}
	return all
}

// portAddress returns the address of the loopback for the ports of a session, which no other
// session has. It is the same after a restart, unless another session came first. The caller has
// locked making.
func (x *sessionSet) portAddress(name string) netip.Addr {
	open := x.all()
	for salt := 0; ; salt++ {
		h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", x.d.StateDir, name, salt))
		at := netip.AddrFrom4([4]byte{127, 64 + h[0]%128, h[1], 1 + h[2]%254}) // apart from 127.0.0.0/16, where other programs are
		if !slices.ContainsFunc(open, func(s *session) bool { return s.ports.at == at }) {
			return at
		}
	}
}
