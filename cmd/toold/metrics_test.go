package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overSocket is a client of an HTTP server on a Unix socket.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

func fetched(t *testing.T, from *http.Client, method, path string) (status int, text string) {
	t.Helper()
	request, _ := http.NewRequestWithContext(t.Context(), method, "http://toold"+path, nil)
	response, err := from.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestMetricsSocket: the metrics are on a socket that only the user reaches, and on nothing else of it. After a turn each query
// of the dashboard for Grafana has series.
func TestMetricsSocket(t *testing.T) {
	environ, root := home(t)
	socket := filepath.Join(t.TempDir(), "metrics", "m.sock")
	put(t, filepath.Join(root, "a.txt"), "text\n")
	put(t, filepath.Join(root, "use.json"), `{"role":"assistant","content":[{"type":"tool_use","id":"r","name":"Read","input":{"file_path":"`+root+`/a.txt"}}]}`)
	cmd := self(t, context.Background(), environ, root, "serve", "--metrics", "unix:"+socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listens on") {
		t.Fatalf("the daemon says %q (%v)", line, err)
	}
	if said, err := self(t, t.Context(), environ, root, "run", "use.json").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v (%v)", info, err)
	}
	client := overSocket(socket)
	status, text := fetched(t, client, "GET", "/metrics")
	holds(t, "the page", text, `toold_calls_total{outcome="ok",tool="Read"} 1`, "toold_build_info{", "# HELP toold_call_seconds ")
	checkDashboard(t, text)
	if status != http.StatusOK {
		t.Errorf("the page has the status %d", status)
	}
	for _, other := range [][2]string{{"GET", "/"}, {"GET", "/debug/pprof/"}, {"POST", "/metrics"}} {
		if status, _ := fetched(t, client, other[0], other[1]); status < 400 {
			t.Errorf("%s %s has the status %d", other[0], other[1], status)
		}
	}
	if said, err := self(t, t.Context(), environ, root, "stop").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v\n%s", err, log.String())
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is still there")
	}
}
