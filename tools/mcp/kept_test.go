//go:build !no_mcp

// Servers whose tools are known from before: they are started by the first call, not by a session.

package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/tooltest"
)

// A past is sessions one after the other, which keep lists in the same directory.
type past struct {
	t     *testing.T
	fleet *mcp.Fleet
	room  *tooltest.Room
}

func newPast(t *testing.T) *past {
	return &past{t, &mcp.Fleet{Lists: filepath.Join(t.TempDir(), "lists")}, tooltest.NewRoom(t)}
}

// session is the next session.
func (p *past) session() *rig { return newRigOf(p.t, p.fleet, p.room) }

// learn lets a session learn the tools of a server, which is started for that.
func (p *past) learn(mode string) (mcp.Entry, string) {
	p.t.Helper()
	r := p.session()
	entry, dir := r.fake("fake", mode)
	r.serve(entry)
	if s := r.status("fake"); s.State != mcp.Ready {
		p.t.Fatalf("a server that was never seen is %+v", s)
	}
	r.set.Close()
	return entry, dir
}

// list returns the file of the only kept list.
func (p *past) list() string {
	p.t.Helper()
	all, err := filepath.Glob(filepath.Join(p.fleet.Lists, "*"))
	if err != nil || len(all) != 1 {
		p.t.Fatalf("the lists are %q, %v", all, err)
	}
	return all[0]
}

// starts returns how often a fake server was started.
func starts(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "starts"))
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestFirstCallStarts: a session knows the tools of a server that another one has used, and its first calls start it, once.
func TestFirstCallStarts(t *testing.T) {
	p := newPast(t)
	entry, dir := p.learn("good")
	r := p.session()
	r.serve(entry)
	s := r.status("fake")
	if s.State != mcp.NotStarted || s.Tools != 15 || s.Server != "fake 1" || len(r.set.Tools()) != 15 || !r.set.Resting() || starts(t, dir) != 1 {
		t.Fatalf("before the first call it is %+v, started %d times", s, starts(t, dir))
	}
	before := r.tool("mcp__fake__echo")
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
				t.Errorf("a call gave %q", got)
			}
		})
	}
	calls.Wait()
	if s := r.status("fake"); s.State != mcp.Ready || starts(t, dir) != 2 || r.set.Resting() {
		t.Errorf("after the first calls it is %+v, started %d times", s, starts(t, dir))
	}
	if r.tool("mcp__fake__echo") != before {
		t.Error("the same list has made other tools")
	}
}

