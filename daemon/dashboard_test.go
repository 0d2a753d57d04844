package daemon_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/telemetry"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A browser sends requests to the dashboard, as a page of it does unless told otherwise.
type browser struct {
	t      *testing.T
	url    string
	token  string
	client *http.Client
}

func (h *house) browser(t *testing.T) *browser {
	t.Helper()
	at, err := h.daemon().OpenDashboard(t.Context(), &tooldv1.OpenDashboardRequest{})
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, url: strings.TrimSuffix(at.GetUrl(), "/"), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(b.client.CloseIdleConnections)
	code, answer := b.post("/token", `{"code": "`+at.GetCode()+`"}`, nil)
	if b.token = answer.Token; code != http.StatusOK || b.token == "" {
		t.Fatalf("the code is answered with %d", code)
	}
	if code, _ := b.post("/token", `{"code": "`+at.GetCode()+`"}`, nil); code != http.StatusUnauthorized {
		t.Errorf("a code that was used is answered with %d", code)
	}
	return b
}

// A reply is what of an answer tests look at.
type reply struct {
	Token string `json:"token"`
	Error struct {
		Message string `json:"message"`
		Data    struct {
			Reason string `json:"reason"`
		} `json:"data"`
	} `json:"error"`
	PID int `json:"pid"`
}

func (b *browser) request(method, path, body string, header map[string]string) *http.Request {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", b.url)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if b.token != "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	for name, value := range header {
		if request.Header.Set(name, value); name == "Host" {
			request.Host = value
		}
		if value == "" {
			request.Header.Del(name)
		}
	}
	return request
}

// post sends a request, with some headers set otherwise; an empty one is left out.
func (b *browser) post(path, body string, header map[string]string) (code int, answer reply) {
	b.t.Helper()
	response, err := b.client.Do(b.request(http.MethodPost, path, body, header))
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil && strings.HasPrefix(path, "/rpc/DaemonService") {
		b.t.Fatalf("%s is answered with %q", path, text)
	}
	return response.StatusCode, answer
}

const getInfo = "/rpc/DaemonService/GetInfo"

// TestDashboardRefuses: what another site, another program or a guesser can send is refused, and nothing of it is done.
func TestDashboardRefuses(t *testing.T) {
	h := serve(t)
	b := h.browser(t)
	if code, answer := b.post(getInfo, "{}", nil); code != http.StatusOK || answer.PID == 0 {
		t.Fatalf("a page is answered with %d", code)
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.url, "http://"))
	for name, c := range map[string]struct {
		path, body string
		header     map[string]string
		want       int
		reason     string
	}{
		"another host":             {getInfo, "{}", map[string]string{"Host": "evil.example:" + port}, 403, "wrong_authority"},
		"a name that was rebound":  {getInfo, "{}", map[string]string{"Host": "127.0.0.1.evil.example:" + port, "Origin": "http://127.0.0.1.evil.example:" + port}, 403, "wrong_authority"},
		"an address that is not":   {getInfo, "{}", map[string]string{"Host": "10.0.0.1:" + port}, 403, "wrong_authority"},
		"a host without a port":    {getInfo, "{}", map[string]string{"Host": "127.0.0.1"}, 403, "wrong_authority"},
		"another origin":           {getInfo, "{}", map[string]string{"Origin": "http://evil.example"}, 403, "browser_origin"},
		"another port":             {getInfo, "{}", map[string]string{"Origin": "http://127.0.0.1:1"}, 403, "browser_origin"},
		"another scheme":           {getInfo, "{}", map[string]string{"Origin": "https://127.0.0.1:" + port}, 403, "browser_origin"},
		"no origin in particular":  {getInfo, "{}", map[string]string{"Origin": "null"}, 403, "browser_origin"},
		"another site":             {getInfo, "{}", map[string]string{"Origin": "", "Sec-Fetch-Site": "cross-site"}, 403, "browser_origin"},
		"another host of the site": {getInfo, "{}", map[string]string{"Origin": "", "Sec-Fetch-Site": "same-site"}, 403, "browser_origin"},
		"a form that navigates":    {getInfo, "{}", map[string]string{"Origin": "", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403, "browser_origin"},
		"no token":                 {getInfo, "{}", map[string]string{"Authorization": ""}, 401, "no_token"},
		"a token in the address":   {getInfo + "?token=" + b.token, "{}", map[string]string{"Authorization": ""}, 401, "no_token"},
		"a wrong token":            {getInfo, "{}", map[string]string{"Authorization": "Bearer " + strings.Repeat("A", 26)}, 401, "wrong_token"},
		"another scheme of tokens": {getInfo, "{}", map[string]string{"Authorization": "Basic " + b.token}, 401, "no_token"},
		"a code that is none":      {"/token", `{"code": "AAAA"}`, nil, 401, "wrong_code"},
		"a form's type":            {getInfo, "{}", map[string]string{"Content-Type": "text/plain"}, 400, ""},
		"no JSON":                  {getInfo, "{", nil, 400, ""},
		"no field":                 {getInfo, `{"nothing": 1}`, nil, 400, ""},
		"no method":                {"/rpc/DaemonService/Nothing", "{}", nil, 404, ""},
		"no service":               {"/rpc/NoService/GetInfo", "{}", nil, 404, ""},
		"Execute":                  {"/rpc/ToolService/Execute", "{}", nil, 403, ""},
		"RunTool":                  {"/rpc/ToolService/RunTool", "{}", nil, 403, ""},
		"Shutdown":                 {"/rpc/DaemonService/Shutdown", "{}", nil, 403, ""},
		"another page":             {"/rpc/DaemonService/OpenDashboard", "{}", nil, 403, ""},
		"another session":          {"/rpc/SessionService/GetSession", `{"session_id": "none"}`, nil, 404, "unknown_session"},
	} {
		code, answer := b.post(c.path, c.body, c.header)
		if code != c.want || answer.Error.Data.Reason != c.reason {
			t.Errorf("%s: %d %+v, want %d %s", name, code, answer.Error, c.want, c.reason)
		}
	}
	if code, _ := b.post(getInfo, `{"x": "`+strings.Repeat("a", 64<<20)+`"}`, nil); code != http.StatusTooManyRequests {
		t.Errorf("64 MiB are answered with %d", code)
	}
	if code, _ := b.post(getInfo, "{}", nil); code != http.StatusOK {
		t.Errorf("the page is answered with %d afterwards", code)
	}
}

