//go:build otel

// Spans of calls, in builds with the tag otel.

package main

import (
	"go.uber.org/zap"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/daemon/telemetry/otlp"
)

// startSpans has the daemon make spans, which are sent until end is called.
func startSpans(config *daemon.Config, traces settings.Traces) (end func(), err error) {
	log := config.Log
	tracer, err := otlp.New(otlp.Options{
		Version: config.Version, Endpoint: traces.Endpoint, Content: traces.Content,
		Failed: func(err error) { log.Warn("spans could not be sent", zap.Error(err)) },
	})
	if err != nil {
		return func() {}, err
	}
	config.Tracer = tracer
	return func() {
		if err := tracer.Close(); err != nil {
			log.Warn("the last spans could not be sent", zap.Error(err))
		}
	}, nil
}