// TestListDiffers: what a server that is started lists takes the place of what was known.
func TestListDiffers(t *testing.T) {
	p := newPast(t)
	entry, dir := p.learn("good")
	if err := os.WriteFile(filepath.Join(dir, "grown"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := p.session()
	r.serve(entry)
	if n := len(r.set.Tools()); n != 15 {
		t.Fatalf("%d tools are known", n)
	}
	r.text("mcp__fake__echo", `{"text":"on"}`)
	r.tool("mcp__fake__grown")
	r.set.Close()
	r = p.session()
	r.serve(entry)
	r.tool("mcp__fake__grown")
	if starts(t, dir) != 2 {
		t.Errorf("it was started %d times", starts(t, dir))
	}
}

// TestOtherEntry: a list is known for the entry as it was written, in the directory in which the server runs.
func TestOtherEntry(t *testing.T) {
	p := newPast(t)
	entry, dir := p.learn("good")
	for n, change := range []func(*mcp.Entry){
		func(e *mcp.Entry) { e.Digest = "other" },
		func(e *mcp.Entry) { e.Args = []string{"-x"} },
		func(e *mcp.Entry) { e.Env = append(e.Env, "MORE=1") },
		func(e *mcp.Entry) { e.Confined = true },
	} {
		other := entry
		change(&other)
		r := p.session()
		r.serve(other)
		if starts(t, dir) != n+2 {
			t.Errorf("change %d: it was started %d times", n, starts(t, dir))
		}
		r.set.Close()
	}
	p.room = tooltest.NewRoom(t)
	p.session().serve(entry)
	if starts(t, dir) != 6 {
		t.Errorf("in another directory: it was started %d times", starts(t, dir))
	}
	entry.Env = append(entry.Env, "TOKEN=very-secret")
	p.session().serve(entry)
	for _, path := range glob(t, p.fleet.Lists) {
		if text, err := os.ReadFile(path); err != nil || strings.Contains(path+string(text), "very-secret") {
			t.Errorf("%s has the value of a variable, %v", path, err)
		}
	}
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFirstStartFails: the call that would start a server is told why it does not start, and the next one tries again.
func TestFirstStartFails(t *testing.T) {
	p := newPast(t)
	r := p.session()
	entry, dir := r.fake("fake", "sick")
	healed := filepath.Join(dir, "healed")
	heal := func() {
		if err := os.WriteFile(healed, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	heal()
	r.serve(entry)
	r.set.Close()
	if err := os.Remove(healed); err != nil {
		t.Fatal(err)
	}
	r = p.session()
	r.serve(entry)
	_, err := r.call(t.Context(), "mcp__fake__echo", `{"text":"on"}`, nil)
	if text := err.Error(); code(err) != "server_unavailable" || !strings.Contains(text, "MCP server fake") ||
		!strings.Contains(text, "exit code 3") || !strings.Contains(text, "the fake server says hello") {
		t.Errorf("the first call gave %v", err)
	}
	heal()
	if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("the next call gave %q", got)
	}
}

// TestDamagedList: a kept list that is not as it was written is not used. The server is started, and its list is kept again.
func TestDamagedList(t *testing.T) {
	p := newPast(t)
	entry, dir := p.learn("good")
	whole, err := os.ReadFile(p.list())
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte{}, whole...)
	flipped[len(flipped)/2] ^= 1
	started := 1
	for name, content := range map[string][]byte{"empty": nil, "cut": whole[:len(whole)-1], "changed": flipped, "long": append(whole, make([]byte, 8<<20)...)} {
		if err := os.WriteFile(p.list(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		r := p.session()
		r.serve(entry)
		if started++; starts(t, dir) != started || len(r.set.Tools()) != 15 {
			t.Errorf("%s: it was started %d times, and has %d tools", name, starts(t, dir), len(r.set.Tools()))
		}
		if told := r.told("mcp_list_not_kept"); len(told) != 1 || !strings.Contains(told[0], "damaged") {
			t.Errorf("%s: told was %q", name, told)
		}
		r.set.Close()
		if again, err := os.ReadFile(p.list()); err != nil || string(again) != string(whole) {
			t.Errorf("%s: %d bytes are kept in place of %d, %v", name, len(again), len(whole), err)
		}
	}
}

// TestListNotWritten: a server whose list cannot be kept serves all the same.
func TestListNotWritten(t *testing.T) {
	p := newPast(t)
	if err := os.WriteFile(p.fleet.Lists, nil, 0o600); err != nil { // where the directory would be
		t.Fatal(err)
	}
	r := p.session()
	entry, _ := r.fake("fake", "good")
	r.serve(entry)
	if told := r.told("mcp_list_not_kept"); len(told) == 0 {
		t.Error("it was not told")
	}
	if got := r.text("mcp__fake__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("a call gave %q", got)
	}
}

// TestSlowList: while a kept list is being read, nothing else waits: not the session, its other servers, or another session.
func TestSlowList(t *testing.T) {
	p := newPast(t)
	entry, dir := p.learn("good")
	path := p.list()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil { // reading it blocks until something is written
		t.Fatal(err)
	}
	r, other := p.session(), p.session()
	t.Cleanup(func() { // a session ends when the list was read, also if the test fails before that
		if pipe, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			_ = pipe.Close()
		}
	})
	quick, _ := r.fake("quick", "good")
	quick.Digest = "of another entry"
	shared := quick
	shared.Name, shared.Shared = "shared", true
	r.set.Serve([]mcp.Entry{entry, quick, shared})
	other.serve(shared, quick)
	for _, of := range []*rig{r, other} {
		of.until("the other servers run", func() bool { return of.status("quick").State == mcp.Ready })
		of.text("mcp__quick__echo", `{"text":"on"}`)
	}
	other.set.Close()
	if s := r.status("fake"); s.State != mcp.NotStarted || !r.set.Reading() {
		t.Errorf("while its list is read it is %+v", s)
	}
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pipe.Write(whole)
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
	r.set.Await(t.Context())
	if n := r.status("fake").Tools; n != 15 || err != nil || starts(t, dir) != 1 {
		t.Errorf("it has %d tools and was started %d times, %v", n, starts(t, dir), err)
	}
}

// TestSweep: lists that were not used for long go, and so do the oldest of too many.
func TestSweep(t *testing.T) {
	now := time.Now()
	f := &mcp.Fleet{Lists: filepath.Join(t.TempDir(), "lists")}
	if err := f.Sweep(now); err != nil {
		t.Errorf("without lists: %v", err)
	}
	if err := os.Mkdir(f.Lists, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string, age time.Duration, size int64) {
		t.Helper()
		path := filepath.Join(f.Lists, name)
		for _, err := range []error{os.WriteFile(path, nil, 0o600), os.Truncate(path, size), os.Chtimes(path, time.Time{}, now.Add(-age))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(want string) {
		t.Helper()
		if err := f.Sweep(now); err != nil {
			t.Error(err)
		}
		var left []string
		for _, path := range glob(t, f.Lists) {
			left = append(left, filepath.Base(path))
		}
		if got := strings.Join(left, " "); got != want {
			t.Errorf("left are %s, want %s", got, want)
		}
	}
	file("new", 0, 1)
	file("used", 29*24*time.Hour, 1)
	file("unused", 31*24*time.Hour, 1)
	check("new used")
	file("large", time.Minute, 40<<20)
	check("large new used")
	file("older", time.Hour, 40<<20)
	check("large new")
}
