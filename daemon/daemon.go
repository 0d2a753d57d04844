// Package daemon is the gRPC server around the scheduler: it accepts tool uses, keeps sessions and
// their records, streams events, and brings everything back after a restart. It does not know any
// tool.
//
// Where to read: execute.go for a stream's life, accept.go and end.go for a call's, session.go for
// what outlives both, lifecycle.go for how it all ends.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/daemon/telemetry"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/mcp"
)

// A Config is what a daemon is made of. Tools, StateDir and Root are required.
type Config struct {
	Tools        []tools.Tool // in the order in which models see them
	StateDir     string       // journal and outputs; made if need be
	Root         string       // root of anonymous sessions; absolute
	Version      string
	UserSettings string      // the user's settings file; empty: none
	ManagedDir   string      // holds the administrator's settings; empty: there are none
	Log          *zap.Logger // nil: nothing is logged
	// IdleExit ends the daemon after so long without stream, running call or background task. 0:
	// never.
	IdleExit time.Duration
	// Mirror stores everything that the journal commits in another place, before clients see it. Once it
	// returns an error the daemon ends. A journal with a mirror is not salvaged when it is damaged: it is to
	// be built again from the mirror. Nil: there is none.
	Mirror journal.Mirror
	// Node has the daemon serve one workspace for a node of a cluster: in a container, whose user is always 0, and with a UserSettings file
	// that is the node's. Users cannot change that file, so nothing is written to it, and no advice names it.
	Node bool
	// Metrics are the daemon's metrics, of which no other daemon knows. Nil: nothing is counted.
	Metrics *telemetry.Metrics
	// HTTP is where the dashboard listens from the start, HOST:PORT on loopback; empty: at any port, when a client asks for it.
	HTTP string
	// Tracer makes spans of calls; nil: there are none.
	Tracer telemetry.Tracer
	// Successor returns the version of the program that is installed where this one was, once that program has confirmed that it can
	// go on with a state of HandoverFormat. Nil: no other program can go on in this process.
	Successor func(context.Context) (version string, err error)
	// NotUpgraded is why the next program could not be begun, so that the one before goes on. Nil: there was nothing of that.
	NotUpgraded error
	// Inherited is what the program before this one has passed on; nil: there was none.
	Inherited *Handover
}

// A Daemon serves tool calls. New makes one, Serve runs it.
type Daemon struct {
	Config
	limits   settings.Limits
	settings *settings.Store
	secrets  *secrets // what inputs are recorded without
	warnings []string
	started  time.Time

	journal     *journal.Store
	checkpoints *checkpoint.Store
	ledger      *quota.Ledger // of what clients have the daemon hold in memory
	reclaimer   reclaimer
	shares      *shares
	runner      *sandbox.Runner
	git         repo.Finder
	fleet       mcp.Fleet // MCP servers of all sessions
	rates       rateLimiters
	locks       *workspace.Locks
	outputs     *spool.Store
	server      *grpc.Server

	status struct { // for those who ask how the daemon is
		health *health.Server
		recent telemetry.Recent
	}
	grace time.Duration // how long the calls of a client that went away go on under ON_DISCONNECT_CANCEL

	user struct { // the daemon's user
		home     string   // empty: not known
		keys     []string // where programs keep what opens doors
		settings string   // the settings file
		advised  string   // where advice has users change settings: that file, or the session's settings
		guarded  []string // the files that say what may be done
	}
	admission struct { // of requests
		arrivals atomic.Uint64 // how many were admitted
		refusals *zap.Logger   // of those that were not; takes a bounded number of lines
	}

	sessions  sessionSet
	life      lifecycle
	endpoints endpoints
}

// disconnectGrace is part of the contract with clients.
const disconnectGrace = 5 * time.Second

