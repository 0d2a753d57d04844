package main

// Ports on which background tasks listen, opened for the user's browser: after one question, and until nothing listens there.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/cmd/toold/internal/connect"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// page is a server that answers with a text until a file "end" is there. Then it closes its port and stays.
const page = `exec python3 -u -c '
import http.server, os, time
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"<p>%s</p>")
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("%s", %d), H) # browsers make connections in advance
s.timeout = 0.01
while not os.path.exists("end"): s.handle_request()
s.server_close()
while True: time.sleep(1000)'`

// A portTalk is a talk that waits for each kind of event by itself, in whatever order they come.
type portTalk struct {
	*talk
	read map[string]int // how many events were looked at, by what was waited for
}

// A portNotice is what a notice about a port has for programs.
type portNotice struct {
	Port    int    `json:"port"`
	URL     string `json:"url"`
	State   string `json:"state"`
	Program string `json:"program"`
	TaskID  string `json:"task_id"`
}

func (h *house) ports(t *testing.T, name string, options *tooldv1.Options) *portTalk {
	t.Helper()
	return &portTalk{h.attach(t, in(h.room(t, name, nil), options)), map[string]int{}}
}

// housePorts is a house whose user allows all commands, with what else the user's file says of the network.
func housePorts(t *testing.T, network string) *house {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		skip(t, "install python3")
	}
	inLasting(t)
	h := newHouse(t, map[string]string{"config/toold/settings.json": fmt.Sprintf(`{"permissions": {"allow": ["Bash"]}, "sandbox": {"network": {%s}}}`, network)})
	if info := h.info(t); info.GetSandbox() != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		skip(t, fmt.Sprintf("run this where there is the full tier: here is %v", info.GetSandbox()))
	}
	return h
}

// await waits for the next event of a kind.
func (c *portTalk) await(told string) *tooldv1.ExecuteResponse {
	c.t.Helper()
	for {
		for c.read[told] < len(c.heard) {
			event := c.heard[c.read[told]]
			c.read[told]++
			if strings.HasPrefix(tell(event), told) {
				return event
			}
		}
		c.until("")
	}
}

// notice waits for the next notice with the code.
func (c *portTalk) notice(code string) (p portNotice) {
	c.t.Helper()
	event := c.await("notice " + code)
	text, err := event.GetNotice().GetDetails().MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		c.t.Fatalf("%v in %s", err, text)
	}
	return p
}

// call carries out a call in a turn of its own, and returns the result. A question about the call is answered with yes; one about a
// port is not.
func (c *portTalk) call(id, name, input string) *tooldv1.ToolResult {
	c.t.Helper()
	c.use(id, name, input)
	c.endTurn()
	for {
		event := c.await(id + " ")
		if q := event.GetQuestion(); q != nil {
			c.answer(answer(q, yes))
		}
		if r := event.GetToolResult(); r != nil {
			return r
		}
	}
}

// start starts a server in the background, and returns the task's id.
func (c *portTalk) start(id, command string) string {
	c.t.Helper()
	return leftBy(c.t, c.call(id, "Bash", fmt.Sprintf(`{"command": %q, "run_in_background": true}`, command))).TaskID
}

func (c *portTalk) kill(id, task string) {
	c.t.Helper()
	c.call(id, "KillShell", fmt.Sprintf(`{"shell_id": %q}`, task))
}

// questionsHeard is how many questions about ports there were.
func (c *portTalk) questionsHeard() (n int) {
	for _, event := range c.heard {
		if q := event.GetQuestion(); q != nil && q.GetToolUseId() == "" {
			n++
		}
	}
	return n
}

// got is what a server answers, or the error of connecting to it.
func got(url string) string {
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return fmt.Sprint(string(text), err)
}

// closed checks that nothing listens at the address.
func closed(t *testing.T, url string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to %s: %v, want a refusal", url, err)
	}
}

