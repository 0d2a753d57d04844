package daemon_test

import (
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/toold/toold/daemon/telemetry"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// series returns the value of each series whose name begins with toold_, as "name{label=value,...}"; of a histogram, how
// many values it has.
func series(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "toold_") {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			found[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = value
		}
	}
	return found
}

// TestMetrics: each call of a turn is counted when its result is seen, by a bounded number of labels, and logged once
// without its input.
func TestMetrics(t *testing.T) {
	h := prepare(t)
	hook := `{"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "true"}]}]}}`
	if err := os.WriteFile(h.settings, []byte(hook), 0o600); err != nil {
		t.Fatal(err)
	}
	config := h.config()
	core, logged := observer.New(zap.InfoLevel)
	config.Metrics, config.Log = telemetry.NewMetrics(), zap.New(core)
	h.begin(config)
	c := h.offer("s", tooldv1.Role_ROLE_MAIN, askUser())
	c.use("r", "Read", `{"file_path":"`+h.file("a.txt", "text\n")+`"}`)
	c.until("r OK")
	c.use("bad", "Read", `{"file":7}`)
	c.until("bad INVALID")
	c.use("none", "Frobnicate"+strings.Repeat("x", 1000), `{}`)
	c.until("none INVALID")
	c.write(h, "w1")
	question := c.question("w1")
	want(t, series(t, config.Metrics.Gatherer())["toold_questions_open{}"], 1)
	c.reply(question, allow)
	c.until("w1 OK")
	c.write(h, "w2")
	c.reply(c.question("w2"), deny)
	c.until("w2 DENIED")
	c.use("q", "AskUser", `{"question":"why?"}`)
	c.asked("q")
	want(t, series(t, config.Metrics.Gatherer())["toold_calls_running{}"], 1)
	c.gives("q", &tooldv1.ClientToolResult{Content: textOf("because")})
	c.until("q OK")

	got := series(t, config.Metrics.Gatherer())
	for name, value := range map[string]float64{
		"toold_calls_total{outcome=ok,tool=Read}": 1, "toold_calls_total{outcome=invalid,tool=Read}": 1,
		"toold_calls_total{outcome=invalid,tool=unknown}": 1, "toold_calls_total{outcome=ok,tool=Write}": 1,
		"toold_calls_total{outcome=denied,tool=Write}": 1, "toold_calls_total{outcome=ok,tool=client}": 1,
		"toold_call_seconds{phase=ask,tool=Write}": 2, "toold_call_seconds{phase=run,tool=Write}": 1,
		"toold_call_seconds{phase=wait,tool=Read}": 1, "toold_call_seconds{phase=hooks,tool=Read}": 1, "toold_call_seconds{phase=hooks,tool=Write}": 0,
		"toold_questions_total{decision=allowed}": 1, "toold_questions_total{decision=denied}": 1,
		"toold_questions_total{decision=withdrawn}": 0, "toold_questions_open{}": 0, "toold_calls_running{}": 0, "toold_gate_running{}": 0, "toold_gate_waiting{reason=memory}": 0, "toold_gate_refused_total{reason=slots}": 0,
		"toold_sessions{state=attached}": 1, "toold_sandbox_denials_total{kind=write}": 0, "toold_servers{kind=mcp,state=ready}": 0,
	} {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if got["toold_journal_commit_seconds{}"] == 0 || got["toold_journal_bytes{}"] == 0 {
		t.Errorf("the journal took %v transactions and %v bytes", got["toold_journal_commit_seconds{}"], got["toold_journal_bytes{}"])
	}
	boundedLabels(t, got, config.Metrics)

	var lines []string
	for _, line := range logged.FilterMessage("call").All() {
		fields := line.ContextMap()
		lines = append(lines, strings.Join([]string{fields["session"].(string), fields["id"].(string), fields["outcome"].(string)}, " "))
		if text := strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, v := range fields {
				if s, is := v.(string); is && !yield(s) {
					return
				}
			}
		}), " "); strings.Contains(text, h.root) || len(text) > 500 {
			t.Errorf("the line has more than it should: %v", fields)
		}
	}
	want(t, strings.Join(lines, "; "), "s r ok; s bad invalid; s none invalid; s w1 ok; s w2 denied; s q ok")
}

// boundedLabels checks that no label has other values than the contract names, and the lint of the client library.
func boundedLabels(t *testing.T, got map[string]float64, metrics *telemetry.Metrics) {
	t.Helper()
	values := map[string][]string{
		"phase": {"wait", "ask", "hooks", "run"}, "decision": {"allowed", "denied", "withdrawn"}, "kind": {"write", "connect", "socket", "mcp", "language"},
		"state":   {"attached", "detached", "resting", "not_restored", "not_started", "starting", "ready", "restarting", "failed", "idle_stopped"},
		"outcome": {"ok", "error", "invalid", "denied", "cancelled", "aborted", "timed_out", "interrupted", "discarded"},
		"reason":  {"slots", "memory", "pressure"},
		"tool":    {"mcp", "client", "custom", "unknown", "Restore"},
	}
	for _, tool := range toolset() {
		values["tool"] = append(values["tool"], tool.Spec().Name)
	}
	for name := range got {
		metric, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		for label := range strings.SplitSeq(labels, ",") {
			key, value, has := strings.Cut(label, "=")
			if has && metric != "toold_build_info" && !slices.Contains(values[key], value) {
				t.Errorf("%s has the label %s", metric, label)
			}
		}
	}
	problems, err := testutil.GatherAndLint(metrics.Gatherer())
	if err != nil || len(problems) > 0 {
		t.Errorf("the lint finds %v (%v)", problems, err)
	}
	page := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	if text := page.Body.String(); page.Code != 200 || !strings.Contains(text, `grpc_server_started_total{grpc_method="Execute"`) ||
		!strings.Contains(text, `toold_build_info{`) {
		t.Errorf("the page has the status %d and is\n%.2000s", page.Code, text)
	}
}