// New opens the state, ends what a dead daemon left running, and brings its sessions back.
func New(config Config) (*Daemon, error) {
	config.Log = cmp.Or(config.Log, zap.NewNop())
	d := &Daemon{
		Config: config, started: time.Now(), grace: disconnectGrace, reclaimer: newReclaimer(),
		sessions: sessionSet{open: map[string]*session{}, resting: map[string]*resting{}, notRestored: map[string]notRestored{}},
		life:     lifecycle{wake: make(chan struct{}, 1), ending: make(chan struct{}), stopped: make(chan struct{}), atOnce: make(chan struct{}), restAfter: restAfter, busy: time.Now()},
	}
	d.status.health = health.NewServer()
	d.rates.kept = map[rateKey]*rate.Limiter{}
	d.sessions.d, d.life.d, d.endpoints.d, d.endpoints.dashboard.d, d.sessions.watchers.d, d.life.upgrade.d = d, d, d, d, d, d
	d.admission.refusals = quietly(d.Log)
	d.openMetrics()
	err := d.openSettings()
	if err == nil {
		err = d.openState()
	}
	if err == nil {
		err = d.sessions.restore()
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.server = d.newServer()
	return d, nil
}

// openSettings opens the settings files, and takes from them what holds for as long as the daemon
// lives. Broken files are an error: to begin without what they forbid would be worse than not to
// begin.
func (d *Daemon) openSettings() error {
	sources := settings.DefaultSources(d.UserSettings)
	sources.ManagedDir, sources.Writing = d.ManagedDir, func(file string) { d.runner.Spare(file) }
	d.settings = settings.Open(sources)
	d.life.closers = append(d.life.closers, func() error { d.settings.Close(); return nil })
	now := d.settings.Load(settings.Scope{})
	d.limits = now.Limits
	d.user.home, d.user.settings, d.user.guarded = sources.Home, sources.User, []string{sources.User, sources.TrustFile, sources.ManagedDir}
	if d.user.advised = sources.User; d.Node {
		d.user.advised = pipeline.SessionSettings
	}
	d.user.keys = keysBelow(sources.Home)
	d.secrets = &secrets{files: d.settings, environ: os.Environ()}
	d.shares, d.ledger = newShares(d.limits), newLedger(d.limits, d.reclaimer.released)
	d.reclaimer.searches = index.NewSet(d.limits.SearchBytes)
	d.life.closers = append(d.life.closers, d.reclaimer.searches.Close)
	limitMemory(d.limits)
	return errors.Join(now.Broken...)
}

// openState opens what the daemon keeps in its state directory. What it has opened when it fails,
// close closes.
func (d *Daemon) openState() (err error) {
	if err := os.MkdirAll(d.StateDir, 0o700); err != nil {
		return err
	}
	// The lock also means that all processes which a dead daemon was starting have come so far that
	// they can be found.
	if d.endpoints.lock, err = d.lockState(); err != nil {
		return err
	}
	d.life.closers = append(d.life.closers, d.endpoints.lock.Close)
	unsynced := d.settings.Load(settings.Scope{}).Unsynced
	d.journal, d.warnings, err = openJournal(d.inState("journal"), journal.Config{Reserve: journalReserve, Unsynced: unsynced, Mirror: d.mirror(), Committed: d.Metrics.Committed})
	if err != nil {
		return err
	}
	d.life.closers = append(d.life.closers, d.journal.Close)
	for _, warning := range d.warnings {
		d.Log.Error("the journal was damaged", zap.String("what", warning))
	}
	if killed, stuck := sandbox.Sweep(d.inState("processes")); len(killed)+len(stuck) > 0 {
		d.Log.Warn("ended what a dead daemon had left running", zap.Any("killed", killed), zap.Any("stuck", stuck))
	}
	if d.runner, err = sandbox.New(d.inState("processes"), outlet); err != nil {
		return err
	}
	d.life.closers, d.reclaimer.shells = append(d.life.closers, d.runner.Close), d.runner
	if err := removeTree(d.inState(restingDir)); err != nil { // no process can read them any more
		return err
	}
	d.sessions.memories = memstore.NewSet(d.inState("memory"))
	d.openFleet()
	if d.locks, err = workspace.OpenLocks(d.inState("writing")); err != nil {
		return err
	}
	if d.checkpoints, err = checkpoint.Open(d.inState("checkpoints")); err != nil {
		return err
	}
	bounds := spool.Bounds{Session: d.limits.SessionOutput, Principal: d.limits.PrincipalOutput, All: d.limits.AllOutput}
	d.outputs, err = spool.OpenStore(d.inState("sessions"), bounds, func(session string) string { return string(d.sessions.keptMeta(session).owner()) })
	return err
}

// lockState locks the state directory, or goes on with the lock that was passed.
func (d *Daemon) lockState() (*access.Lock, error) {
	if d.Inherited != nil {
		return access.TakeState(d.StateDir, d.Inherited.Passed.State)
	}
	return access.LockState(d.StateDir)
}

func (d *Daemon) inState(name string) string { return filepath.Join(d.StateDir, name) }

// Serve answers on listeners of Listen and ListenTCP until a shutdown is complete. It may be called
// once.
func (d *Daemon) Serve(listeners ...net.Listener) error {
	d.status.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	d.endpoints.listenOn(listeners)
	if d.HTTP != "" {
		if _, _, err := d.endpoints.dashboard.open(); err != nil {
			d.Log.Error("the dashboard cannot be opened", zap.Error(err))
		}
	}
	served := make(chan error, len(listeners)) // so that none has to wait until it is asked
	for _, listener := range listeners {
		go func() {
			err := d.server.Serve(listener)
			switch {
			case d.endpoints.hasLeft(): // which has closed it
				<-d.life.ending
				err = nil
			case errors.Is(err, grpc.ErrServerStopped): // the end of the daemon has overtaken it
				err = nil
			}
			served <- err
		}()
	}
	d.sessions.goOn()
	house, stop := context.WithCancel(context.Background())
	var housekeeping sync.WaitGroup
	housekeeping.Go(func() { d.maintain(house) })
	housekeeping.Go(func() { d.maintainJournal(house) })
	housekeeping.Go(func() { d.maintainCheckpoints(house) })
	housekeeping.Go(func() { d.endpoints.maintain(house) })
	housekeeping.Go(func() { d.reclaimer.run(house) })
	for _, listener := range listeners {
		if tcp, is := listener.(*access.TCPListener); is {
			housekeeping.Go(func() { tcp.Watch(house) })
		}
	}
	var failed []error
	select {
	case err := <-served:
		failed = append(failed, err)
		d.Stop()
	case <-d.life.ending:
	}
	d.shutdown()
	stop()
	housekeeping.Wait()
	d.server.Stop()
	d.life.streaming.Wait()
	for len(failed) < len(listeners) {
		failed = append(failed, <-served)
	}
	return errors.Join(append(failed, d.close())...)
}

// Ending returns a channel that is closed when the shutdown begins, for whatever reason. Another program that goes on is none.
func (d *Daemon) Ending() <-chan struct{} { return d.life.stopped }

// DrainTime returns how long running calls may take to end once the shutdown has begun.
func (d *Daemon) DrainTime() time.Duration { return d.limits.Drain }

// Drain begins the shutdown: nothing new is taken, running calls get the drain time. It returns at
// once.
func (d *Daemon) Drain() {
	d.life.once.stopped.Do(func() { close(d.life.stopped) })
	d.life.once.ending.Do(func() { close(d.life.ending) })
}

// Stop ends running calls now. It returns at once.
func (d *Daemon) Stop() {
	d.life.once.atOnce.Do(func() { close(d.life.atOnce) })
	d.Drain()
}

// close closes everything that is open, in the order opposite to that in which it was opened.
func (d *Daemon) close() error {
	d.shares.close()
	var wrong []error
	for _, closer := range slices.Backward(d.life.closers) {
		wrong = append(wrong, closer())
	}
	return errors.Join(wrong...)
}

// all returns the open sessions.
func (x *sessionSet) all() []*session {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.AppendSeq(make([]*session, 0, len(x.open)), maps.Values(x.open))
}

// listening returns where the daemon listens; nowhere before Serve.
func (e *endpoints) listening() []*tooldv1.Listener {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listeners
}

// find returns the open session of that name.
func (x *sessionSet) find(name string) (*session, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, ok := x.open[name]
	return s, ok
}

// newID makes a name that sorts by time.
func newID(prefix string) string {
	id, err := uuid.NewV7()
	if err != nil {
		panic("BUG: no random numbers: " + err.Error())
	}
	return prefix + id.String()
}