// TestDashboardFiles: the page can be opened from everywhere, is what it was built from, and may load and embed nothing else.
func TestDashboardFiles(t *testing.T) {
	h := serve(t)
	b := h.browser(t)
	for path, c := range map[string]struct {
		header map[string]string
		want   int
	}{
		"/":            {map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Origin": ""}, 200},
		"/app.js":      {nil, 200},
		"/store.js":    {map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": ""}, 403},
		"/../web.go":   {nil, 404},
		"/nothing.js":  {nil, 404},
		"/index.html/": {nil, 404},
	} {
		response, err := b.client.Transport.RoundTrip(b.request(http.MethodGet, path, "", c.header))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		policy := response.Header.Get("Content-Security-Policy")
		if code := response.StatusCode; code != c.want && (c.want != 404 || code/100 != 3) || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %d with the policy %q, want %d", path, response.StatusCode, policy, c.want)
		}
	}
}

// TestDashboardMetrics: metrics are served to a token of their own, with which nothing else can be done.
func TestDashboardMetrics(t *testing.T) {
	h := prepare(t)
	config := h.config()
	config.Metrics = telemetry.NewMetrics()
	h.begin(config)
	b := h.browser(t)
	text, err := os.ReadFile(filepath.Join(h.state, "metrics-tokens"))
	if err != nil {
		t.Fatal(err)
	}
	secret := string(bytes.Fields(text)[len(bytes.Fields(text))-1])
	for token, want := range map[string]int{secret: 200, b.token: 401, "": 401} {
		header := map[string]string{"Authorization": "Bearer " + token}
		if token == "" {
			header["Authorization"] = ""
		}
		response, err := b.client.Transport.RoundTrip(b.request(http.MethodGet, "/metrics", "", header))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != want || bytes.Contains(text, []byte("toold_sessions")) != (want == 200) {
			t.Errorf("with the token %q: %d %s %v, want %d", token, response.StatusCode, text, err, want)
		}
	}
	if code, _ := b.post(getInfo, "{}", map[string]string{"Authorization": "Bearer " + secret}); code != 401 {
		t.Errorf("a token for metrics is answered with %d elsewhere", code)
	}
}

// TestDashboardOnSocketAlone: who comes over TCP can be on another machine, so cannot open a port on this one.
func TestDashboardOnSocketAlone(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	_, err := h.as(address, tokenA).daemon().OpenDashboard(t.Context(), &tooldv1.OpenDashboardRequest{})
	refused(t, err, codes.PermissionDenied, "not_local")
}

// TestDashboardOwnChild: what a call has started is refused before its token is looked at. A sandbox would keep it away before.
func TestDashboardOwnChild(t *testing.T) {
	h := prepare(t).outside()
	h.start()
	b := h.browser(t)
	host := strings.TrimPrefix(b.url, "http://")
	_, port, _ := net.SplitHostPort(host)
	c := h.join("s", free())
	script := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%s; printf 'POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}' >&3; cat <&3`, port, getInfo, host, b.token)
	input, _ := json.Marshal(map[string]string{"command": script})
	c.use("child", "Bash", string(input))
	c.endTurn()
	said := c.results()["child"].GetContent()[0].GetText()
	if !strings.Contains(said, "HTTP/1.1 403") || !strings.Contains(said, "own_child") {
		t.Errorf("the child was told %q", said)
	}
}

// TestDashboardFlood: 10,000 connections that send nothing, or half a header, keep no page from being answered.
func TestDashboardFlood(t *testing.T) {
	h := serve(t)
	b := h.browser(t)
	host := strings.TrimPrefix(b.url, "http://")
	if code, _ := b.post(getInfo, "{}", nil); code != http.StatusOK {
		t.Fatalf("before the flood the page is answered with %d", code)
	}
	const held = 200
	var open []net.Conn
	for n := range 10_000 {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		if n%2 == 0 {
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: ")
		}
		if open = append(open, conn); len(open) == held {
			_ = open[0].Close()
			open = open[1:]
		}
		if n%1000 == 0 {
			if code, _ := b.post(getInfo, "{}", nil); code != http.StatusOK {
				t.Fatalf("after %d connections the page is answered with %d", n, code)
			}
		}
	}
	// The daemon itself has closed all but the few that it lets wait.
	alive := 0
	for _, conn := range open {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); isTimeout(err) {
			alive++
		}
		_ = conn.Close()
	}
	if alive > 64 {
		t.Errorf("%d connections that send nothing are open", alive)
	}
}

func isTimeout(err error) bool {
	timeout, is := err.(net.Error)
	return is && timeout.Timeout()
}

// TestWatchSessions: one stream has the sessions as they stand, then what changes, and the records of one of them.
func TestWatchSessions(t *testing.T) {
	h := serve(t)
	b := h.browser(t)
	c := h.join("s", free())
	c.use("1", "Glob", `{"pattern": "*"}`)
	c.endTurn()
	c.results()
	response, err := b.client.Do(b.request(http.MethodPost, "/rpc/SessionService/WatchSessions", `{"session_id": "s", "after_seq": "0"}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	await := func(what string) {
		t.Helper()
		for lines.Scan() {
			if bytes.Contains(lines.Bytes(), []byte(what)) {
				return
			}
		}
		t.Fatalf("the stream has ended without %s: %v", what, lines.Err())
	}
	await(`"tool_result":{"tool_use_id":"1"`)
	h.join("other", free())
	await(`"session_id":"other"`)
	closeSession := func(name string) {
		if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: name}); err != nil {
			t.Fatal(err)
		}
	}
	closeSession("other")
	await(`"closed_session_id":"other"`)
	closeSession("s")
	await(`"closed_session_id":"s"`)
}

