package otlp_test

import (
	"testing"
	"time"

	"github.com/toold/toold/daemon/telemetry"
	"github.com/toold/toold/daemon/telemetry/otlp"
	"github.com/toold/toold/scheduler/pipeline"
)

// BenchmarkCall is what a call that waits and runs costs in metrics, and in a span with its children, which is put where it
// waits to be sent.
func BenchmarkCall(b *testing.B) {
	call := &telemetry.Call{
		Session: "s", Use: &pipeline.Use{ID: "toolu_1", TurnID: "t"}, Tool: "Read", Label: "Read", Accepted: time.Now(),
		Ended: &pipeline.Ended{Outcome: pipeline.OK, Usage: pipeline.Usage{
			Waited: time.Millisecond, Ran: time.Millisecond,
			Periods: []pipeline.Period{{Phase: pipeline.Waiting, Took: time.Millisecond}, {Phase: pipeline.Running, Took: time.Millisecond}},
		}},
	}
	b.Run("metrics", func(b *testing.B) {
		metrics := telemetry.NewMetrics()
		metrics.Serve("test", []string{"Read"}, func() telemetry.State { return telemetry.State{} })
		b.ReportAllocs()
		for b.Loop() {
			metrics.Ended(call)
		}
	})
	b.Run("spans", func(b *testing.B) {
		tracer, err := otlp.New(otlp.Options{Endpoint: "http://127.0.0.1:1", Failed: func(error) {}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			span := tracer.Begin("", call.Accepted)
			_ = span.Traceparent()
			span.End(call)
		}
		_ = tracer.Close() // nothing listens there
	})
}
