package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toold/toold/scheduler/gate"
)

// A State is what a daemon holds at one moment.
type State struct {
	Questions int // open
	Running   int // calls whose turn has come and that have not ended
	Sessions  map[string]int
	Servers   map[Server]int
	Journal   int64     // bytes of its files
	Gate      gate.Load // the machine's gate
}

// A Server is a kind of server, and the state that some of them are in.
type Server struct{ Kind, State string }

var (
	questionsOpen = prometheus.NewDesc("toold_questions_open", "Questions that wait for an answer.", nil, nil)
	callsRunning  = prometheus.NewDesc("toold_calls_running", "Calls whose turn has come and that have not ended.", nil, nil)
	sessions      = prometheus.NewDesc("toold_sessions", "Sessions that are not closed, by state.", []string{"state"}, nil)
	servers       = prometheus.NewDesc("toold_servers", "MCP servers and language servers of all sessions, by state.", []string{"kind", "state"}, nil)
	gateRunning   = prometheus.NewDesc("toold_gate_running", "Calls of all sessions that have a place at the machine's gate.", nil, nil)
	gateWaiting   = prometheus.NewDesc("toold_gate_waiting", "Calls that wait at the machine's gate, by what they wait for.", []string{"reason"}, nil)
	gateRefused   = prometheus.NewDesc("toold_gate_refused_total", "Calls that have ended as host_busy, by what they waited for.", []string{"reason"}, nil)
	journalBytes  = prometheus.NewDesc("toold_journal_bytes", "The size of the journal's files.", nil, nil)
)

// A stateCollector reads the state when the metrics are read.
type stateCollector struct{ state func() State }

// Describe sends the descriptions of all that Collect sends.
func (stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{questionsOpen, callsRunning, sessions, servers, gateRunning, gateWaiting, gateRefused, journalBytes} {
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
	gauge(gateRunning, float64(now.Gate.Inside))
	for _, why := range []gate.Reason{gate.Slots, gate.Memory, gate.Pressure} {
		gauge(gateWaiting, float64(now.Gate.Waiting[why]), why.String())
		to <- prometheus.MustNewConstMetric(gateRefused, prometheus.CounterValue, float64(now.Gate.Refused[why]), why.String())
	}
	for state, n := range now.Sessions {
		gauge(sessions, float64(n), state)
	}
	for server, n := range now.Servers {
		gauge(servers, float64(n), server.Kind, server.State)
	}
}
