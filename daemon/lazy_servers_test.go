// MCP servers that are started when a call first needs them, and stopped when none does, from the client's side.

package daemon_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A fleet is a daemon whose settings name several MCP servers.
type fleet struct {
	*house
	dirs   map[string]string // of the servers, by name
	others map[string]any    // entries of other servers, by name
	told   int               // how many changes of tools the first session was told of, in the daemon before
}

// newFleet starts the daemon, and lets a first session learn the tools of the servers. Then the daemon is started again.
// The settings have more.
func newFleet(t *testing.T, servers int, more string) *fleet {
	t.Helper()
	f := &fleet{house: prepare(t), dirs: map[string]string{}}
	for n := range servers {
		f.dirs[fmt.Sprint("kit", n)] = t.TempDir()
	}
	f.name(more)
	f.start()
	f.join("first", nil)
	for f.offers("first", 0); slices.Contains(f.states("first"), "starting"); f.offers("first", 0) { // which waits for some time
	}
	if states := f.states("first"); len(states) != servers || slices.Contains(states, "not_started") {
		t.Fatalf("the servers are %q", states)
	}
	f.told = len(f.changes("first"))
	f.stop()
	f.start()
	return f
}

// name writes settings that name the servers, with more.
func (f *fleet) name(more string) {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	entries := maps.Clone(f.others)
	if entries == nil {
		entries = map[string]any{}
	}
	for name, dir := range f.dirs {
		entries[name] = map[string]any{"command": self, "env": map[string]string{mcpFillers: "1", mcpDir: dir, "GORACE": "atexit_sleep_ms=0"}}
	}
	text, err := json.Marshal(entries)
	if err != nil {
		f.t.Fatal(err)
	}
	f.configure(fmt.Sprintf(`{"mcpServers": %s%s}`, text, more))
}

// states are those of a session's servers.
func (h *house) states(session string) (states []string) {
	h.t.Helper()
	list, err := h.sessions().ListServers(h.t.Context(), &tooldv1.ListServersRequest{SessionId: session})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, server := range list.GetServers() {
		states = append(states, server.GetState())
	}
	return states
}

// counts are the servers of all sessions, as GetInfo has them.
func (h *house) counts() string {
	h.t.Helper()
	info, err := h.daemon().GetInfo(h.t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for _, of := range info.GetServers() {
		all = append(all, fmt.Sprintf("%d %s %s", of.GetCount(), of.GetKind(), of.GetState()))
	}
	return strings.Join(all, ", ")
}

// started is how often each server was started, in the order of their names.
func (f *fleet) started() string {
	f.t.Helper()
	var all []string
	for n := range len(f.dirs) {
		text, err := os.ReadFile(filepath.Join(f.dirs[fmt.Sprint("kit", n)], "starts"))
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(len(text)))
	}
	return strings.Join(all, " ")
}

// has reports whether the session's list has the tool.
func (h *house) has(session, tool string) bool {
	h.t.Helper()
	return slices.ContainsFunc(h.offers(session, 0).GetTools(), func(t *tooldv1.Tool) bool { return t.GetName() == tool })
}

// changes are the notices of changed tools that a session's records have.
func (h *house) changes(session string) (all []string) {
	h.t.Helper()
	for _, r := range h.records(session) {
		if n := r.GetNotice(); n.GetCode() == "tools_changed" {
			all = append(all, n.GetMessage())
		}
	}
	return all
}

// TestIdleDaemon: with five servers in the settings, sessions that know their tools cost no process, until a call starts one.
func TestIdleDaemon(t *testing.T) {
	f := newFleet(t, 5, "")
	c := f.join("s", free())
	for n := range 5 {
		if tool := fmt.Sprintf("mcp__kit%d__tool00", n); !f.has("s", tool) {
			t.Errorf("%s is not listed", tool)
		}
	}
	f.join("other", nil)
	f.offers("other", 0)
	if got := f.started(); got != "1 1 1 1 1" {
		t.Errorf("the servers were started %s times", got)
	}
	if states := f.states("s"); !slices.Equal(slices.Compact(states), []string{"not_started"}) {
		t.Errorf("the servers are %q", states)
	}
	if got := f.counts(); got != "10 mcp not_started" {
		t.Errorf("the daemon counts %s", got)
	}
	c.use("one", "mcp__kit3__look", `{}`)
	c.until("one OK")
	if got, states := f.started(), f.states("s"); got != "1 1 1 2 1" || states[3] != "ready" {
		t.Errorf("after a call the servers are %q, started %s times", states, got)
	}
	if got := f.counts(); got != "9 mcp not_started, 1 mcp ready" {
		t.Errorf("after a call the daemon counts %s", got)
	}
	c.use("two", "mcp__kit3__look", `{}`)
	c.until("two OK")
	if changes := f.changes("s"); len(changes) > 0 || f.started() != "1 1 1 2 1" {
		t.Errorf("the clients were told %q, of servers started %s times", changes, f.started())
	}
}

