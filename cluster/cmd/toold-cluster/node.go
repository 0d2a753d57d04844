//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/quota"
)

// announceEvery is how often a node's drain flag is looked at, beside the changes that members report.
const announceEvery = 2 * time.Second

// pingTime is how long a node that is asked whether it lives has to answer.
const pingTime = 2 * time.Second

type nodeFlags struct {
	common
	name, listen, advertise, data, toold string
	idle, outage, drain, keep            time.Duration
	monitors, sources                    []string
	allowRoot, strict                    bool
	volume                               string
	quota                                quota.Amounts
	memory                               int64 // MiB
	processors                           float64
}

// With less than this, in MiB and processors, a daemon would be of no use.
const (
	leastMemory     = 128
	leastProcessors = 0.1
)

func nodeCommand() *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use: "node", Short: "Run workspaces on this machine", Args: cobra.NoArgs,
		Long: "Runs workspaces on this machine, each with a toold daemon of its own.\n\n" +
			"SIGTERM gives them up to other nodes first; a second one ends them at once.",
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	f.add(cmd)
	f.addObjects(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "the node's name, as in its certificate")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7400", "address for gateways")
	flags.StringVar(&f.advertise, "advertise", "", "address by which gateways reach this node (default: that of --listen)")
	flags.StringVar(&f.data, "data", "/var/lib/toold-cluster", "directory for workspaces, at most 60 bytes long")
	flags.StringVar(&f.toold, "toold", "", "the toold program (default: the one on PATH)")
	flags.DurationVar(&f.idle, "idle", 5*time.Minute, "how long a workspace is kept that no client uses")
	flags.DurationVar(&f.outage, "outage", 10*time.Minute, "how long running calls go on while NATS cannot be reached")
	flags.DurationVar(&f.drain, "drain", 30*time.Second, "how long running calls may take when the node is drained")
	flags.DurationVar(&f.keep, "keep", 7*24*time.Hour, "how long the files of a workspace that was given up are kept here, for its next use")
	flags.StringSliceVar(&f.monitors, "nats-monitor", nil, "monitoring addresses of NATS servers, such as http://127.0.0.1:8222: the node does not begin unless they sync each write")
	flags.StringSliceVar(&f.sources, "source", nil, "Git repositories from which users may create workspaces: a URL or an absolute path, or what they begin with, with a slash at its end")
	flags.BoolVar(&f.strict, "strict-effects", false, "give strict effects to all workspaces that begin here")
	flags.StringVar(&f.volume, "shared-volume", "", "directory that all nodes mount: workspaces that begin here have their files there, and strict effects")
	flags.IntVar(&f.quota.Sessions, "quota-sessions", 0, "how many sessions of a principal may be attached in the whole cluster; the same on all nodes (default: no limit)")
	flags.IntVar(&f.quota.Calls, "quota-calls", 0, "how many calls of a principal may run in the whole cluster; the same on all nodes (default: no limit)")
	flags.Int64Var(&f.memory, "workspace-memory", 0, "how much memory each workspace may use, in MiB, with its daemon and servers (default: no limit)")
	flags.Float64Var(&f.processors, "workspace-processors", 0, "how many processors each workspace may use, for instance 1.5 (default: no limit)")
	flags.BoolVar(&f.allowRoot, "allow-root", false, "run as root, whose files users' commands can then read: only for trials")
	flags.StringVar(&f.metrics, "metrics", "", metricsFlag)
	_ = cmd.MarkFlagRequired("name")
	return cmd
}

// check returns why no node begins with the flags.
func (f *nodeFlags) check() error {
	if os.Geteuid() == 0 && !f.allowRoot {
		return errors.New("a node does not run as root, since its users' commands could read what only root may: start it as a user of its own")
	}
	if f.memory != 0 && f.memory < leastMemory || f.processors != 0 && f.processors < leastProcessors {
		return fmt.Errorf("a workspace needs at least %d MiB of memory and %v processors", leastMemory, leastProcessors)
	}
	if f.quota.Sessions < 0 || f.quota.Calls < 0 {
		return errors.New("--quota-sessions and --quota-calls are not negative: 0 is no limit")
	}
	return errors.Join(f.checkAddress(), checkMonitors(f.monitors))
}

// checkAddress returns an error for an address that gateways could not reach.
func (f *nodeFlags) checkAddress() error {
	announced, flag := f.advertise, "--advertise"
	if announced == "" {
		announced, flag = f.listen, "--listen"
	}
	host, port, err := net.SplitHostPort(announced)
	if err != nil {
		return fmt.Errorf("%s %q is not HOST:PORT: %w", flag, announced, err)
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%s %s names no address that gateways and other nodes can reach: name one with --advertise HOST:PORT", flag, announced)
	}
	if flag == "--advertise" && (port == "" || port == "0") {
		return fmt.Errorf("--advertise %s has no port: name the one by which gateways reach this node", announced)
	}
	return nil
}

