//go:build !no_lsp && !no_mcp

// MCP servers and language servers that are killed, at every moment: what becomes of the calls, that the next one works, and
// that nothing of a server outlives its daemon. Processes are found by what the settings of each test's daemon put into
// their environment.

package daemon_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/lsp"
	"github.com/toold/toold/tools/tooltest"
)

// callLimit is the time limit of each call of these tests: LSP has it, and so has an entry that says nothing else.
const callLimit = time.Minute

// margin is what a call's result may take beyond its limit to be told.
const margin = 10 * time.Second

// A process is one of this machine's.
type process struct {
	pid           int
	environ, line string // NUL behind each variable and each argument
}

// processes are all whose environment or command line has the text.
func processes(t testing.TB, text string) (found []process) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		environ, _ := os.ReadFile(file) // it may have ended
		line, _ := os.ReadFile(dir + "/cmdline")
		if !bytes.Contains(environ, []byte(text)) && !bytes.Contains(line, []byte(text)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, process{pid, string(environ), string(line)})
	}
	return found
}

// mark is what the processes of the house's servers have in their environment.
func (h *house) mark() string { return servedFor + "=" + h.socket + "\x00" }

// servers are the processes of that program that serve the house now.
func (h *house) servers(program string) []process {
	h.t.Helper()
	return slices.DeleteFunc(processes(h.t, h.mark()), func(p process) bool { return !strings.HasPrefix(p.line, program+"\x00") })
}

// killServers kills them as they are now, and gives how many.
func (h *house) killServers(program string) int {
	h.t.Helper()
	found := h.servers(program)
	for _, p := range found {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended by itself
	}
	return len(found)
}

// generation is what all processes of the house's daemon have in their environment, whether they serve or only hold a
// server's sandbox.
func (h *house) generation() string {
	h.t.Helper()
	for _, p := range processes(h.t, h.mark()) {
		for variable := range strings.SplitSeq(p.environ, "\x00") {
			if marker, is := strings.CutPrefix(variable, sandbox.MarkerName+"="); is {
				parts := strings.Split(marker, ".")
				return strings.Join(parts[:2], ".") + "."
			}
		}
	}
	h.t.Fatal("no server runs")
	return ""
}

// remains are the processes of that generation, and of servers, that are there.
func (h *house) remains(generation string) (lines []string) {
	h.t.Helper()
	for _, text := range []string{h.mark(), generation} {
		for _, p := range processes(h.t, text) {
			lines = append(lines, fmt.Sprint(p.pid, " ", strings.ReplaceAll(p.line, "\x00", " ")))
		}
	}
	return lines
}

// leavesNothing ends the daemon and looks for what is left.
func (h *house) leavesNothing() {
	h.t.Helper()
	generation := h.generation()
	h.stop()
	if left := h.remains(generation); left != nil {
		h.t.Errorf("processes have outlived the daemon: %q", left)
	}
}

// within returns how a call ends, which is to be before its limit and one of the ways.
func (c *conversation) within(id string, ways ...string) string {
	c.t.Helper()
	late := time.AfterFunc(callLimit+margin, c.cancel)
	defer late.Stop()
	for {
		event := c.until("")
		if result := event.GetToolResult(); result.GetToolUseId() == id {
			if told := strings.TrimPrefix(tell(event), id+" "); slices.Contains(ways, told) {
				return told
			}
			c.t.Fatalf("%s, want one of %q: %v", tell(event), ways, result.GetContent())
		}
	}
}

// hears waits for what is to be told, for as long as a call may take.
func (c *conversation) hears(told string) {
	c.t.Helper()
	late := time.AfterFunc(callLimit, c.cancel)
	defer late.Stop()
	c.until(told)
}

// waits returns when the call in which a server waits has reached it.
func (c *conversation) waits() {
	c.t.Helper()
	late := time.AfterFunc(callLimit, c.cancel)
	defer late.Stop()
	for c.until("").GetProgress().GetStep().GetMessage() != "waiting" {
	}
}

// tries sends a call of a tool and gives how it ends.
func (c *conversation) tries(id, name, input string, ways ...string) string {
	c.t.Helper()
	c.use(id, name, input)
	return c.within(id, ways...)
}