// TestNoFalseChange: clients are not told of other tools when the lists of servers are what they were, also where settings are
// read again while the first client attaches, and the client has tools of its own.
func TestNoFalseChange(t *testing.T) {
	f := newFleet(t, 2, "")
	f.name(`, "diagnosticsAfterEdit": false`) // read while the session of the daemon before has no client yet
	if _, err := f.sessions().GetSettings(t.Context(), &tooldv1.GetSettingsRequest{SessionId: "first"}); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for n := range 20 {
			f.name(fmt.Sprintf(`, "limits": {"idle_exit": %d}`, n+1000))
			if _, err := f.sessions().GetSettings(t.Context(), &tooldv1.GetSettingsRequest{SessionId: "first"}); err != nil {
				t.Error(err)
			}
		}
	})
	c := f.converse()
	c.attach(&tooldv1.Attach{SessionId: "first", Roots: []string{f.root}, Options: free(), ClientTools: []*tooldv1.ClientTool{askUser()}})
	reading.Wait()
	for n, tool := range []string{"mcp__kit0__look", "mcp__kit1__look", "mcp__kit0__look"} {
		if !f.has("first", tool) || !f.has("first", "AskUser") {
			t.Errorf("%s or the client's own is not listed", tool)
		}
		c.use(fmt.Sprint(n), tool, `{}`)
		c.until(fmt.Sprint(n, " OK"))
	}
	if changes := f.changes("first")[f.told:]; len(changes) > 0 {
		t.Errorf("the clients were told %q", changes)
	}
}

// TestChangedList: clients are told when a server that is started lists other tools than it did before.
func TestChangedList(t *testing.T) {
	f := newFleet(t, 1, "")
	if err := os.WriteFile(filepath.Join(f.dirs["kit0"], "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := f.join("s", free())
	if f.has("s", "mcp__kit0__tool01") {
		t.Error("a tool is known that was never listed")
	}
	c.use("a", "mcp__kit0__look", `{}`)
	c.until("notice tools_changed")
	if changes := f.changes("s"); len(changes) != 1 || !strings.Contains(changes[0], "added: mcp__kit0__tool01") {
		t.Errorf("the clients were told %q", changes)
	}
	f.join("late", nil)
	if !f.has("late", "mcp__kit0__tool01") || f.started() != "2" {
		t.Errorf("the next session does not know it, with the server started %s times", f.started())
	}
}

// TestSlowServer: nothing waits for a server that does not answer, or for a list that is still being read.
func TestSlowServer(t *testing.T) {
	f := newFleet(t, 1, "")
	lists, err := filepath.Glob(filepath.Join(f.state, "mcp", "*"))
	if err != nil || len(lists) != 1 {
		t.Fatalf("the lists are %q, %v", lists, err)
	}
	whole, err := os.ReadFile(lists[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lists[0]); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(lists[0], 0o600); err != nil { // reading it blocks until something is written
		t.Fatal(err)
	}
	var once sync.Once
	write := func(list []byte) {
		once.Do(func() {
			pipe, err := os.OpenFile(lists[0], os.O_RDWR, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer pipe.Close()
			if _, err := pipe.Write(list); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { write(nil) }) // the daemon ends when the list was read
	path := f.file("a.txt", "one\n")
	other := f.converse() // in another directory, where the server is not known
	other.attach(&tooldv1.Attach{SessionId: "other", Roots: []string{t.TempDir()}, Options: free()})
	f.awaitTool("other", "mcp__kit0__look")
	other.use("look", "mcp__kit0__look", `{}`)
	other.until("look OK")
	f.others = map[string]any{"mute": map[string]any{"command": "sleep", "args": []string{"3600"}}}
	f.name("")
	c := f.join("s", free())
	for _, c := range []*conversation{c, other} {
		c.use("read", "Read", `{"file_path":"`+path+`"}`)
		c.until("read OK")
	}
	if states := f.states("s"); len(states) != 2 || states[0] != "not_started" || states[1] == "ready" {
		t.Errorf("the servers are %q", states)
	}
	f.counts()
	f.others = nil
	f.name(`, "diagnosticsAfterEdit": false`)
	c.use("again", "Read", `{"file_path":"`+path+`"}`)
	c.until("again OK")
	write(whole)
	if !f.has("s", "mcp__kit0__look") || f.started() != "2" {
		t.Errorf("the tools are not listed, with the server started %s times", f.started())
	}
	if changes := f.changes("s"); len(changes) > 0 {
		t.Errorf("the clients were told %q", changes)
	}
}

// TestIdleServersRest: a session whose servers were stopped, since nothing used them, rests. Its next call starts one.
func TestIdleServersRest(t *testing.T) {
	f := newFleet(t, 2, `, "limits": {"mcp_idle": "1ms"}`)
	f.stop()
	f.rest = time.Millisecond
	f.start()
	for n := range 2 {
		c := f.join("first", free())
		c.use(fmt.Sprint(n), "mcp__kit1__look", `{}`)
		c.until(fmt.Sprint(n, " OK"))
		if got, want := f.started(), fmt.Sprint("1 ", n+2); got != want {
			t.Errorf("the servers were started %s times, want %s", got, want)
		}
		c.cancel()
		f.resting(1)
	}
	if changes := f.changes("first")[f.told:]; len(changes) > 0 {
		t.Errorf("the clients were told %q", changes)
	}
}
