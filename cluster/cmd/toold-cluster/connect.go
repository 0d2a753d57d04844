//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/objects"
)

// A link is the connection to NATS, with why the last try to make it has failed. What waits for a connection gets an error that
// has only the end of its time.
type link struct {
	conn *nats.Conn // nil: there is none yet

	mu   sync.Mutex // guards last
	last error
}

// failed is called by the connection with each try that has failed.
func (l *link) failed(_ *nats.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.last = err
	}
}

// why returns why there is no connection; nil: there is one, or none was tried.
func (l *link) why() error {
	if l.conn == nil || l.conn.IsConnected() {
		return nil
	}
	if err := l.conn.LastError(); err != nil && !errors.Is(err, nats.ErrNoServers) { // it lacks what came while a connection was made
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// connect connects to NATS, which need not be there yet.
func (c *common) connect(id *identity.Identity) (*nats.Conn, jetstream.JetStream, error) {
	options := []nats.Option{
		nats.Name(id.Subject.String()), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectErrHandler(c.link.failed), nats.DisconnectErrHandler(c.link.failed),
	}
	if c.fixed {
		options = append(options, nats.IgnoreDiscoveredServers())
	}
	if strings.HasPrefix(c.nats, "tls://") {
		options = append(options, nats.Secure(id.NATSClientTLS()))
	}
	conn, err := nats.Connect(c.nats, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("NATS at %s cannot be used: %w", c.nats, err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	c.link.conn = conn
	return conn, js, nil
}

// explain adds to an error why there is no connection to NATS, if there is none.
func (c *common) explain(err error) error {
	if err == nil {
		return nil
	}
	why := c.link.why()
	if why == nil {
		return err
	}
	hint := ""
	if errors.Is(why, nats.ErrSecureConnRequired) || strings.HasPrefix(c.nats, "nats://") && strings.Contains(why.Error(), "tls: ") {
		hint = "; name servers with TLS as tls://HOST:PORT"
	}
	return fmt.Errorf("NATS at %s cannot be reached: %w%s (%w)", c.nats, why, hint, err)
}

// patiently tries something that needs NATS, or the object store, until it succeeds or ctx ends: these may be started later than
// their clients. What does not pass by itself ends it, too.
func (c *common) patiently(ctx context.Context, log *zap.Logger, what string, try func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := c.explain(try(once))
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, objects.ErrUnusable) {
			return errors.Join(err, context.Cause(ctx))
		}
		log.Warn("waiting to "+what, zap.Error(err))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