// reaches calls a tool until that works; before, its server may still have to start, and calls may end in these ways.
func (c *conversation) reaches(name, input string, ways ...string) {
	c.t.Helper()
	ways = append(ways, "OK", "INVALID unknown_tool")
	for told := ""; told != "OK"; {
		from := len(c.events)
		told = c.tries(fmt.Sprint("reaching ", len(c.events)), name, input, ways...)
		if told == "INVALID unknown_tool" && !slices.Contains(story(c.events[from:]), "notice tools_changed") {
			c.hears("notice tools_changed")
		}
	}
}

// program puts the test's own program into the root, where a sandbox shows it, and gives its path.
func (h *house) program() string {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(h.root, "kit")
	if os.Link(self, path) == nil {
		return path
	}
	text, err := os.ReadFile(self) // it is on another file system
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o755); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// mortal is a daemon with an MCP server that can be found, in a sandbox or not.
func mortal(t *testing.T, confined string) (h *house, program string) {
	t.Helper()
	h = prepare(t, lsp.Tool())
	program = h.program()
	h.configure(fmt.Sprintf(`{"mcpServers": {"kit": {"command": %q, "sandbox": %s, "env": {%q: "0", %q: %q, "GORACE": "atexit_sleep_ms=0"}}}}`,
		program, confined, mcpFillers, servedFor, h.socket))
	return h, program
}

var confinements = []string{"false", "true"}

// TestServerKilled: of an MCP server that is killed in the middle of a call, that call is told; one that comes after is
// carried out by the next server.
func TestServerKilled(t *testing.T) {
	for _, confined := range confinements {
		t.Run("sandbox "+confined, func(t *testing.T) {
			t.Parallel()
			h, program := mortal(t, confined)
			h.start()
			c := h.join("s", free())
			h.offers("s", 0)
			c.use("in the middle", "mcp__kit__wait", `{}`)
			c.waits()
			h.killServers(program)
			c.within("in the middle", "ERROR server_gone")
			c.tries("next", "mcp__kit__look", `{}`, "OK")
			if n := h.killServers(program); n != 1 {
				t.Errorf("%d servers ran", n)
			}
			c.hears("notice mcp_server_gone")
			c.tries("after", "mcp__kit__look", `{}`, "OK")
			idle := time.NewTimer(200 * time.Millisecond) // a server that was just heard of is taken to be there
			<-idle.C
			h.killServers(program)
			c.tries("at once", "mcp__kit__look", `{}`, "OK")
			h.leavesNothing()
		})
	}
}

// TestServerKilledWhileItStarts: a session whose server does not get through its start has it when it does.
func TestServerKilledWhileItStarts(t *testing.T) {
	for _, confined := range confinements {
		t.Run("sandbox "+confined, func(t *testing.T) {
			t.Parallel()
			h, program := mortal(t, confined)
			h.start()
			c := h.join("s", free())
			var killer sync.WaitGroup
			killer.Go(func() {
				for h.killServers(program) == 0 && t.Context().Err() == nil {
				}
			})
			h.offers("s", 0)
			killer.Wait()
			c.reaches("mcp__kit__look", `{}`, "ERROR server_gone")
			h.leavesNothing()
		})
	}
}

// moments returns the moments at which servers are killed: the same in each run.
func moments() *rand.Rand { return rand.New(rand.NewPCG(7, 1)) }

