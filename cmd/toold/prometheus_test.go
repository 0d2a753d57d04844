package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPrometheus: promtool finds nothing in the metrics, and Prometheus scrapes them with a token. After two turns each query of the
// dashboard for Grafana has series, and calls have a rate.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			skip(t, "install prometheus")
		}
	}
	environ, root := home(t)
	h := &house{dir: filepath.Dir(root), environ: environ}
	h.begin(t, self(t, context.Background(), environ, root, "serve", "--http", "127.0.0.1:0"))
	put(t, filepath.Join(root, "use.json"), `{"id":"g","name":"Glob","input":{"pattern":"*"}}
		{"id":"b","name":"Bash","input":{"command":"exit 3"}}
		{"id":"a","name":"Bash","input":{"command":"touch never"}}`)
	turn := func() { h.toold(t, root, 1, "run", "--mode", "bypassPermissions", "use.json") }
	turn()

	var at struct{ URL string }
	if err := json.Unmarshal([]byte(h.toold(t, root, 0, "dashboard", "--json")), &at); err != nil {
		t.Fatal(err)
	}
	tokens, err := filepath.Glob(filepath.Join(h.dir, "*", "toold", "metrics-tokens"))
	if err != nil || len(tokens) != 1 {
		t.Fatalf("the token is in %q %v", tokens, err)
	}
	words := strings.Fields(content(t, tokens[0]))
	token := words[len(words)-1]
	checkMetrics(t, at.URL, token)

	p := startPrometheus(t, h.dir, at.URL, token)
	p.until(t, `count_over_time(toold_build_info[10m]) >= 1`)
	turn()
	p.until(t, `sum(rate(toold_calls_total[1m])) > 0`)
	for _, panel := range board(t).Panels {
		for _, target := range panel.Targets {
			if query := strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"); p.series(t, query) == 0 {
				t.Errorf("%q: no series for %s", panel.Title, query)
			}
		}
	}
}

// checkMetrics has promtool check the page of metrics.
func checkMetrics(t *testing.T, at, token string) {
	t.Helper()
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"metrics", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = response.Body
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 || response.StatusCode != http.StatusOK {
		t.Errorf("promtool: status %d, %v\n%s", response.StatusCode, err, said)
	}
}

// A prometheus scrapes a daemon each second.
type prometheus struct {
	url     string
	scrapes chan struct{} // one slot: a scrape has begun, so the one before it is stored
}

// startPrometheus starts one that scrapes the daemon at that address through a proxy, which counts.
func startPrometheus(t *testing.T, dir, at, token string) *prometheus {
	t.Helper()
	p := &prometheus{scrapes: make(chan struct{}, 1)}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }, Transport: &http.Transport{}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case p.scrapes <- struct{}{}:
		default:
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	target, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "prometheus", "token"), token)
	config := filepath.Join(dir, "prometheus", "config.yml")
	put(t, config, fmt.Sprintf(`scrape_configs:
  - job_name: toold
    scrape_interval: 1s
    scrape_timeout: 1s
    proxy_url: %s
    authorization: { credentials_file: token }
    static_configs: [{ targets: [%q] }]
`, proxy.URL, target.Host))
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "prometheus", "data"), "--web.listen-address=127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens, said := make(chan string, 1), make(chan string, 1)
	go func() { // it ends with Prometheus
		var all strings.Builder
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if _, address, is := strings.Cut(lines.Text(), `msg="Listening on" address=`); is {
				listens <- address
			}
		}
		close(listens)
		said <- all.String()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		text := <-said
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("Prometheus ended with %v:\n%s", err, text)
		}
	})
	address, is := <-listens
	if !is {
		t.Fatal("Prometheus does not listen")
	}
	p.url = "http://" + address
	return p
}

// until waits for the query to have series, and asks again whenever there is another scrape.
func (p *prometheus) until(t *testing.T, query string) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for p.series(t, query) == 0 {
		select {
		case <-p.scrapes:
		case <-limit:
			t.Fatalf("no series for %s", query)
		}
	}
}

// series returns how many series a query has.
func (p *prometheus) series(t *testing.T, query string) int {
	t.Helper()
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(query), nil)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable { // it has only just begun
		return 0
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s %s %v", query, response.Status, answer.Error, err)
	}
	return len(answer.Data.Result)
}
