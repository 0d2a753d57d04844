//go:build !otel

// In the place of traces_otel.go in a build that cannot send spans.

package main

import (
	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/settings"
)

func startSpans(config *daemon.Config, _ settings.Traces) (end func(), err error) {
	config.Log.Warn("no spans are made of calls, although the settings or the environment name a collector: this toold was built without the tag otel")
	return func() {}, nil
}
