package main

// What a script has left running: it goes on if the script ended well, is listed, and ends with its session.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// leftRunning is the part of a result that names what goes on.
type leftRunning struct {
	TaskID string `json:"task_id"`
	Status string `json:"status"`
	Kept   []struct {
		PID  int    `json:"pid"`
		Name string `json:"name"`
	} `json:"kept"`
	LeftBehind []struct {
		PID int `json:"pid"`
	} `json:"left_behind"`
	OutputPath string `json:"output_path"`
}

func leftBy(t *testing.T, r *tooldv1.ToolResult) (left leftRunning) {
	t.Helper()
	text, err := r.GetStructured().MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &left)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return left
}

// tasks are the background tasks that the session lists.
func (c *talk) tasks() (tasks []*tooldv1.BackgroundTask) {
	c.t.Helper()
	answer, err := c.house.link.Sessions.GetSession(c.t.Context(), &tooldv1.GetSessionRequest{SessionId: c.attached.GetSessionId()})
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.GetSession().GetBackgroundTasks()
}

// awaitNotice waits until there has been a notice with the code, and returns its text.
func (c *talk) awaitNotice(code string) string {
	c.t.Helper()
	if len(c.notices(code)) == 0 {
		c.until("notice " + code)
	}
	return strings.Join(c.notices(code), "")
}

// gone waits until the process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	n, err := -1, error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(hangGuard/time.Millisecond))
	}
	if n != 1 {
		t.Errorf("process %d still runs (%v)", pid, err)
	}
}

const pythonServer = `python3 -u -c '
import http.server
class H(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        print("asked for", self.path)
        self.send_response(200); self.end_headers(); self.wfile.write(b"served")
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", %d), H)
print("listens")
open("ready", "w").close()
s.serve_forever()'`

// TestServerLeftRunning: a server that a script has put into the background is named, listed, reached by the next call, heard of,
// and killed.
func TestServerLeftRunning(t *testing.T) {
	h := ordinary(t)
	for i, how := range []string{"%s & until test -f ready; do sleep 0.01; done", "nohup %s > log 2>&1 & until test -f ready; do sleep 0.01; done; disown", "setsid %s & until test -f ready; do sleep 0.01; done"} {
		t.Run(how, func(t *testing.T) {
			c := h.attach(t, in(h.room(t, fmt.Sprint("server", i), nil), nil))
			r := c.run("1", fmt.Sprintf(how, fmt.Sprintf(pythonServer, 8765+i))+"; echo up")
			left := leftBy(t, r)
			expect(t, textIn(r), outcome(r), "OK")
			if len(left.Kept) != 1 || left.Status != "running" || len(c.tasks()) != 1 || c.tasks()[0].GetTaskId() != left.TaskID {
				t.Fatalf("%+v is left, and listed %v:\n%s", left, c.tasks(), textIn(r))
			}
			holds(t, "the result", textIn(r), "up", left.TaskID, fmt.Sprint(left.Kept[0].PID), "python3 -u", left.OutputPath)
			holds(t, "the next call", textIn(c.run("2", fmt.Sprintf("curl -sS http://127.0.0.1:%d/x; true", 8765+i))), "served")
			if i != 1 {
				c.use("3", "BashOutput", fmt.Sprintf(`{"bash_id": %q, "wait_ms": 30000}`, left.TaskID))
				news := textIn(c.finish("3", yes))
				holds(t, "what it has printed since", news, "is running", "asked for /x")
				if strings.Contains(news, "listens") {
					t.Errorf("the result had that already: %s", news)
				}
			}
			c.use("4", "KillShell", fmt.Sprintf(`{"shell_id": %q}`, left.TaskID))
			expect(t, "killing it", outcome(c.finish("4", yes)), "OK")
			gone(t, left.Kept[0].PID)
			if list := c.tasks(); len(list) != 0 {
				t.Errorf("still listed: %v", list)
			}
		})
	}
}

