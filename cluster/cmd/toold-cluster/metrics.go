//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/toold/toold/cluster/gateway"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// metricsFlag is how the flag --metrics is explained.
const metricsFlag = "serve metrics in the text format of Prometheus at unix:PATH, under /metrics"

// newRegistry returns metrics of the process, and of the nodes as it sees them.
func newRegistry(view *members.Members) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "toold_cluster_build_info", Help: "The program that runs: 1.", ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
		}, func() float64 { return 1 }))
	for state, count := range map[string]func(members.Node) bool{
		"serves":   func(n members.Node) bool { return !view.Suspect(n.Name) && !n.Draining },
		"draining": func(n members.Node) bool { return !view.Suspect(n.Name) && n.Draining },
		"lost":     func(n members.Node) bool { return view.Suspect(n.Name) },
	} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "toold_cluster_nodes", Help: "Nodes, as this process sees them, by state.", ConstLabels: prometheus.Labels{"state": state},
		}, func() (n float64) {
			for _, one := range view.All() {
				if count(one) {
					n++
				}
			}
			return n
		}))
	}
	return r
}

// nodeMetrics adds what a node has done and has.
func nodeMetrics(r *prometheus.Registry, n *node.Node) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "toold_node_" + name, Help: help}, value))
	}
	gauge("workspaces", "Workspaces that the node has.", func() float64 { return float64(n.Load().Workspaces) })
	gauge("attached_sessions", "Streams of Execute that are attached.", func() float64 { return float64(n.Load().Sessions) })
	counter := func(name, help, label, value string, count func(node.Counts) float64) {
		labels := prometheus.Labels{}
		if label != "" {
			labels[label] = value
		}
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "toold_node_" + name, Help: help, ConstLabels: labels},
			func() float64 { return count(n.Counts()) }))
	}
	const begun, ended, saved = "Workspaces that were to be taken over, by what came of it.", "Workspaces that have left the node, by how.", "Tries to store a workspace's files."
	counter("takeovers_total", begun, "result", "taken", func(c node.Counts) float64 { return float64(c.Taken) })
	counter("takeovers_total", begun, "result", "not_taken", func(c node.Counts) float64 { return float64(c.NotTaken) })
	counter("ends_total", ended, "how", "given_up", func(c node.Counts) float64 { return float64(c.GivenUp) })
	counter("ends_total", ended, "how", "lost", func(c node.Counts) float64 { return float64(c.Lost) })
	counter("snapshots_total", saved, "result", "stored", func(c node.Counts) float64 { return float64(c.Snapshots) })
	counter("snapshots_total", saved, "result", "failed", func(c node.Counts) float64 { return float64(c.SnapshotsFailed) })
	counter("appends_total", "Appends to logs that were acknowledged.", "", "", func(c node.Counts) float64 { return float64(c.Appends) })
	for number, name := range tooldv1.Outcome_name {
		outcome := tooldv1.Outcome(number)
		counter("results_total", "Calls of workspaces that have ended, by outcome.", "outcome", strings.ToLower(strings.TrimPrefix(name, "OUTCOME_")),
			func(node.Counts) float64 { return float64(n.Results(outcome)) })
	}
	counter("append_seconds_total", "How long all of them took together.", "", "", func(c node.Counts) float64 { return c.Appending.Seconds() })
}

// gatewayMetrics adds what a gateway does. ended is called with each RPC that has ended.
func gatewayMetrics(r *prometheus.Registry, g func() *gateway.Gateway) (ended func(method string, code codes.Code)) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "toold_gateway_attached_sessions", Help: "Streams of Execute that a node has accepted."},
		func() float64 { return float64(g().Attached()) }))
	rpcs := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "toold_gateway_rpcs_total", Help: "RPCs that have ended, by method and status."}, []string{"method", "code"})
	r.MustRegister(rpcs)
	return func(method string, code codes.Code) { rpcs.WithLabelValues(method, code.String()).Inc() }
}

// serveMetrics serves over HTTP at unix:PATH, to the process's user only, until end is called. An empty address serves nothing.
func serveMetrics(log *zap.Logger, address string, from prometheus.Gatherer) (end func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	path, is := strings.CutPrefix(address, "unix:")
	if !is || path == "" {
		return nil, fmt.Errorf("%q is not an address for metrics: name a socket as unix:PATH", address)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	listener, err := access.Listen(path)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10, IdleTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("metrics are not served any more", zap.Error(err))
		}
	}()
	return func() { _ = server.Close(); <-served }, nil
}
