// A daemon in a network of the test's own, in which every address leads to the test itself, and what connects to hosts in it.

package daemon_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Public addresses of no consequence: in the test's network they are its own.
const (
	hostA = "93.184.215.14"
	hostB = "93.184.215.15"
	hostC = "93.184.215.16"
	hostD = "93.184.215.17"
)

// connectScript prints, for each host that it is called with, the status with which the proxy answers. With & before the hosts
// it asks for all of them at once.
const connectScript = `
one() {
	p=${HTTP_PROXY##*[@/]}
	exec 3<>/dev/tcp/${p%:*}/${p#*:} || return
	printf 'CONNECT %s:80 HTTP/1.1\r\nHost: x\r\n\r\n' "$1" >&3
	read -r _ status _ <&3
	exec 3>&-
	echo "$1 $status"
}
if [ "$1" = "&" ]; then
	shift
	for host; do one "$host" & done
	wait
else
	for host; do one "$host"; done
fi
`

// wired is a daemon in the test's network, with a server at port 80 of every address. more are further keys of its settings.
func wired(t *testing.T, more string) *house {
	t.Helper()
	l, err := net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello from", r.Host) })}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte(`{"permissions": {"allow": ["Bash(bash net.sh *)", "Bash(true *)"]}`+more+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.file("net.sh", connectScript)
	h.start()
	h.needsFull()
	return h
}

// connect has a call connect to the hosts.
func (c *conversation) connect(id string, hosts ...string) {
	c.t.Helper()
	c.use(id, "Bash", fmt.Sprintf(`{"command": "bash net.sh %s"}`, strings.Join(hosts, " ")))
}

// asksHost receives up to a question about a host, of the call or, with an empty id, of a background task.
func (c *conversation) asksHost(id, host string) *tooldv1.Question {
	c.t.Helper()
	q := c.question(id)
	if to := q.GetConnection(); to.GetHost() != host || to.GetPort() != 80 || to.GetProgram() != "bash" {
		c.t.Fatalf("asks about %v, want %s: %v", to, host, q)
	}
	return q
}

// printed receives up to the result of a call and returns what it printed, line by line and sorted.
func (c *conversation) printed(id string) []string {
	c.t.Helper()
	r := c.until(id + " ").GetToolResult()
	for r == nil {
		r = c.until(id + " ").GetToolResult()
	}
	var lines []string
	for line := range strings.Lines(shownIn(r)) {
		if strings.HasPrefix(line, "9") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func shownIn(r *tooldv1.ToolResult) string {
	var all strings.Builder
	for _, block := range r.GetContent() {
		all.WriteString(block.GetText() + "\n")
	}
	return all.String()
}

func keep(scope tooldv1.Scope) func(*tooldv1.Answer) {
	return func(a *tooldv1.Answer) {
		a.Remember = []*tooldv1.Remember{{Rule: "WebFetch(domain:" + hostA + ")", List: "allow", Scope: scope}}
	}
}

// questions returns how many questions were received.
func (c *conversation) questions() (n int) {
	for _, e := range c.events {
		if e.GetQuestion() != nil {
			n++
		}
	}
	return n
}

// serveRegistry serves a registry of packages with one package, greeter, and returns its address.
func serveRegistry(t *testing.T) (address string) {
	t.Helper()
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	archive := tar.NewWriter(zip)
	about := `{"name": "greeter", "version": "1.0.0"}`
	for _, err := range []error{
		archive.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(about))}),
		second(io.WriteString(archive, about)), archive.Close(), zip.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/greeter":
			fmt.Fprintf(w, `{"name": "greeter", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "greeter", "version": "1.0.0",
				"dist": {"tarball": "http://%s/greeter.tgz"}}}}`, r.Host)
		case "/greeter.tgz":
			_, _ = w.Write(file.Bytes())
		default:
			http.NotFound(w, r)
		}
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return net.JoinHostPort(hostA, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
}

func second(_ int, err error) error { return err }