// TestDashboardOwnQuestion: a program beside a session's client opens no page that answers its questions; it cannot answer them itself.
func TestDashboardOwnQuestion(t *testing.T) {
	chain := access.AncestryOf(os.Getpid())
	if len(chain) < 2 || chain.PID() != os.Getpid() {
		t.Fatalf("the ancestry of this process is %v", chain)
	}
	beside := append(access.Ancestry{{PID: 1 << 30, Start: 1}}, chain[1:]...)
	owner := access.Owner{Client: chain[0], Parent: chain[1]}
	if !owner.Holds(beside) || owner.Holds(chain) || owner.Holds(chain[1:]) || owner.Holds(nil) {
		t.Errorf("an owner %v holds what does not descend from its parent, or not what does", owner)
	}
}

// TestDashboardEnds: the end of the daemon waits for no page, and ends its stream with a reason.
func TestDashboardEnds(t *testing.T) {
	h := serve(t)
	b := h.browser(t)
	response, err := b.client.Do(b.request(http.MethodPost, "/rpc/SessionService/WatchSessions", `{"answers": true}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), "all_sent") {
		t.Fatalf("the stream begins with %q %v", lines.Text(), lines.Err())
	}
	h.stop()
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.Contains(last, "shutting_down") {
		t.Errorf("the stream ends with %q %v", last, lines.Err())
	}
}

// TestSurroundings: a page shows the settings in force with their places, without secrets, and the servers.
func TestSurroundings(t *testing.T) {
	h := prepare(t)
	if err := os.WriteFile(h.settings, fmt.Appendf(nil, `{
		"permissions": {"allow": ["Bash(make *)"]},
		"env": {"API_TOKEN": "not-to-be-shown-3141592653"},
		"mcpServers": {"gone": {"command": %q}}
	}`, filepath.Join(h.root, "server")), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.join("s", free())
	now, err := h.sessions().GetSettings(t.Context(), &tooldv1.GetSettingsRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*tooldv1.Setting{}
	for _, setting := range now.GetSettings() {
		found[setting.GetKey()] = setting
	}
	if rule := found["permissions.allow"]; rule.GetValue() != "Bash(make *)" || rule.GetFile() != h.settings || rule.GetLine() != 2 {
		t.Errorf("the rule is %v", rule)
	}
	if strings.Contains(now.String(), "3141592653") || found["env.API_TOKEN"] == nil {
		t.Errorf("the settings are %v", now)
	}
	servers, err := h.sessions().ListServers(t.Context(), &tooldv1.ListServersRequest{SessionId: "s"})
	if err != nil || len(servers.GetServers()) != 1 || servers.GetServers()[0].GetName() != "gone" || servers.GetServers()[0].GetKind() != "mcp" {
		t.Errorf("the servers are %v %v", servers, err)
	}
	_, err = h.sessions().GetSettings(t.Context(), &tooldv1.GetSettingsRequest{SessionId: "none"})
	refused(t, err, codes.NotFound, "unknown_session")
}
