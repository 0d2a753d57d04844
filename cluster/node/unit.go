package node

import (
	"context"
	"errors"
	"iter"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/relay"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A unit is one workspace on this node, from its takeover until it is given up, lost or killed. One goroutine, live,
// does all of that; the others only ask for it.
type unit struct {
	node    *Node
	w       log.Workspace
	at      unitDirs
	objects objects.Store // the workspace's own part of the node's
	store   lease.Store
	log     *zap.Logger
	ready   chan struct{} // closed when conn is set, or when failed is and the workspace may be taken over again
	conn    *grpc.ClientConn
	failed  error           // why it could not be taken over
	gone    chan struct{}   // closed when the unit has ended
	lost    context.Context // ends when the unit is to end at once
	kill    context.CancelFunc

	asks      func() (lease.Creation, error) // what its client wants it to be created with, if it is new
	creation  lease.Creation                 // what it was created with; set when it is adopted
	calls     heldCalls                      // from the principal's quota
	lease     *lease.Lease
	mirror    *mirrorServer
	container *container.Container
	saved     string   // the last snapshot, as far as it is known
	savedAt   uint64   // how many requests the mirror had stored by then
	verified  struct { // when the log has last said whose the workspace is; of the goroutine of rest
		at       time.Time
		appended uint64 // how many requests the mirror had stored by then
	}

	refuse func()        // lets no other RPC begin
	ending chan struct{} // closed by refuse
	askEnd func()        // has the unit given up, and returns at once
	asked  chan struct{} // closed by askEnd
}

func newUnit(n *Node, w log.Workspace, asks func() (lease.Creation, error)) *unit {
	own := objects.Below(n.Objects, w.ID()+"/")
	u := &unit{
		node: n, w: w, asks: asks, at: unitDirs{dir: filepath.Join(n.Dir, w.ID())}, objects: own, store: lease.Store{Log: n.Log, Blobs: objects.Blobs{Store: own, Prefix: objects.Payloads}}, log: n.Logger.With(zap.String("principal", w.Principal), zap.String("workspace", w.Name)),
		ready: make(chan struct{}), gone: make(chan struct{}), ending: make(chan struct{}), asked: make(chan struct{}),
	}
	u.lost, u.kill = context.WithCancel(n.lost)
	u.refuse, u.askEnd = sync.OnceFunc(func() { close(u.ending) }), sync.OnceFunc(func() { close(u.asked) })
	return u
}

// in returns a path in the unit's directory.
func (u *unit) in(name string) string { return filepath.Join(u.at.dir, name) }

// giveUp has the unit given up, and returns when that is done.
func (u *unit) giveUp() {
	u.askEnd()
	<-u.gone
}

// open opens an RPC to the daemon. It returns an error with the code Unavailable if the daemon has ended or is to end.
func (u *unit) open(ctx context.Context, method string) (grpc.ClientStream, error) {
	select {
	case <-u.ending:
		return nil, status.Error(codes.Unavailable, "the daemon is to end")
	default:
		return u.conn.NewStream(ctx, relay.Descriptor, method)
	}
}

// live is the whole life of a unit.
func (u *unit) live() {
	defer func() {
		u.kill()
		u.node.forget(u)
		close(u.gone)
		if u.failed != nil {
			close(u.ready)
		}
	}()
	defer u.releaseCalls()
	if err := u.begin(); err != nil {
		u.log.Warn("the workspace was not taken over", zap.Error(err))
		u.node.counters.notTaken.Add(1)
		u.failed = err
		u.discard(err)
		return
	}
	u.log.Info("the workspace was taken over", zap.Uint64("epoch", u.lease.Epoch()))
	u.node.counters.taken.Add(1)
	close(u.ready)
	u.serve()
	u.refuse()
	if err := u.end(); err != nil {
		u.log.Warn("the workspace was lost", zap.Error(err))
		u.node.counters.lost.Add(1)
		u.discard(err)
		return
	}
	u.log.Info("the workspace was given up")
	u.node.counters.givenUp.Add(1)
}

// begin takes the workspace over and starts its daemon.
func (u *unit) begin() (err error) {
	if u.lease, err = u.adopt(u.lost); err != nil {
		return err
	}
	if u.mirror, err = serveMirror(u.lost, u.in("own/run/mirror"), u.lease, &u.node.counters); err != nil {
		return err
	}
	if err = u.start(); err != nil {
		u.mirror.stop()
		return err
	}
	// Not before: the daemon has recorded now what is lost.
	if err = u.mark(marker{Epoch: u.lease.Epoch()}); err != nil {
		u.container.Kill()
		u.mirror.stop()
	}
	return err
}

// start starts the daemon, and returns when it serves.
func (u *unit) start() error {
	output, err := os.OpenFile(u.in("daemon.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close() // the container has its own
	lives, since, err := u.lives()
	if err != nil {
		return err
	}
	run := container.Own + "/run/"
	u.container, err = container.Start(container.Config{
		Lives: lives, Since: since, Groups: u.node.groups, Name: u.w.ID(),
		Workspace: filepath.Join(u.at.place, "files"), Home: filepath.Join(u.at.place, "home"), Below: u.below(), Tmp: u.in("tmp"), Own: u.in("own"), Fixed: []string{settingsName}, Hide: u.node.Hide, Program: u.node.Program,
		Args: []string{
			"serve", "--socket", run + "toold.sock", "--mirror", run + "mirror", "--state-dir", container.Own + "/state", "--root", container.Workspace,
			"--settings", container.Own + "/" + settingsName, "--idle-exit", u.node.Idle.String(), "--log-format", "json",
		},
		Env: []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"},
	}, output)
	if err != nil {
		return err
	}
	if u.creation.StrictEffects {
		u.mirror.setContainer(u.container)
		u.node.working.Go(func() { u.proveOwnership(u.container.Done()) })
	}
	socket := u.in("own/run/toold.sock")
	u.conn, err = grpc.NewClient("passthrough:///toold", grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket is in a directory of mode 0700
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}),
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(relay.NewCodec()), grpc.MaxCallRecvMsgSize(mirror.MaxMessage), grpc.MaxCallSendMsgSize(mirror.MaxMessage)))
	if err == nil {
		err = u.awaitDaemon()
	}
	if err != nil {
		u.container.Kill()
	}
	return err
}

// startTime is how long a daemon may take until it serves; it waits for the log meanwhile. Then the next request tries again.
const startTime = time.Minute

// awaitDaemon waits until the daemon serves.
func (u *unit) awaitDaemon() error {
	ctx, cancel := context.WithTimeout(u.lost, startTime)
	defer cancel()
	stop := context.AfterFunc(ctx, u.container.Kill)
	defer stop()
	go func() {
		select {
		case <-u.container.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		_, err := healthpb.NewHealthClient(u.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			text, _ := os.ReadFile(u.in("daemon.log"))
			return errors.Join(errors.New("the workspace's daemon has ended while it was started, or takes too long: "+string(text[max(0, len(text)-1000):])), u.mirror.fault())
		}
	}
}

// serve returns when the daemon has ended: by itself, since no client has used it, since the unit is to be given up, or
// since it was lost.
func (u *unit) serve() {
	ticks := time.NewTicker(u.node.Snapshots)
	defer ticks.Stop()
	asked, last, paused := u.asked, time.Now(), false
	var saving chan struct{} // nil: no snapshot is under way
	defer func() {
		if saving != nil {
			<-saving
		}
	}()
	for {
		select {
		case <-u.container.Done():
			if u.container.Err() != nil {
				u.kill() // what it has left is lost, and nothing waits for the log
			}
			return
		case <-u.lost.Done():
			u.container.Kill()
			return
		case <-u.mirror.fenced:
			u.container.Kill()
			u.kill() // a snapshot that is under way would be for nothing
			return
		case <-asked:
			asked = nil
			u.refuse()
			u.nameWhatEnds()
			u.container.Terminate()
			limit := time.AfterFunc(u.node.Drain+endTime, u.container.Kill) // the daemon itself stops calls after Drain
			defer limit.Stop()
		case at := <-ticks.C:
			paused = paused || at.Sub(last) > pausedTime
			last = at
			if u.mirror.overdue(u.node.Outage) {
				u.log.Error("the workspace's daemon is killed, since the log could not be reached for too long")
				u.kill() // also what waits for the log
				u.container.Kill()
				return
			}
			if saving == nil {
				saving = make(chan struct{})
				go u.rest(saving, paused)
				paused = false
			}
		case <-saving:
			saving = nil
		}
	}
}

// rest does what is due while nothing runs. It closes done.
func (u *unit) rest(done chan<- struct{}, paused bool) {
	defer close(done)
	if appended := u.mirror.appended(); appended != u.verified.appended { // each append is asked as well
		u.verified.at, u.verified.appended = time.Now(), appended
	}
	if paused || time.Since(u.verified.at) > u.node.Verify {
		u.verify()
		u.verified.at = time.Now()
	}
	u.saveAtRest()
	// At rest, giving it up costs its clients a second. It gets a base then.
	if segments, bytes, _ := u.lease.Held(); u.savedAt == u.mirror.appended() && (segments > manySegments || bytes > manyBytes) {
		u.askEnd()
	}
}

// A workspace whose log has become this long is given up when it is at rest: it takes the next owner a second to read so
// many segments one by one, and the lease keeps so many bytes in memory.
const (
	manySegments = 4096
	manyBytes    = 16 << 20
)

// pausedTime is after how long without a tick this process must have been stopped, so that others may have taken the
// workspace over. Others wait that long for a node.
const pausedTime = 10 * time.Second

// verify asks the log whether the workspace is still this node's, which would else be noticed at the next append.
func (u *unit) verify() {
	ctx, cancel := context.WithTimeout(u.lost, pausedTime)
	defer cancel()
	err := u.lease.Verify(ctx)
	if fenced, is := errors.AsType[*lease.Fenced](err); is {
		u.mirror.fail(fenced)
	}
}

// end stores what the daemon has left, and gives the workspace up. It is lost instead if the daemon was killed.
func (u *unit) end() error {
	_ = u.conn.Close()
	u.mirror.stop()
	if err := errors.Join(u.mirror.fault(), u.container.Err()); err != nil {
		return err
	}
	if err := u.saveAtEnd(); err != nil {
		return err
	}
	if err := u.shorten(u.lost); err != nil {
		return err
	}
	if err := u.mark(marker{Epoch: u.lease.Epoch()}); err != nil { // Config.Keep counts from now
		return err
	}
	u.releaseCalls()
	return u.lease.Release(u.lost)
}

// Between two tries to store the files of a workspace that is to go elsewhere the node waits so long.
const saveWait = time.Second

// saveAtEnd stores the files. A node that is drained tries until it succeeds or is killed, so that nothing stays behind; another
// one has its workspace on its own disk when it is asked for it again.
func (u *unit) saveAtEnd() error {
	for {
		err := u.save(u.lost)
		if err == nil || !u.node.Draining() {
			return err
		}
		u.log.Warn("the workspace's files could not be stored", zap.Error(err))
		select {
		case <-time.After(saveWait):
		case <-u.lost.Done():
			return err
		}
	}
}

// atRest reports whether no call and no background task runs.
func (u *unit) atRest(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for s, err := range u.sessions(ctx) {
		if err != nil || s.GetOpenCalls() > 0 || len(s.GetBackgroundTasks()) > 0 {
			return false
		}
	}
	return true
}

// sessions returns the daemon's sessions. It ends with the first error.
func (u *unit) sessions(ctx context.Context) iter.Seq2[*tooldv1.Session, error] {
	return func(yield func(*tooldv1.Session, error) bool) {
		request := &tooldv1.ListSessionsRequest{}
		for {
			list, err := tooldv1.NewSessionServiceClient(u.conn).ListSessions(ctx, request)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range list.GetSessions() {
				if !yield(s, nil) {
					return
				}
			}
			if request.PageToken = list.GetNextPageToken(); request.PageToken == "" {
				return
			}
		}
	}
}
