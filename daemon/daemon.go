// Package daemon is the gRPC server around the scheduler: it accepts tool uses, keeps sessions and their records,
// streams events, and brings everything back after a restart. It does not know any tool.
//
// Where to read: execute.go for a stream's life, accept.go and end.go for a call's, session.go for what outlives both,
// house.go for how it all ends.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
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
	// IdleExit ends the daemon after so long without stream, running call or background task. 0: never.
	IdleExit time.Duration
	// Metrics takes the gRPC server's metrics; nil: they are kept nowhere.
	Metrics prometheus.Registerer
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
	health      *health.Server

	grace time.Duration // how long the calls of a client that went away go on under ON_DISCONNECT_CANCEL

	user struct { // the daemon's user
		home     string   // empty: not known
		settings string   // the settings file
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
	var runner *sandbox.Runner
	sources, files, now, err := openSettings(config, func(file string) { runner.Spare(file) })
	if err != nil {
		return nil, err
	}
	limits := now.Limits
	var warnings []string
	if err := os.MkdirAll(config.StateDir, 0o700); err != nil {
		return nil, err
	}
	// The lock also says that all processes which a dead daemon was starting have come so far that they can be found.
	lock, err := access.LockState(config.StateDir)
	if err != nil {
		return nil, err
	}
	store, damage, err := openJournal(filepath.Join(config.StateDir, "journal"), journal.Config{Reserve: journalReserve, Unsynced: now.Unsynced})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	for _, warning := range damage {
		config.Log.Error("the journal was damaged", zap.String("what", warning))
	}
	warnings = append(warnings, damage...)
	processes := filepath.Join(config.StateDir, "processes")
	if killed, stuck := sandbox.Sweep(processes); len(killed)+len(stuck) > 0 {
		config.Log.Warn("ended what a dead daemon had left running", zap.Any("killed", killed), zap.Any("stuck", stuck))
	}
	runner, err = sandbox.New(processes, outlet(func(id string, denied sandbox.Denial) { runner.Denied(id, denied) }))
	if err != nil {
		return nil, errors.Join(err, store.Close(), lock.Close())
	}
	locks, err := workspace.OpenLocks(filepath.Join(config.StateDir, "writing"))
	if err != nil {
		return nil, errors.Join(err, runner.Close(), store.Close(), lock.Close())
	}
	checkpoints, err := checkpoint.Open(filepath.Join(config.StateDir, "checkpoints"))
	if err != nil {
		return nil, errors.Join(err, runner.Close(), store.Close(), lock.Close())
	}
	outputs, err := spool.OpenStore(filepath.Join(config.StateDir, "sessions"), spool.Bounds{Session: limits.SessionOutput, All: limits.AllOutput})
	if err != nil {
		return nil, errors.Join(err, runner.Close(), store.Close(), lock.Close())
	}
	d := &Daemon{
		Config: config, limits: limits, settings: files, secrets: &secrets{files: files, environ: os.Environ()},
		warnings: warnings, started: time.Now(), grace: disconnectGrace,
		journal: store, checkpoints: checkpoints, outputs: outputs, locks: locks, runner: runner,
		shares: newShares(limits.MaxRunningCalls), reclaimer: reclaimer{wake: make(chan struct{}, 1)},
		health: health.NewServer(),
	}
	d.connect(sources, lock)
	if err := d.sessions.restore(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.server = d.newServer()
	return d, nil
}

// openSettings opens the settings files and returns them as they are now. writing is called with each file that is about to be
// written. Broken files are an error: to begin without what they forbid would be worse than not to begin.
func openSettings(config Config, writing func(file string)) (settings.Sources, *settings.Store, *settings.Settings, error) {
	sources := settings.DefaultSources(config.UserSettings)
	sources.ManagedDir, sources.Writing = config.ManagedDir, writing
	files := settings.Open(sources)
	now := files.Load(settings.Scope{})
	return sources, files, now, errors.Join(now.Broken...)
}

// connect makes the parts of the daemon.
func (d *Daemon) connect(sources settings.Sources, lock *access.Lock) {
	d.user.home, d.user.settings, d.user.guarded = sources.Home, sources.User, []string{sources.User, sources.TrustFile, sources.ManagedDir}
	d.admission.refusals = quietly(d.Log)
	d.sessions = sessionSet{d: d, open: map[string]*session{}, notRestored: map[string]notRestored{}}
	d.life = lifecycle{
		d: d, wake: make(chan struct{}, 1), ending: make(chan struct{}), atOnce: make(chan struct{}), busy: time.Now(),
	}
	d.endpoints = endpoints{d: d, lock: lock}
	d.ledger = newLedger(d.limits, d.reclaimer.released)
}

// Serve answers on listeners of Listen and ListenTCP until a shutdown is complete. It may be called once.
func (d *Daemon) Serve(listeners ...net.Listener) error {
	d.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	d.endpoints.listenOn(listeners)
	served := make(chan error, len(listeners)) // so that none has to wait until it is asked
	for _, listener := range listeners {
		go func() { served <- d.answer(listener) }()
	}
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

// answer serves one listener. One that the end of the daemon has overtaken is closed.
func (d *Daemon) answer(listener net.Listener) error {
	if err := d.server.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Drain begins the shutdown: nothing new is taken, running calls get the drain time. It returns at once.
func (d *Daemon) Drain() { d.life.once.ending.Do(func() { close(d.life.ending) }) }

// Stop ends running calls now. It returns at once.
func (d *Daemon) Stop() {
	d.life.once.atOnce.Do(func() { close(d.life.atOnce) })
	d.Drain()
}

// close lets go of everything, in the order opposite to New.
func (d *Daemon) close() error {
	d.shares.close()
	return errors.Join(d.runner.Close(), d.journal.Close(), d.endpoints.lock.Close())
}

// open returns the open sessions.
func (x *sessionSet) all() (sessions []*session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.open {
		sessions = append(sessions, s)
	}
	return sessions
}

// listening returns where the daemon listens; nowhere before Serve.
func (e *endpoints) listening() []*tooldv1.Listener {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listeners
}

// session finds an open session.
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
