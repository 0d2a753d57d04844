// The metrics on a Unix socket of their own, from the command line of serve.

package main

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/telemetry"
)

// serveMetrics has the daemon count, and serves its metrics over HTTP at an address unix:PATH, to its user alone, until end is
// called.
func serveMetrics(config *daemon.Config, address string) (end func(), err error) {
	end = func() {}
	path, is := strings.CutPrefix(address, "unix:")
	if !is || path == "" {
		return end, cli.Misused("%q is not an address for metrics: name a socket as unix:PATH", address)
	}
	if path, err = filepath.Abs(path); err != nil {
		return end, err
	}
	listener, err := access.Listen(path)
	if err != nil {
		return end, err
	}
	config.Metrics = telemetry.NewMetrics()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", config.Metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10, IdleTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			config.Log.Error("metrics are not served any more", zap.Error(err))
		}
	}()
	return func() { _ = server.Close(); <-served }, nil
}