// TestLeftRunningEnds: what a script leaves running ends with its session, with the daemon, and by itself.
func TestLeftRunningEnds(t *testing.T) {
	h := ordinary(t)
	c := h.attach(t, in(h.room(t, "closed", nil), nil))
	left := leftBy(t, c.run("1", "sleep 1000 & sleep 1001 & echo"))
	if len(left.Kept) != 2 {
		t.Fatalf("%+v", left)
	}
	if _, err := h.link.Sessions.CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: c.attached.GetSessionId()}); err != nil {
		t.Fatal(err)
	}
	gone(t, left.Kept[0].PID)
	gone(t, left.Kept[1].PID)

	c = h.attach(t, in(h.room(t, "cancelled", nil), nil))
	left = leftBy(t, c.run("1", "sleep 1000 & echo"))
	for _, still := range []bool{true, false} {
		answer, err := h.link.Sessions.CancelCall(t.Context(), &tooldv1.CancelCallRequest{SessionId: c.attached.GetSessionId(), ToolUseId: "1"})
		if err != nil || answer.GetCancelled() != still {
			t.Errorf("cancelled: %v, %v; want %t", answer, err, still)
		}
		if still {
			c.awaitNotice("task_ended")
		}
		gone(t, left.Kept[0].PID)
	}

	c = h.attach(t, in(h.room(t, "itself", nil), nil))
	left = leftBy(t, c.run("1", "{ until test -e end; do sleep 0.01; done; echo over; } & echo"))
	r := c.run("2", "touch end")
	expect(t, textIn(r), outcome(r), "OK")
	holds(t, "the notice", c.awaitNotice("task_ended"), left.TaskID, "has ended.")
	c.use("3", "BashOutput", fmt.Sprintf(`{"bash_id": %q}`, left.TaskID))
	holds(t, "its output", textIn(c.finish("3", yes)), "over", "exit code is unknown")
}