// TestPortInBrowser: after one question a browser shows the page at the address that the result names, and no longer once the
// server has ended.
func TestPortInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		skip(t, "install chromium")
	}
	h := housePorts(t, "")
	c := h.ports(t, "browser", nil)
	task := c.start("1", fmt.Sprintf(page, "seen", "127.0.0.1", 8765))
	q := c.await(" asks").GetQuestion()
	holds(t, "the question", q.GetTitle()+q.GetInputJson()+q.GetReason(), "8765", "python3", task, "http://127.")
	before := c.call("2", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))
	holds(t, "the result before the answer", textIn(before), "The user is asked")
	c.answer(answer(q, yes))
	opened := c.notice("port_opened")
	text := textIn(c.call("3", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task)))
	_, url, _ := strings.Cut(text, "open http://")
	url, _, _ = strings.Cut("http://"+url, " ")
	if opened.URL != url || opened.TaskID != task || !strings.Contains(opened.Program, "python3") {
		t.Fatalf("the notice has %+v, the result\n%s", opened, text)
	}
	holds(t, "the list of tasks", fmt.Sprint(c.tasks()), url, "PORT_STATE_OPEN")
	holds(t, "toold status", h.toold(t, h.dir, 0, "status"), url, "open")
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	browser := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(h.dir, "profile"), "--dump-dom", url)
	browser.Env = append(h.environ, "NO_PROXY=127.0.0.0/8")
	if dom, err := browser.Output(); err != nil || !strings.Contains(string(dom), "<p>seen</p>") {
		t.Errorf("the browser shows %q, %v", dom, err)
	}
	c.kill("4", task)
	if end := c.notice("port_closed"); end.URL != url {
		t.Errorf("closed is %+v", end)
	}
	closed(t, url)

	c.start("5", fmt.Sprintf(page, "again", "0.0.0.0", 8765))
	if again := c.notice("port_opened"); again.URL != url || c.questionsHeard() != 1 {
		t.Errorf("opened again is %+v, after %d questions", again, c.questionsHeard())
	}
	if text := got(url); !strings.Contains(text, "again") {
		t.Errorf("the second server answers %s", text)
	}
}

// TestPortRefused: after a no the port stays in the sandbox, and is not asked about again, also not after a restart of the daemon.
func TestPortRefused(t *testing.T) {
	h := housePorts(t, "")
	c := h.ports(t, "refused", nil)
	task := c.start("1", fmt.Sprintf(page, "hidden", "127.0.0.1", 8765))
	c.answer(answer(c.await(" asks").GetQuestion(), no))
	c.await(" withdrawn: answered: denied")
	text := textIn(c.call("2", "BashOutput", fmt.Sprintf(`{"bash_id": %q, "wait_ms": 1}`, task)))
	holds(t, "the result", text, "only by commands of this session", "did not allow")
	closed(t, c.tasks()[0].GetPorts()[0].GetUrl())
	c.kill("3", task)
	task = c.start("4", fmt.Sprintf(page, "hidden", "127.0.0.1", 8765)+" # again")
	until := textIn(c.call("5", "Bash", `{"command": "until curl -s http://127.0.0.1:8765; do sleep 0.01; done; true"}`))
	holds(t, "from inside", until, "hidden")
	holds(t, "the second server", textIn(c.call("6", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))), "did not allow")
	if c.questionsHeard() != 1 || len(c.notices("port_opened")) != 0 {
		t.Errorf("there were %d questions; opened: %v", c.questionsHeard(), c.notices("port_opened"))
	}
}

// TestPortSettings: "always" of the user opens a port without a question, that of a workspace or of a session does not, and
// "never" keeps it closed, whoever says so.
func TestPortSettings(t *testing.T) {
	h := housePorts(t, `"forwardPorts": "always"`)
	always := h.ports(t, "always", nil)
	always.start("1", fmt.Sprintf(page, "open", "0.0.0.0", 8765))
	if text := got(always.notice("port_opened").URL); !strings.Contains(text, "open") || always.questionsHeard() != 0 {
		t.Errorf("answered is %s, after %d questions", text, always.questionsHeard())
	}
	root := h.room(t, "never", map[string]string{".toold/settings.json": `{"sandbox": {"network": {"forwardPorts": "never"}}}`})
	never := &portTalk{h.attach(t, in(root, nil)), map[string]int{}}
	task := never.start("1", fmt.Sprintf(page, "closed", "127.0.0.1", 8765))
	never.call("2", "Bash", `{"command": "until curl -s http://127.0.0.1:8765; do sleep 0.01; done; true"}`)
	holds(t, "under never", textIn(never.call("3", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))), `"never"`)
	closed(t, never.tasks()[0].GetPorts()[0].GetUrl())
	if never.questionsHeard() != 0 {
		t.Errorf("there were %d questions under never", never.questionsHeard())
	}
	put(t, h.user(), `{"permissions": {"allow": ["Bash"]}}`)
	if end := always.notice("port_closed"); end.State != "asked" {
		t.Errorf("after the setting was taken back the port is %+v", end)
	}
	root = h.room(t, "loose", map[string]string{".toold/settings.json": `{"sandbox": {"network": {"forwardPorts": "always"}}}`})
	loose := &portTalk{h.attach(t, in(root, trusted())), map[string]int{}}
	loose.start("1", fmt.Sprintf(page, "asked", "127.0.0.1", 8765))
	loose.await(" asks")
	settings := `{"sandbox": {"network": {"forwardPorts": "always"}}}`
	loose = h.ports(t, "session", &tooldv1.Options{SettingsJson: &settings})
	loose.start("1", fmt.Sprintf(page, "asked", "127.0.0.1", 8765))
	loose.await(" asks")
}

