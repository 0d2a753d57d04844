package telemetry

import "github.com/prometheus/client_golang/prometheus"

// A State is what a daemon holds at one moment.
type State struct {
	Questions int // open
	Running   int // calls whose turn has come and that have not ended
	Sessions  map[string]int
	Servers   map[Server]int
	Journal   int64 // bytes of its files
}

// A Server is a kind of server, and the state that some of them are in.
type Server struct{ Kind, State string }

var (
	questionsOpen = prometheus.NewDesc("toold_questions_open", "Questions that wait for an answer.", nil, nil)
	callsRunning  = prometheus.NewDesc("toold_calls_running", "Calls whose turn has come and that have not ended.", nil, nil)
	sessions      = prometheus.NewDesc("toold_sessions", "Sessions that are not closed, by state.", []string{"state"}, nil)
	servers       = prometheus.NewDesc("toold_servers", "MCP servers and language servers of all sessions, by state.", []string{"kind", "state"}, nil)
	journalBytes  = prometheus.NewDesc("toold_journal_bytes", "The size of the journal's files.", nil, nil)
)

// A stateCollector reads the state when the metrics are read.
type stateCollector struct{ state func() State }

// Describe sends the descriptions of all that Collect sends.
func (stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{questionsOpen, callsRunning, sessions, servers, journalBytes} {
		to <- desc
	}
}

// Collect sends the present state.
func (c stateCollector) Collect(to chan<- prometheus.Metric) {
	now := c.state()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(questionsOpen, float64(now.Questions))
	gauge(callsRunning, float64(now.Running))
	gauge(journalBytes, float64(now.Journal))
	for state, n := range now.Sessions {
		gauge(sessions, float64(n), state)
	}
	for server, n := range now.Servers {
		gauge(servers, float64(n), server.Kind, server.State)
	}
}
