// Package node runs the workspaces of one machine of a cluster: it takes a
// workspace over when a gateway asks for it and no other node has it, runs a
// toold daemon for it in a container, stores what that daemon's journal commits in the
// workspace's log before clients see it, and gives the workspace up when it is
// not used.
//
// One daemon serves one workspace, so that the end of the daemon's container is the
// end of everything in the workspace. It does not know what a call is.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/quota"
)

// Config is what a node is made of. Name, Dir, Program, Log, Objects, Alive and Logger are required.
type Config struct {
	Name    string // as in its certificate
	Dir     string // an absolute path: what the node keeps of its workspaces. It needs less than 60 bytes, since sockets lie below it
	Program string // the toold program, an absolute path
	Hide    []string
	// Log keeps the logs of workspaces, Objects what is too large for it and the snapshots of files.
	Log     log.Log
	Objects objects.Store
	// Alive reports whether another node lives, as far as this one knows. A wrong answer costs time: the log decides.
	Alive  func(node string) bool
	Logger *zap.Logger
	// Idle is how long a workspace is kept that no client uses. 0: 5 min.
	Idle time.Duration
	// Outage is how long running calls go on while the log cannot be reached. 0: 10 min.
	Outage time.Duration
	// Drain is how long running calls may take once the node is to be drained. 0: 30 s.
	Drain time.Duration
	// Snapshots is how long a workspace must have been at rest before its files are stored while it is in use. 0: 2 s.
	Snapshots time.Duration
	// Verify is how often the log is asked whether a workspace in which nothing happens is still the node's. 0: 1 min.
	Verify time.Duration
	// Quota has what principals may use at once in the whole cluster; nil: nothing is counted.
	Quota *quota.Accounts
	// Sources are the Git repositories from which workspaces may be created: URLs and absolute paths, and what they begin with if
	// they end with a slash. Empty: none.
	Sources []string
	// Strict has workspaces that begin here have strict effects, also where their client does not ask for that.
	Strict bool
	// SharedVolume is a directory that all nodes mount, an absolute path. Workspaces that begin here have their files there, and strict
	// effects. Those that have begun so need it; others do not use it. Empty: there is none.
	SharedVolume string
	// StrictLives is how long what runs in a workspace with strict effects lives without an append that is acknowledged, and StrictWait
	// how long a node that takes it over waits. They are the same on all nodes. 0: the constants of the same names.
	StrictLives, StrictWait time.Duration
	// Keep is how long the node keeps the directory of a workspace that it has given up, in case it gets it again, and for at most a
	// day that of one that another node has taken over. 0: 7 days.
	Keep time.Duration
	// Limits are what each workspace may use of the machine, its daemon and MCP servers included. The zero value: all of it.
	Limits container.Limits
	// Tidy is how often the node looks for directories that it does not need any more. 0: 1 h.
	Tidy time.Duration
}

// Node is a running node. Open makes one; its Server answers gateways.
type Node struct {
	Config
	claimed  *os.File          // the lock of Dir
	groups   *container.Groups // of Limits; nil: there are none
	lost     context.Context   // ends with Kill and Shutdown: nothing waits for the log any more
	lose     context.CancelFunc
	draining atomic.Bool
	working  sync.WaitGroup // the goroutines of workspaces
	tidying  sync.WaitGroup // the one that removes directories
	reading  sync.WaitGroup // those that read from gateways
	sessions atomic.Int64   // streams of Execute that are attached
	counters counters

	mu    sync.Mutex
	units map[log.Workspace]*unit // those that are here, or are being taken over or given up
	ended []string                // what the last drain has ended
}