// TestServerKilledAtAnyMoment: each session has a server of its own, that is killed as it starts and then a few times more.
func TestServerKilledAtAnyMoment(t *testing.T) {
	const kills = 3
	sessions := tooltest.Times(2, 4)
	for _, confined := range confinements {
		t.Run("sandbox "+confined, func(t *testing.T) {
			t.Parallel()
			h, program := mortal(t, confined)
			h.start()
			random := moments()
			for n := range sessions {
				c := h.join(fmt.Sprint("s", n), free())
				for range kills {
					moment := time.NewTimer(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
					var killer sync.WaitGroup
					killer.Go(func() {
						<-moment.C
						h.killServers(program)
					})
					c.reaches("mcp__kit__look", `{}`, "ERROR server_gone", "ERROR server_unavailable")
					killer.Wait()
					c.reaches("mcp__kit__look", `{}`, "ERROR server_gone", "ERROR server_unavailable")
				}
				c.tries("last", "mcp__kit__look", `{}`, "OK")
			}
			h.leavesNothing()
		})
	}
}

// TestGoplsKilled: an edit whose language server is killed is done, and told nothing; the next question has another server.
func TestGoplsKilled(t *testing.T) {
	t.Parallel()
	h := module(t)
	c := h.codes()
	for round := range 3 {
		if n := h.killServers(h.server); n == 0 {
			t.Fatalf("round %d: gopls does not run", round)
		}
		id := fmt.Sprint("edit ", round)
		c.tries(id, "Edit", fmt.Sprintf(`{"file_path": %q, "old_string": "%s", "new_string": "%s"}`, h.file, sound, mistyped), "OK")
		if content := resultsOf(c.events)[id].GetContent(); strings.Contains(fmt.Sprint(content), "diagnostics") {
			t.Errorf("an edit without a server is told %v", content)
		}
		if text := c.diagnostics(); !strings.Contains(text, h.file+mistake) {
			t.Errorf("the next server says %q", text)
		}
		if told := c.edit(mistyped, sound); told != "" {
			t.Errorf("an edit that fixes is told %q", told)
		}
	}
	if told := c.breaks(); !strings.HasPrefix(told, h.file+mistake) {
		t.Errorf("in the end an edit is told %q", told)
	}
	h.leavesNothing()
}

// TestGoplsKilledAtAnyMoment: in the middle of a question or of an edit, and while it starts.
func TestGoplsKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	h := module(t)
	c := h.codes()
	random := moments()
	before, after := sound, mistyped
	for round := range 3 {
		moment := time.NewTimer(time.Duration(random.Int64N(int64(800 * time.Millisecond))))
		var killer sync.WaitGroup
		killer.Go(func() {
			<-moment.C
			h.killServers(h.server)
		})
		question := fmt.Sprintf(`{"operation": "diagnostics", "file_path": %q}`, h.file)
		c.tries(fmt.Sprint("first ", round), "LSP", question, "OK", "ERROR language_server_failed")
		c.tries(fmt.Sprint("edit ", round), "Edit", fmt.Sprintf(`{"file_path": %q, "old_string": "%s", "new_string": "%s"}`, h.file, before, after), "OK")
		before, after = after, before
		c.tries(fmt.Sprint("second ", round), "LSP", question, "OK", "ERROR language_server_failed")
		killer.Wait()
		c.tries(fmt.Sprint("last ", round), "LSP", question, "OK")
	}
	h.leavesNothing()
}

// TestDaemonKilledWithServers: kill -9 of the daemon leaves no server, whatever its servers are doing.
func TestDaemonKilledWithServers(t *testing.T) {
	for _, confined := range confinements {
		t.Run("sandbox "+confined, func(t *testing.T) {
			t.Parallel()
			h := module(t)
			h.say(fmt.Sprintf(`, "mcpServers": {"kit": {"command": %q, "sandbox": %s, "env": {%q: "0", %q: %q}}}`, h.program(), confined, mcpFillers, servedFor, h.socket))
			kill := h.spawn()
			c := &coder{conversation: h.join("s", free()), h: h}
			c.diagnostics()
			h.offers("s", 0)
			c.use("runs", "mcp__kit__wait", `{}`)
			c.waits()
			generation := h.generation()
			kill()
			h.await(func() bool { return h.remains(generation) == nil })

			h.start()
			want(t, outcomes(resultsOf(h.records("s")))["runs"], "INTERRUPTED interrupted")
			next := &coder{conversation: h.join("s", free()), h: h, calls: c.calls}
			next.diagnostics()
			next.reaches("mcp__kit__look", `{}`)
			h.leavesNothing()
		})
	}
}

// await looks until it is so.
func (h *house) await(so func() bool) {
	h.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for late := time.After(callLimit); !so(); {
		select {
		case <-look.C:
		case <-late:
			h.t.Fatal("processes have outlived the daemon")
		}
	}
}