// TestLeftRunningByDeadDaemon: nothing survives a daemon that is killed.
func TestLeftRunningByDeadDaemon(t *testing.T) {
	inLasting(t)
	environ, ws := home(t)
	put(t, filepath.Join(filepath.Dir(ws), "config/toold/settings.json"), `{"permissions": {"allow": ["Bash"]}}`)
	const command = `{"command": "nohup sleep 1000 > log 2>&1 & setsid sleep 1001 & echo"}`
	var results []struct {
		Structured leftRunning `json:"structured"`
	}
	var info struct{ Pid int }
	for _, x := range []struct {
		args []string
		into any
	}{{[]string{"call", "Bash", command, "--session", "s", "--json"}, &results}, {[]string{"status", "--json"}, &info}} {
		out, err := self(t, t.Context(), environ, ws, x.args...).Output()
		if err != nil || json.Unmarshal(out, x.into) != nil {
			t.Fatalf("%s: %v\n%s", x.args, err, out)
		}
	}
	if len(results) != 1 || len(results[0].Structured.Kept) != 2 {
		t.Fatalf("%+v", results)
	}
	children := childrenOf(t, info.Pid)
	if err := unix.Kill(info.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, l := range results[0].Structured.Kept {
		gone(t, l.PID)
	}
	for _, pid := range children {
		gone(t, pid)
	}
}

// childrenOf returns the children of a daemon, the watcher among them, which ends last.
func childrenOf(t *testing.T, daemon int) (pids []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", daemon)) // any thread may have started them
	for _, list := range threads {
		more, _ := os.ReadFile(list) // a thread may have ended
		for pid := range strings.FieldsSeq(string(more)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	if err != nil || len(pids) == 0 {
		t.Fatalf("the daemon has no children (%v)", err)
	}
	return pids
}

// TestLeftRunningNotKept: a script that fails, is stopped or runs into its limit leaves nothing, and so does a program that has
// put itself into the background.
func TestLeftRunningNotKept(t *testing.T) {
	h := ordinary(t)
	c := h.attach(t, in(h.room(t, "w", nil), nil))
	for i, x := range []struct{ command, outcome, says string }{
		{"sleep 1000 & false", "ERROR exit_code", "only if the command succeeds"},
		{"sleep 1000 & kill -9 $$", "ERROR exit_code", "only if the command succeeds"},
		{"echo 'sleep 1000 &' > f; sh f", "OK", "& in the command itself"},
		{"sleep 1000 & echo a | grep b", "OK", "Left running"},
		{"echo a & wait", "OK", "a\n"},
	} {
		id := fmt.Sprint(i)
		r := c.run(id, x.command)
		expect(t, x.command+"\n"+textIn(r), outcome(r), x.outcome)
		holds(t, x.command, textIn(r), x.says)
		left := leftBy(t, r)
		for _, l := range left.LeftBehind {
			gone(t, l.PID)
		}
		if kept := x.says == "Left running"; kept != (len(left.Kept) == 1) || !kept && len(left.LeftBehind) == 0 && i < 3 {
			t.Errorf("%s: %+v", x.command, left)
		}
	}
	c.use("limit", "Bash", `{"command": "sleep 1000 & echo $BASHPID; sleep 1002", "timeout": 300}`)
	r := c.finish("limit", yes)
	expect(t, textIn(r), outcome(r), "TIMED_OUT timed_out")
	if list := c.tasks(); len(list) != 1 {
		t.Errorf("listed: %v", list)
	}
}

// TestAtMostEightLeftRunning: of more than 8 processes the youngest are stopped, in one script and in all of a session together.
func TestAtMostEightLeftRunning(t *testing.T) {
	h := ordinary(t)
	c := h.attach(t, in(h.room(t, "w", nil), nil))
	first := leftBy(t, c.run("1", "for i in 1 2 3 4 5; do sleep 1000 & done"))
	r := c.run("2", "for i in 1 2 3 4 5; do sleep 100$i & done; echo made")
	second := leftBy(t, r)
	if len(first.Kept) != 5 || len(second.Kept) != 3 || len(second.LeftBehind) != 2 || second.Kept[2].Name != "sleep 1003" {
		t.Fatalf("%+v\n%+v", first, second)
	}
	holds(t, "the result", textIn(r), "made", second.TaskID, "At most 8", "sleep 1004", "sleep 1005")
	r = c.run("3", "sleep 1000 & echo made")
	third := leftBy(t, r)
	holds(t, "the result", textIn(r), "made", "At most 8")
	for _, l := range append(second.LeftBehind, third.LeftBehind...) {
		gone(t, l.PID)
	}
	c.use("4", "KillShell", fmt.Sprintf(`{"shell_id": %q}`, first.TaskID))
	c.finish("4", yes)
	if fourth := leftBy(t, c.run("5", "for i in 1 2 3 4 5; do sleep 1000 & done")); len(fourth.Kept) != 5 {
		t.Errorf("there was room for 5: %+v", fourth)
	}
}

// TestLeftRunningFloods: what goes on printing does not delay the result, and the state that the script leaves counts.
func TestLeftRunningFloods(t *testing.T) {
	h := ordinary(t)
	c := h.attach(t, in(h.room(t, "w", nil), nil))
	r := c.run("1", "yes & cd sub 2> /dev/null || mkdir sub && cd sub; export KEPT=1; echo done >&2")
	left := leftBy(t, r)
	if len(left.Kept) != 1 {
		t.Fatalf("%+v\n%.300s", left, textIn(r))
	}
	holds(t, "the next call", textIn(c.run("2", `touch f; echo "$KEPT $(basename "$PWD")"`)), "1 sub")
	c.use("3", "KillShell", fmt.Sprintf(`{"shell_id": %q}`, left.TaskID))
	c.finish("3", yes)
	gone(t, left.Kept[0].PID)
}

// TestWholeLines: stdout and stderr that are written at the same time do not tear each other's lines.
func TestWholeLines(t *testing.T) {
	h := ordinary(t)
	c := h.attach(t, in(h.room(t, "w", nil), nil))
	r := c.run("1", "for i in {1..300}; do printf aaa; printf 'bbb\\n'; done & for i in {1..300}; do printf ccc >&2; printf 'ddd\\n' >&2; done; wait; touch f")
	expect(t, textIn(r), outcome(r), "OK")
	lines := strings.Split(strings.TrimSuffix(textIn(r), "\n"), "\n")
	for _, line := range lines {
		if line != "aaabbb" && line != "cccddd" {
			t.Fatalf("torn: %q", line)
		}
	}
	expect(t, "the lines", fmt.Sprint(len(lines)), "600")
}

// The same as a user without rights.
func TestLeftRunningAsNobody(t *testing.T) {
	asNobody(t, "testdata/ordinary", "LeftRunning(|Ends|NotKept|Floods)$")
}

// The same where there are no namespaces, but for servers, which need a network.
func TestLeftRunningWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	t.Run("ends", TestLeftRunningEnds)
	t.Run("dead daemon", TestLeftRunningByDeadDaemon)
	t.Run("not kept", TestLeftRunningNotKept)
	t.Run("at most eight", TestAtMostEightLeftRunning)
	t.Run("floods", TestLeftRunningFloods)
	t.Run("whole lines", TestWholeLines)
}