func (f *nodeFlags) run() error {
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	ctx, again := untilSignal()
	id, err := identity.Load(f.certs, identity.Node, f.name)
	if err != nil {
		return err
	}
	program, err := f.program()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, js, err := f.reach(ctx, log, id)
	if err != nil {
		return err
	}
	defer conn.Close()
	config := f.members(conn, js, id)
	config.Suspected = f.logOthers(log)
	var view *members.Members
	if err := f.patiently(ctx, log, "see the other nodes", func(try context.Context) (err error) { view, err = members.Open(try, config); return err }); err != nil {
		return err
	}
	defer view.Close()
	if err := checkVersion(conn.ConnectedServerVersion()); err != nil {
		return err
	}
	doubted := func(err error) { log.Warn("messages are missing in a NATS server", zap.Error(err)) }
	settings := node.Config{
		Name: f.name, Dir: f.data, Program: program, Hide: []string{f.certs}, Log: f.log(js, doubted), Alive: func(name string) bool { return !view.Suspect(name) },
		Logger: log, Idle: f.idle, Outage: f.outage, Drain: f.drain, Keep: f.keep, Sources: f.sources, Strict: f.strict, SharedVolume: f.volume,
		Limits: container.Limits{Memory: f.memory << 20, Processors: f.processors},
	}
	if err := f.patiently(ctx, log, "open the object store", func(try context.Context) (err error) { settings.Objects, err = f.objectStore(try, js); return err }); err != nil {
		return err
	}
	if f.quota != (quota.Amounts{}) {
		if settings.Quota, err = f.openQuota(ctx, log, js, settings.Alive); err != nil {
			return err
		}
		defer settings.Quota.Close()
	}
	n, err := node.Open(settings)
	if err != nil {
		return err
	}
	defer n.Kill() // of which nothing is left after a Shutdown
	return f.serve(ctx, log, n, id, listener, view, config, again)
}

// logOthers returns logSuspected but for this node, which does not answer before it serves.
func (f *nodeFlags) logOthers(log *zap.Logger) func(members.Node, error) {
	logged := logSuspected(log)
	return func(n members.Node, why error) {
		if n.Name != f.name {
			logged(n, why)
		}
	}
}

// openQuota returns the accounts of principals.
func (f *nodeFlags) openQuota(ctx context.Context, log *zap.Logger, js jetstream.JetStream, alive func(node string) bool) (accounts *quota.Accounts, err error) {
	err = f.patiently(ctx, log, "open the quotas", func(try context.Context) (err error) {
		accounts, err = quota.Open(try, js, f.replicas, f.name, f.quota)
		return err
	})
	if err == nil {
		accounts.Alive = alive
	}
	return accounts, err
}

// register notes the node's address for gateways, unless another node of its name serves at another address.
func (f *nodeFlags) register(ctx context.Context, log *zap.Logger, config members.Config, view *members.Members, address string) error {
	if other, known := view.Node(f.name); known && other.Address != "" && other.Address != address {
		asking, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if config.Ping(asking, other) == nil {
			return fmt.Errorf("another node named %q serves at %s: stop it, or give this one a name and a certificate of its own", f.name, other.Address)
		}
	}
	return f.patiently(ctx, log, "register the node", func(ctx context.Context) error { return members.Register(ctx, config, f.name, address) })
}

// serve registers and announces the node, and serves until ctx ends.
func (f *nodeFlags) serve(ctx context.Context, log *zap.Logger, n *node.Node, id *identity.Identity, listener net.Listener, view *members.Members,
	config members.Config, again <-chan os.Signal,
) error {
	registry, address := newRegistry(view), f.address(listener)
	nodeMetrics(registry, n)
	defer expiryOf(id, nil).watch(log, registry)()
	noMetrics, err := serveMetrics(log, f.metrics, registry)
	if err != nil {
		return err
	}
	defer noMetrics()
	// This comes last: from now on gateways send requests.
	if err := f.register(ctx, log, config, view, address); err != nil {
		return err
	}
	n.SetDraining(view.DrainWanted(f.name))
	announcing, quiet := context.WithCancel(context.Background())
	wait, err := members.Announce(announcing, config, func() members.Node {
		return members.Node{Name: f.name, Address: address, Version: version, Draining: n.Draining(), Load: n.Load(), Ended: n.Ended()}
	})
	if err != nil {
		quiet()
		return err
	}
	defer func() { quiet(); wait() }()
	log.Info("listening", zap.String("node", f.name), zap.String("address", address))
	return serveNode(ctx, n, n.Server(id), listener, view, f.name, again)
}

// reach connects to NATS, unless a server is named that a cluster cannot use.
func (f *nodeFlags) reach(ctx context.Context, log *zap.Logger, id *identity.Identity) (*nats.Conn, jetstream.JetStream, error) {
	if err := f.checkServers(ctx, log, f.monitors); err != nil {
		return nil, nil, err
	}
	return f.connect(id)
}

// serveNode serves until ctx ends, and then until the node has given its workspaces up.
func serveNode[Signal any](ctx context.Context, n *node.Node, server *grpc.Server, listener net.Listener, view *members.Members, name string, again <-chan Signal) error {
	var serving sync.WaitGroup
	failed := make(chan error, 1)
	serving.Go(func() { failed <- server.Serve(listener) })
	defer n.Wait()
	defer serving.Wait()
	defer server.Stop()
	look := time.NewTicker(announceEvery)
	defer look.Stop()
	for {
		select {
		case err := <-failed:
			n.Kill()
			return err
		case <-ctx.Done():
			n.Logger.Info("the node is to end, and is drained first", zap.NamedError("reason", context.Cause(ctx)))
			ending, now := context.WithCancel(context.Background())
			defer now()
			go func() {
				select {
				case <-again:
					now()
				case <-ending.Done():
				}
			}()
			if err := n.Shutdown(ending); err != nil {
				return errors.New("ended at once: the workspaces were not given up")
			}
			return nil
		case <-view.Changed():
			n.SetDraining(view.DrainWanted(name))
		case <-look.C:
			n.SetDraining(view.DrainWanted(name))
		}
	}
}

func (f *nodeFlags) address(l net.Listener) string {
	if f.advertise != "" {
		return f.advertise
	}
	return l.Addr().String()
}

func (f *nodeFlags) program() (string, error) {
	name := f.toold
	if name == "" {
		name = "toold"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the toold program was not found, name it with --toold: %w", err)
	}
	return filepath.Abs(path)
}