// TestPortEnds: a port is closed when its server closes it, is killed, with the session, and with the daemon.
func TestPortEnds(t *testing.T) {
	h := housePorts(t, `"forwardPorts": "always"`)
	c := h.ports(t, "itself", nil)
	c.start("1", fmt.Sprintf(page, "x", "127.0.0.1", 8765))
	url := c.notice("port_opened").URL
	c.call("2", "Bash", `{"command": "touch end"}`)
	if n := c.notice("port_closed"); n.URL != url || len(c.tasks()) != 1 {
		t.Errorf("closed is %+v; tasks: %v", n, c.tasks())
	}
	closed(t, url)

	c = h.ports(t, "killed", nil)
	r := c.call("1", "Bash", fmt.Sprintf(`{"command": %q}`, "("+fmt.Sprintf(page, "x", "127.0.0.1", 8765)+") & until curl -s http://127.0.0.1:8765; do sleep 0.01; done"))
	url = c.notice("port_opened").URL
	pid := leftBy(t, r).Kept[0].PID
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.notice("port_closed")
	closed(t, url)

	c = h.ports(t, "closed", nil)
	c.start("1", fmt.Sprintf(page, "x", "127.0.0.1", 8765))
	url = c.notice("port_opened").URL
	stalled, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	if _, err := h.link.Sessions.CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "closed"}); err != nil {
		t.Fatal(err)
	}
	closed(t, url)
	_, _ = io.Copy(io.Discard, stalled) // which ends with the session
}

// TestPortsOfDeadDaemon: nothing is open any more after the daemon was killed. An answer of before counts after its restart, at the
// same address.
func TestPortsOfDeadDaemon(t *testing.T) {
	inLasting(t)
	environ, ws := home(t)
	h := &house{dir: filepath.Dir(ws)}
	h.environ = append(environ, "HOME="+filepath.Join(h.dir, "home"))
	put(t, h.user(), `{"permissions": {"allow": ["Bash"]}}`)
	root, urls := h.room(t, "s", nil), map[string]bool{}
	for i := range 2 {
		h.toold(t, root, 0, "sessions") // starts a daemon
		var err error
		if h.link, err = connect.Dial(h.socket()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.link.Close)
		c := &portTalk{h.attach(t, &tooldv1.Attach{SessionId: "s", Roots: []string{root}, Capabilities: &tooldv1.Capabilities{Answers: true}}), map[string]int{}}
		c.start(fmt.Sprint("start", i), fmt.Sprintf(page, "x", "127.0.0.1", 8765))
		if i == 0 {
			c.answer(answer(c.await(" asks").GetQuestion(), yes))
		}
		url := c.notice("port_opened").URL
		if text := got(url); !strings.Contains(text, "<p>x</p>") || i == 1 && (c.questionsHeard() != 0 || !urls[url]) {
			t.Errorf("%s answers %s, after %d questions; before: %v", url, text, c.questionsHeard(), urls)
		}
		urls[url] = true
		pid := int(h.info(t).GetPid())
		children := childrenOf(t, pid)
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		_ = unix.Close(fd)
		closed(t, url)
		for _, child := range children {
			gone(t, child)
		}
	}
}

// TestPortTaken: a port that another program has is left to it, and clients are notified.
func TestPortTaken(t *testing.T) {
	h := housePorts(t, `"forwardPorts": "always"`)
	c := h.ports(t, "taken", nil)
	c.start("1", fmt.Sprintf(page, "first", "127.0.0.1", 8765))
	at, _, _ := net.SplitHostPort(strings.TrimPrefix(c.notice("port_opened").URL, "http://"))
	other, err := net.Listen("tcp", net.JoinHostPort(at, "8766"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- http.Serve(other, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the other") }))
	}()
	task := c.start("2", fmt.Sprintf(page, "second", "127.0.0.1", 8766))
	n := c.notice("port_not_opened")
	holds(t, "the result", textIn(c.call("3", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))), "another program on this machine listens on port 8766")
	if text := got(n.URL); n.State != "taken" || text != "the other<nil>" {
		t.Errorf("the notice has %+v, and %s answers %s", n, n.URL, text)
	}
	_ = other.Close()
	<-served
	if text := got(c.notice("port_opened").URL); !strings.Contains(text, "second") {
		t.Errorf("once the port is free, it answers %s", text)
	}
}

// TestPortsApart: two sessions serve the same port, each at its own address. Neither reaches the other's, nor a service of the
// machine.
func TestPortsApart(t *testing.T) {
	h := housePorts(t, `"forwardPorts": "always", "allowedDomains": ["example.com"]`)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	var urls []string
	var talks []*portTalk
	for _, name := range []string{"one", "two"} {
		c := h.ports(t, name, nil)
		c.start("1", fmt.Sprintf(page, name, "127.0.0.1", 8765))
		urls, talks = append(urls, c.notice("port_opened").URL), append(talks, c)
		if text := got(urls[len(urls)-1]); !strings.Contains(text, name) {
			t.Errorf("session %s answers %s", name, text)
		}
	}
	other, own := strings.TrimPrefix(urls[1], "http://"), "http://"+service.Addr().String()
	for i, command := range []string{
		"curl -sS -m 5 --noproxy '*' " + urls[1], "curl -sS -m 5 " + urls[1], "curl -sS -m 5 -x http://127.0.0.1:3128 " + urls[1],
		"curl -sS -m 5 --noproxy '*' " + own, "curl -sS -m 5 " + own,
		fmt.Sprintf("python3 -c 'import socket; s = socket.create_connection(tuple(%q.split(%q))); s.sendall(b%q); print(s.recv(1000))'", other, ":", "GET / HTTP/1.0\r\n\r\n"),
	} {
		text := textIn(talks[0].call(fmt.Sprint("try", i), "Bash", fmt.Sprintf(`{"command": %q}`, command+"; true")))
		if strings.Contains(text, "<p>two</p>") {
			t.Errorf("%s reaches the other session:\n%s", command, text)
		}
	}
	_ = service.(*net.TCPListener).SetDeadline(time.Unix(1, 0))
	if c, err := service.Accept(); err == nil {
		t.Errorf("a service of the machine was reached from %s", c.RemoteAddr())
	}
}

// TestForegroundPorts: what a call in the foreground listens on asks nothing, and a task with many ports asks about a few at a time.
func TestForegroundPorts(t *testing.T) {
	h := housePorts(t, "")
	root := h.room(t, "many", nil)
	c := &portTalk{h.attach(t, in(root, nil)), map[string]int{}}
	held := filepath.Join(root, "held")
	if err := errors.Join(unix.Mkfifo(filepath.Join(root, "go"), 0o600), unix.Mkfifo(held, 0o600)); err != nil {
		t.Fatal(err)
	}
	const listeners = `import socket, sys, time
all = [socket.create_server(("127.0.0.1", 0)) for _ in range(%d)]
print("listening", flush=True)
%s`
	c.start("1", "read -r _ <go; exec python3 -c '"+fmt.Sprintf(listeners, 1, "time.sleep(1000)")+"'")
	c.use("2", "Bash", fmt.Sprintf(`{"command": %q}`, "python3 -c '"+fmt.Sprintf(listeners, 100, `open("go", "w").close(); open("held").read()`)+"'"))
	c.endTurn()
	c.answer(answer(c.await(" asks").GetQuestion(), no)) // about the task, which began to listen later
	if err := os.WriteFile(held, []byte("on"), 0); err != nil {
		t.Fatal(err)
	}
	holds(t, "the foreground", textIn(c.await("2 OK").GetToolResult()), "listening")
	if c.questionsHeard() != 1 {
		t.Errorf("%d questions, of which one is about the task", c.questionsHeard())
	}
	c.start("3", "exec python3 -c '"+fmt.Sprintf(listeners, 6, "time.sleep(1000)")+"'")
	answers := map[string]bool{}
	for range 6 {
		q := c.await(" asks").GetQuestion()
		if open := c.questionsHeard() - 1 - len(answers); open > 3 {
			t.Errorf("%d questions are open", open)
		}
		c.answer(answer(q, yes))
		if p := c.notice("port_opened"); answers[p.URL] {
			t.Errorf("opened twice: %+v", p)
		} else {
			answers[p.URL] = true
		}
	}
}

// TestPortAskedLater: if no client can answer, the result names the setting; one that attaches later is asked.
func TestPortAskedLater(t *testing.T) {
	h := housePorts(t, "")
	root := h.room(t, "later", nil)
	c := &portTalk{h.attach(t, &tooldv1.Attach{Roots: []string{root}}), map[string]int{}}
	task := c.start("1", fmt.Sprintf(page, "late", "127.0.0.1", 8765))
	if n := c.notice("port_not_opened"); n.State != "unanswered" {
		t.Errorf("the notice has %+v", n)
	}
	holds(t, "the result", textIn(c.call("2", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, task))), "forwardPorts", "always")
	beside := &portTalk{h.watch(t, "later"), map[string]int{}}
	q := beside.await(" asks").GetQuestion()
	if _, err := h.link.Sessions.Answer(t.Context(), &tooldv1.AnswerRequest{SessionId: "later", Answer: answer(q, yes)}); err != nil {
		t.Fatal(err)
	}
	if text := got(c.notice("port_opened").URL); !strings.Contains(text, "late") {
		t.Errorf("answered is %s", text)
	}
}
