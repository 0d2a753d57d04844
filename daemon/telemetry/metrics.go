package telemetry

import (
	"net/http"
	"runtime"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
)

// Metrics are those of one daemon. What happens is counted as it happens, and what is there is looked up when the metrics
// are read. Its methods are safe for concurrent use; those of a nil *Metrics do nothing.
type Metrics struct {
	registry *prometheus.Registry
	RPC      *grpcprom.ServerMetrics

	calls     *prometheus.CounterVec   // by tool and outcome
	seconds   *prometheus.HistogramVec // by tool and phase
	questions *prometheus.CounterVec   // by decision
	denials   *prometheus.CounterVec   // by kind
	commits   prometheus.Histogram
	labels    map[Label]bool // of tools; fixed by Serve
}

// NewMetrics returns metrics that are empty until a daemon serves.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		RPC:      grpcprom.NewServerMetrics(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toold_calls_total", Help: "Calls that have ended, by tool and outcome.",
		}, []string{"tool", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "toold_call_seconds", Help: "How long calls waited for their turn, for answers and for hooks, and how long they ran.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 11), // to 9 minutes, a little less than the longest time limit
		}, []string{"tool", "phase"}),
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toold_questions_total", Help: "Questions that were closed, by the answer: allowed, denied, or withdrawn without one.",
		}, []string{"decision"}),
		denials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "toold_sandbox_denials_total", Help: "What the sandbox has kept processes of calls from, by kind.",
		}, []string{"kind"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "toold_journal_commit_seconds", Help: "How long transactions of the journal took, without the sync of the disk.",
			Buckets: prometheus.ExponentialBuckets(0.00005, 4, 9), // to 3 s
		}),
	}
	m.registry.MustRegister(m.RPC, m.calls, m.seconds, m.questions, m.denials, m.commits, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Serve adds what belongs to the daemon that the metrics are of: the names of its built-in tools, its version, and what
// state returns whenever the metrics are read. It is called once, before anything is counted.
func (m *Metrics) Serve(version string, builtIn []string, state func() State) {
	m.labels = map[Label]bool{MCP: true, Client: true, Custom: true, Unknown: true}
	for _, name := range builtIn {
		m.labels[Label(name)] = true
	}
	for label := range m.labels { // so that the first of each is seen as an increase
		for outcome := pipeline.OK; outcome <= pipeline.Discarded; outcome++ {
			m.calls.WithLabelValues(string(label), outcome.String())
		}
	}
	for _, decision := range decisions {
		m.questions.WithLabelValues(string(decision))
	}
	for _, kind := range []sandbox.Operation{sandbox.Writing, sandbox.Connecting, sandbox.Socketing} {
		m.denials.WithLabelValues(string(kind))
	}
	m.registry.MustRegister(stateCollector{state}, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "toold_build_info", Help: "The program that runs: 1.", ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	}, func() float64 { return 1 }))
}

// Ended counts a call.
func (m *Metrics) Ended(c *Call) {
	if m == nil {
		return
	}
	label := c.Label
	if !m.labels[label] {
		label = Unknown
	}
	tool := string(label)
	m.calls.WithLabelValues(tool, c.Ended.Outcome.String()).Inc()
	for phase, took := range spent(&c.Ended.Usage) {
		if took > 0 {
			m.seconds.WithLabelValues(tool, pipeline.Phase(phase).String()).Observe(took.Seconds())
		}
	}
	for _, d := range c.Ended.Confined.Denials {
		m.denials.WithLabelValues(string(d.Operation)).Add(float64(d.Count))
	}
}

// A Decision is how a question was closed.
type Decision string

// The decisions.
const (
	Allowed   Decision = "allowed"
	Denied    Decision = "denied"
	Withdrawn Decision = "withdrawn"
)

var decisions = []Decision{Allowed, Denied, Withdrawn}

// Answered counts a question that was closed.
func (m *Metrics) Answered(d Decision) {
	if m != nil {
		m.questions.WithLabelValues(string(d)).Inc()
	}
}

// Committed counts a transaction of the journal.
func (m *Metrics) Committed(took time.Duration) {
	if m != nil {
		m.commits.Observe(took.Seconds())
	}
}

// Handler returns the metrics in the text format of Prometheus. It does not look at who asks.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Gatherer returns the metrics for programs.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }
