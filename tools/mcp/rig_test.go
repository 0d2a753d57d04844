//go:build !no_mcp

// What the tests have in common: a session with servers, and calls to their tools.

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/tooltest"
)

// soon is more than anything here takes; a test that needs it hangs.
const soon = time.Minute

// A rig is a session with its servers. It ends with the test, and then nothing of it may be left.
type rig struct {
	t     *testing.T
	room  *tooltest.Room
	fleet *mcp.Fleet
	set   *mcp.Set

	mu      sync.Mutex
	notices []mcp.Notice
	changed chan struct{}
}

func newRig(t *testing.T) *rig { return newRigOf(t, &mcp.Fleet{}, tooltest.NewRoom(t)) }

func newRigOf(t *testing.T, fleet *mcp.Fleet, room *tooltest.Room) *rig {
	t.Helper()
	r := &rig{t: t, room: room, fleet: fleet, changed: make(chan struct{}, 1)}
	box := r.env(nil).Box
	r.set = fleet.Set("somebody", mcp.Host{
		Version: "test", Roots: []string{room.Root}, Dir: room.Root, Environ: append(os.Environ(), "SECRET_THING=1"),
		Open:    func(mcp.Entry) *sandbox.Box { return &sandbox.Box{Runner: box.Runner} },
		Changed: func() { signal(r.changed) },
		Notice:  r.notice,
	})
	t.Cleanup(r.set.Close)
	return r
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *rig) notice(n mcp.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
	signal(r.changed)
}

// told returns the messages of the notices with a code.
func (r *rig) told(code string) (messages []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.notices {
		if n.Code == code {
			messages = append(messages, n.Message)
		}
	}
	return messages
}

// fake is the entry of a server of fake_test.go, and the folder of its notes.
func (r *rig) fake(name, mode string) (mcp.Entry, string) {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	dir := r.t.TempDir()
	return mcp.Entry{Name: name, Command: self, Env: []string{fakeMode + "=" + mode, fakeDir + "=" + dir, "GORACE=atexit_sleep_ms=0"}, Origin: ".mcp.json:1"}, dir
}

// serve starts servers and waits until they have come to something.
func (r *rig) serve(entries ...mcp.Entry) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), soon)
	defer cancel()
	r.set.Serve(entries)
	r.set.Await(ctx)
	if ctx.Err() != nil {
		r.t.Fatalf("the servers do not start: %+v", r.set.Servers())
	}
}

// until waits until something holds that news bring about.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	late := time.After(soon)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-r.changed:
		case <-look.C:
		case <-late:
			r.t.Fatalf("in vain waited until %s; servers: %+v, notices: %+v", what, r.set.Servers(), r.notices)
		}
	}
}

func (r *rig) tool(name string) tools.Tool {
	r.t.Helper()
	all := r.set.Tools()
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Spec().Name == name })
	if i < 0 {
		r.t.Fatalf("there is no tool %s; servers: %+v", name, r.set.Servers())
	}
	return all[i]
}

// env is what a call of action may reach; nil: any action.
func (r *rig) env(action tools.Action) *tools.Env {
	if action == nil {
		none, err := tools.NewExternal(tools.Spec{Name: "none"}, json.RawMessage(`{}`), tools.Funcs[json.RawMessage]{
			Effects: func(json.RawMessage) tools.Effects { return tools.Effects{} },
		})
		if err == nil {
			action, err = none.Parse(nil)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return r.room.Env(action)
}

// call makes one call, with changes to its Env.
func (r *rig) call(ctx context.Context, name, input string, change func(*tools.Env)) (tools.Result, error) {
	r.t.Helper()
	action, err := r.tool(name).Parse(json.RawMessage(input))
	if err != nil {
		r.t.Fatalf("%s does not take %s: %v", name, input, err)
	}
	return run(ctx, r.env(action), action, change)
}

func run(ctx context.Context, env *tools.Env, action tools.Action, change func(*tools.Env)) (tools.Result, error) {
	if change != nil {
		change(env)
	}
	return action.Run(ctx, env)
}

// text makes one call that has to succeed, and gives the text of its result.
func (r *rig) text(name, input string) string {
	r.t.Helper()
	result, err := r.call(r.t.Context(), name, input, nil)
	if err != nil {
		r.t.Fatalf("%s %s: %v", name, input, err)
	}
	return textOf(result)
}

func textOf(result tools.Result) string {
	var all []string
	for _, block := range result.Content {
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}

// code is the code of a call's error.
func code(err error) string {
	var found *fault.Error
	if errors.As(err, &found) {
		return found.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (r *rig) status(name string) mcp.Status {
	r.t.Helper()
	all := r.set.Servers()
	i := slices.IndexFunc(all, func(s mcp.Status) bool { return s.Name == name })
	if i < 0 {
		r.t.Fatalf("there is no server %s in %+v", name, all)
	}
	return all[i]
}

// pid is the number of a fake server's process.
func pid(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lacking skips a test for want of something, or fails it where CI has promised that everything is there.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}
