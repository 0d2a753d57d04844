//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/toold/toold/cluster/gateway"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
)

// leaveTime is how long a gateway that is to end lets a load balancer notice it.
const leaveTime = 2 * time.Second

type gatewayFlags struct {
	common
	name, listen, tokens, cert, key, userCA string
}

func gatewayCommand() *cobra.Command {
	var f gatewayFlags
	cmd := &cobra.Command{
		Use: "gateway", Short: "Let users in, and pass their calls to nodes", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "the gateway's name, as in its certificate")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7443", "address for users")
	flags.StringVar(&f.tokens, "tokens", "", "file of users' tokens; see \"toold-cluster token\"")
	flags.StringVar(&f.cert, "tls-cert", "", "certificate to show to users (default: the gateway's own)")
	flags.StringVar(&f.key, "tls-key", "", "its key")
	flags.StringVar(&f.userCA, "user-ca", "", "authorities of users' certificates (default: users have tokens)")
	flags.StringVar(&f.metrics, "metrics", "", metricsFlag)
	_ = cmd.MarkFlagRequired("name")
	return cmd
}

func (f *gatewayFlags) run() error {
	if f.tokens == "" && f.userCA == "" {
		return errors.New("no user could be let in: name the file of their tokens with --tokens, or the authorities of their certificates with --user-ca")
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	ctx, again := untilSignal()
	id, err := identity.Load(f.certs, identity.Gateway, f.name)
	if err != nil {
		return err
	}
	users, err := identity.OpenUsers(f.tokens, func(wrong error) {
		log.Warn("the token file cannot be used as it is", zap.Error(wrong))
	})
	if err != nil {
		return err
	}
	tls, err := id.UserTLS(f.cert, f.key, f.userCA)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, js, err := f.connect(id)
	if err != nil {
		return err
	}
	defer conn.Close()
	config := gateway.Config{Identity: id, Users: users, TLS: tls, JetStream: js, Replicas: f.replicas, Version: version, Log: log}
	if err := f.patiently(ctx, log, "see the nodes", func(try context.Context) (err error) {
		nodes := f.members(conn, js, id)
		nodes.Suspected = logSuspected(log)
		config.Members, err = members.Open(try, nodes)
		return err
	}); err != nil {
		return err
	}
	defer config.Members.Close()
	var g *gateway.Gateway
	registry := newRegistry(config.Members)
	defer expiryOf(id, tls).watch(log, registry)()
	config.Ended = gatewayMetrics(registry, func() *gateway.Gateway { return g })
	if err := f.patiently(ctx, log, "open the index of sessions", func(try context.Context) (err error) { g, err = gateway.New(try, config); return err }); err != nil {
		return err
	}
	defer g.Stop()
	noMetrics, err := serveMetrics(log, f.metrics, registry)
	if err != nil {
		return err
	}
	defer noMetrics()
	log.Info("listening", zap.String("gateway", f.name), zap.Stringer("address", listener.Addr()))
	err = serveUntil(ctx, again, g, listener)
	log.Info("the gateway ends", zap.NamedError("reason", context.Cause(ctx)))
	return err
}

// serveUntil serves until ctx ends, and then until clients have had time to attach elsewhere, or again is closed.
func serveUntil(ctx context.Context, again <-chan os.Signal, g *gateway.Gateway, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	g.Drain()
	select { // clients attach again elsewhere
	case <-again:
	case <-time.After(leaveTime):
	}
	return nil
}
