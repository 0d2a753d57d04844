// Package otlp makes spans of calls and sends them to an OpenTelemetry collector over gRPC. It is linked only into builds with
// the tag otel: it adds 1.5 MB to a static program for amd64 (November 2026). What the standard's environment variables set (headers,
// certificates, time limits, sampling, the names of the service) holds here too. It does not know what calls do.
package otlp

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/toold/toold/daemon/telemetry"
	"github.com/toold/toold/scheduler/pipeline"
)

// Options are where spans are sent, and what is in them.
type Options struct {
	Version  string      // of the daemon
	Endpoint string      // a URL, http for one without TLS; empty: what the environment says
	Content  bool        // inputs and outputs are in the spans
	Failed   func(error) // is called when spans could not be sent; it must not block
}

// A Tracer is a telemetry.Tracer. It drops spans that it cannot send soon enough.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	content  bool
}

// New returns a tracer that sends spans until it is closed. It does not wait for the collector. The process has one.
func New(o Options) (*Tracer, error) {
	ctx := context.Background()
	var where []otlptracegrpc.Option
	if o.Endpoint != "" {
		where = append(where, otlptracegrpc.WithEndpointURL(o.Endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, where...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithAttributes(
		attribute.String("service.name", "toold"), attribute.String("service.version", o.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Failed))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Tracer{provider, provider.Tracer("github.com/toold/toold", trace.WithInstrumentationVersion(o.Version)), o.Content}, nil
}

// closeLimit is how long the last spans may take to be sent.
const closeLimit = 5 * time.Second

// Close sends the spans that have ended, for which it waits a few seconds at most. Spans that end later are dropped.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// header is the only one of W3C Trace Context that calls pass on.
const header = "traceparent"

// Begin begins the span of a call.
func (t *Tracer) Begin(traceparent string, accepted time.Time) telemetry.Span {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: traceparent})
	ctx, made := t.tracer.Start(ctx, operation, trace.WithTimestamp(accepted))
	return &span{t, ctx, made}
}

// A span is that of one call.
type span struct {
	t   *Tracer
	ctx context.Context // has it
	trace.Span
}

// Traceparent names the span.
func (s *span) Traceparent() string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(s.ctx, carrier)
	return carrier[header]
}

// operation is the name of what the span of a call does, in OpenTelemetry's conventions for generative AI.
const operation = "execute_tool"

// End ends the span.
func (s *span) End(c *telemetry.Call) {
	end := trace.WithTimestamp(time.Now())
	if s.IsRecording() {
		s.SetName(operation + " " + c.Tool)
		s.SetAttributes(s.attributes(c)...)
		if c.Ended.Outcome != pipeline.OK {
			s.SetAttributes(attribute.String("error.type", code(c)))
			s.SetStatus(codes.Error, "")
		}
		for _, p := range c.Ended.Usage.Periods {
			began := c.Accepted.Add(p.Began)
			_, child := s.t.tracer.Start(s.ctx, "toold."+p.Phase.String(), trace.WithTimestamp(began))
			child.End(trace.WithTimestamp(began.Add(p.Took)))
		}
	}
	s.Span.End(end)
}

func (s *span) attributes(c *telemetry.Call) []attribute.KeyValue {
	kind := "function"
	if c.Label == telemetry.MCP {
		kind = "extension"
	}
	all := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", operation), attribute.String("gen_ai.tool.name", c.Tool),
		attribute.String("gen_ai.tool.call.id", c.Use.ID), attribute.String("gen_ai.tool.type", kind),
		attribute.String("gen_ai.conversation.id", c.Session), attribute.String("toold.outcome", c.Ended.Outcome.String()),
	}
	if s.t.content {
		input, output := c.Texts()
		all = append(all, attribute.String("gen_ai.tool.call.arguments", input), attribute.String("gen_ai.tool.call.result", output))
	}
	return all
}

// code returns why the call failed, as a word.
func code(c *telemetry.Call) string {
	if c.Ended.Fault != nil {
		return c.Ended.Fault.Code
	}
	return c.Ended.Outcome.String()
}