// Open returns a node with no workspaces, which has Config.Dir for itself until Shutdown or Kill returns: the error is an *InUseError
// if another node has it. It fails where the program cannot run in a container: such a node would take workspaces over and serve none.
func Open(config Config) (*Node, error) {
	for _, d := range []struct {
		into  *time.Duration
		usual time.Duration
	}{{&config.Idle, 5 * time.Minute}, {&config.Outage, 10 * time.Minute}, {&config.Drain, 30 * time.Second}, {&config.Snapshots, 2 * time.Second}, {&config.Verify, time.Minute}, {&config.Keep, 7 * 24 * time.Hour}, {&config.Tidy, time.Hour}, {&config.StrictLives, StrictLives}, {&config.StrictWait, StrictWait}} {
		if *d.into == 0 {
			*d.into = d.usual
		}
	}
	if !filepath.IsAbs(config.Dir) || len(config.Dir) > 60 {
		return nil, fmt.Errorf("the node's directory %q must be an absolute path of at most 60 bytes, since sockets lie below it", config.Dir)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	hide := append([]string{config.Dir}, config.Hide...)
	if config.SharedVolume != "" {
		hide = append(hide, config.SharedVolume)
	}
	for i, dir := range hide {
		real, err := realPath(dir)
		if err != nil {
			return nil, fmt.Errorf("a directory that users must not see: %w", err)
		}
		if i == 0 {
			config.Dir, config.Hide = real, nil
		}
		config.Hide = append(config.Hide, real)
	}
	n := &Node{Config: config, units: map[log.Workspace]*unit{}}
	claimed, err := claim(config.Dir)
	if err != nil {
		return nil, err
	}
	n.claimed = claimed
	if err := n.prepare(); err != nil {
		return nil, errors.Join(err, claimed.Close())
	}
	n.lost, n.lose = context.WithCancel(context.Background())
	n.tidying.Go(n.tidyAtTimes)
	return n, nil
}

// prepare makes the control groups, and runs the program once.
func (n *Node) prepare() error {
	if n.Limits != (container.Limits{}) {
		var err error
		if n.groups, err = container.OpenGroups("/", n.Limits); err != nil {
			return err
		}
	}
	if err := n.tryContainer(); err != nil {
		return fmt.Errorf("no workspace could run here: %w", err)
	}
	return nil
}

// tryContainer runs the program in a container for its version.
func (n *Node) tryContainer() error {
	dir, err := os.MkdirTemp(n.Dir, "trial-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	if err := os.WriteFile(filepath.Join(dir, "program"), nil, 0o700); err != nil { // the place of the program
		return err
	}
	c, err := container.Start(container.Config{Workspace: dir, Home: dir, Tmp: dir, Own: dir, Hide: n.Hide, Program: n.Program, Args: []string{"--version"}, Groups: n.groups, Name: filepath.Base(dir)}, output)
	if err != nil {
		return err
	}
	<-c.Done()
	text, _ := os.ReadFile(output.Name())
	if c.Err() != nil {
		return fmt.Errorf("%s --version in a container: %w: %s", n.Program, c.Err(), text)
	}
	return nil
}

// realPath returns an absolute path without links: only such a one can be hidden.
func realPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// Load returns what the node has to do, for its announcements.
func (n *Node) Load() members.Load {
	n.mu.Lock()
	defer n.mu.Unlock()
	return members.Load{Workspaces: len(n.units), Sessions: int(n.sessions.Load())}
}

// Draining reports whether the node takes no workspaces.
func (n *Node) Draining() bool { return n.draining.Load() }

// SetDraining has the node give up its workspaces, each when its running calls have ended or after Config.Drain, or take
// workspaces again. It returns at once.
func (n *Node) SetDraining(drain bool) {
	if n.draining.Swap(drain) == drain || !drain {
		return
	}
	n.mu.Lock()
	n.ended = nil
	n.mu.Unlock()
	n.drain()
}

// drain has all workspaces given up, and logs the beginning and the end of that. It returns at once.
func (n *Node) drain() {
	begun, before, all := time.Now(), n.Counts(), n.all()
	n.Logger.Info("the drain begins", zap.Int("workspaces", len(all)))
	var giving sync.WaitGroup
	for _, u := range all {
		giving.Go(u.giveUp)
	}
	n.working.Go(func() {
		giving.Wait()
		now := n.Counts()
		n.Logger.Info("the drain has ended", zap.Uint64("given_up", now.GivenUp-before.GivenUp), zap.Uint64("lost", now.Lost-before.Lost),
			zap.Duration("took", time.Since(begun)))
	})
}

// Shutdown drains the node and returns when it has no workspaces. When ctx ends before, the rest is killed, as Kill does.
func (n *Node) Shutdown(ctx context.Context) error {
	n.SetDraining(true)
	done := make(chan struct{})
	go func() { n.working.Wait(); close(done) }()
	select {
	case <-done:
		n.lose()
		n.tidying.Wait()
		_ = n.claimed.Close()
		return nil
	case <-ctx.Done():
		n.Kill()
		return ctx.Err()
	}
}

// Kill ends every workspace at once, without giving it up: another node takes it over as from a node that was lost.
func (n *Node) Kill() {
	n.draining.Store(true)
	n.lose()
	for _, u := range n.all() {
		u.kill()
	}
	n.working.Wait()
	n.tidying.Wait()
	_ = n.claimed.Close()
}

// Wait returns when nothing reads from gateways any more. It is called after the servers have stopped.
func (n *Node) Wait() { n.reading.Wait() }

func (n *Node) all() (all []*unit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range n.units {
		all = append(all, u)
	}
	return all
}

// An OwnerError is returned for a workspace that another node has.
type OwnerError struct{ Owner string }

func (e *OwnerError) Error() string { return fmt.Sprintf("the node %q has the workspace", e.Owner) }

// ErrDraining is returned for a workspace that the node would have to take over while it is drained.
var ErrDraining = errors.New("the node is being drained and takes no workspaces")

// ErrNoVolume is returned for a workspace whose files are on a shared volume that the node does not have.
var ErrNoVolume = errors.New("the workspace's files are on a shared volume, which this node does not have mounted")

// ErrDeleted is returned for a workspace that an administrator has deleted.
var ErrDeleted = errors.New("the workspace was deleted")

// open opens an RPC to the daemon of a workspace, which the node takes over if need be. ctx ends the RPC.
func (n *Node) open(ctx context.Context, w log.Workspace, creation func() (lease.Creation, error), method string) (grpc.ClientStream, *unit, error) {
	for {
		u, err := n.unit(w, creation)
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-u.ready:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if u.failed != nil {
			return nil, nil, u.failed
		}
		if stream, err := u.open(ctx, method); err == nil || status.Code(err) != codes.Unavailable {
			return stream, u, err
		}
		select { // it is being given up or was lost, and may be taken over again then
		case <-u.gone:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(endTime):
			return nil, nil, errors.New("the workspace's daemon does not answer")
		}
	}
}

// endTime is how long a daemon that does not answer may take to end, beyond what it is given to end its calls.
const endTime = time.Minute

// unit returns the unit of a workspace, and begins to take it over if it is not here. creation returns what it is
// created with, and is called only if it is new.
func (n *Node) unit(w log.Workspace, creation func() (lease.Creation, error)) (*unit, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if u := n.units[w]; u != nil {
		return u, nil
	}
	if n.draining.Load() {
		return nil, ErrDraining
	}
	u := newUnit(n, w, creation)
	n.units[w] = u
	n.working.Go(u.live)
	return u, nil
}

// forget is called by a unit that has ended.
func (n *Node) forget(u *unit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.units, u.w)
}
