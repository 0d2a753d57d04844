package bash

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/spool"
)

// printing returns a context that ends with cause once the call has printed something.
func printing(t testing.TB, s *session, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	s.change = func(env *tools.Env) {
		env.Output = func(out *spool.Output) {
			go func() {
				for changed := out.Changed(); out.Total() == 0 && !out.Ended(); changed = out.Changed() {
					<-changed
				}
				cancel(cause)
			}()
		}
	}
	return ctx
}

func TestStopped(t *testing.T) {
	s := newSession(t)
	broken := errors.New("the user broke in")
	for _, cause := range []error{broken, tools.ErrTimeout} {
		a := s.call(printing(t, s, cause), Tool(), input{Command: "setsid sleep 1000 & echo so far; cd /tmp; sleep 1000"})
		if !errors.Is(a.err, cause) || !strings.Contains(a.text, "so far\n") || a.Changes.Dir != "" || a.Changes.Exports != nil {
			t.Errorf("text %q, error %v, changes %+v", a.text, a.err, a.Changes)
		}
	}
}

func TestTimeoutGoesToTheBackground(t *testing.T) {
	s := newSession(t)
	ctx := printing(t, s, tools.ErrTimeout)
	inner := s.change
	s.change = func(env *tools.Env) { inner(env); env.OnTimeout = tools.Background }
	a := s.call(ctx, Tool(), input{Command: "mkfifo go; echo first; read <go; echo second; exit 4"})
	if a.err != nil || a.TaskID == "" || a.Changes.Task != a.TaskID || !strings.Contains(a.text, a.TaskID) {
		t.Fatalf("text %q, error %v, structured %+v", a.text, a.err, a.Structured)
	}
	s.change = func(*tools.Env) {}
	if b := s.call(t.Context(), OutputTool(), outputInput{BashID: a.TaskID}); b.text != a.TaskID+" is running.\nfirst\n" {
		t.Errorf("%q", b.text)
	}
	s.bash("echo >go")
	s.call(t.Context(), OutputTool(), outputInput{BashID: a.TaskID, WaitMS: 30_000})
	b := s.call(t.Context(), OutputTool(), outputInput{BashID: a.TaskID, WaitMS: 30_000})
	if b.ExitCode == nil || *b.ExitCode != 4 || b.Status != "ended" {
		t.Errorf("%q, %+v", b.text, b.Structured)
	}
}

func TestBackground(t *testing.T) {
	s := newSession(t)
	a := s.call(t.Context(), Tool(), input{Command: "mkfifo go go2; echo one; echo two; read <go; printf 'th'; read <go2; echo ree; sleep 1000", RunInBackground: true})
	if a.err != nil || a.TaskID == "" || a.OutputPath == "" {
		t.Fatalf("%q, %v", a.text, a.err)
	}
	await := func(filter, want string) {
		t.Helper()
		var got strings.Builder
		for i := 0; got.Len() < len(want) && i < 100; i++ {
			b := s.call(t.Context(), OutputTool(), outputInput{TaskID: a.TaskID, WaitMS: 30_000, Filter: filter})
			if b.err != nil {
				t.Fatal(b.err)
			}
			_, news, _ := strings.Cut(b.text, "\n")
			if !strings.HasPrefix(news, "(no new") {
				got.WriteString(news)
			}
		}
		if got.String() != want {
			t.Errorf("got %q, want %q", got.String(), want)
		}
	}
	await("", "one\ntwo\n")
	if b := s.call(t.Context(), OutputTool(), outputInput{BashID: a.TaskID}); b.text != a.TaskID+" is running.\n(no new output)\n" {
		t.Errorf("%q", b.text)
	}
	s.bash("echo >go")
	await("", "th\n")
	s.bash("echo >go2")
	await("^r", "ree\n")
	k := s.call(t.Context(), KillTool(), killInput{ShellID: a.TaskID})
	if k.err != nil || k.Signal != "SIGTERM" || k.Status != "ended" {
		t.Errorf("%q, %v, %+v", k.text, k.err, k.Structured)
	}
	if k := s.call(t.Context(), KillTool(), killInput{TaskID: a.TaskID}); !strings.HasPrefix(k.text, "It had ended before: ") {
		t.Errorf("%q", k.text)
	}
	for _, unknown := range []answer{
		s.call(t.Context(), OutputTool(), outputInput{BashID: "bash_1"}), s.call(t.Context(), KillTool(), killInput{ShellID: "bash_1"}),
	} {
		if unknown.fault == nil || unknown.fault.Code != "unknown_task" || !strings.Contains(unknown.fault.Message, a.TaskID) {
			t.Errorf("an unknown task: %v", unknown.err)
		}
	}
}

func TestAtMost32(t *testing.T) {
	s := newSession(t)
	for range 32 {
		if a := s.call(t.Context(), Tool(), input{Command: "sleep 1000", RunInBackground: true}); a.err != nil {
			t.Fatal(a.err)
		}
	}
	a := s.call(t.Context(), Tool(), input{Command: "sleep 1000", RunInBackground: true})
	if a.fault == nil || a.fault.Code != "too_many_tasks" {
		t.Errorf("the 33rd: %v", a.err)
	}
}

func TestLongOutput(t *testing.T) {
	s := newSession(t)
	a := s.bash("seq 1 1000000")
	if a.Spill == nil || len(a.text) > 30_000 {
		t.Fatalf("%d characters, spill %+v", len(a.text), a.Spill)
	}
	whole, err := os.ReadFile(a.Spill.Path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(a.text, "[")
	_, tail, _ := strings.Cut(rest, "]\n")
	if !strings.HasPrefix(string(whole), head) || !strings.HasSuffix(string(whole), tail) {
		t.Error("head and tail are not those of the file")
	}
	left := string(whole)[len(head) : len(whole)-len(tail)]
	if int64(len(left)) != a.Spill.Bytes || int64(strings.Count(left, "\n")) != a.Spill.Lines {
		t.Errorf("left out %d bytes and %d lines, said %+v", len(left), strings.Count(left, "\n"), *a.Spill)
	}
}

func TestOutputLimit(t *testing.T) {
	s := newSession(t)
	s.change = func(env *tools.Env) { env.Spool = env.Spool.Limited(1 << 20) }
	a := s.bash("yes")
	if a.fault == nil || a.fault.Code != "output_limit" || a.StdoutBytes != 1<<20 {
		t.Errorf("%v, %d bytes", a.err, a.StdoutBytes)
	}
}

// A git that reads is asked about where the repository itself makes it run a program, and prints what git prints.
func TestGitOfARepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here; install it to see what a repository makes it run")
	}
	s := newSession(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = s.room.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	ask := func(command string) string {
		t.Helper()
		action, err := Tool().Parse([]byte(`{"command":"` + command + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		preview, err := action.Check(t.Context(), s.room.Env(action))
		if err != nil {
			t.Fatal(err)
		}
		return preview.Ask
	}
	const beside = "git status && mkdir x"
	for _, command := range []string{"git status", beside, "git add . && mkdir x"} {
		if why := ask(command); why != "" {
			t.Errorf("%s: asks about a plain repository: %s", command, why)
		}
	}
	if a := s.bash("git config --list"); strings.Contains(a.text, "gc.auto") || !strings.Contains(a.text, "core.bare=false") {
		t.Errorf("git config --list shows what is not in it: %s", a.text)
	}
	set := func(key, value string, commands ...string) {
		t.Helper()
		git("config", key, value)
		for _, command := range commands {
			if why := ask(command); !strings.Contains(why, strings.ToLower(key)) {
				t.Errorf("%s: does not ask about %s: %q", command, key, why)
			}
		}
		git("config", "--unset", key)
	}
	set("core.fsmonitor", "touch ran", "git status", beside)
	set("filter.x.clean", "touch ran", "git status", beside)
	set("log.showSignature", "true", "git log")
	set("remote.origin.promisor", "true", beside)
	git("config", "remote.origin.promisor", "true")
	if why := ask("git log"); why != "" {
		t.Errorf("asks about a repository that it fetches nothing for: %s", why)
	}
	git("init", "-q", "--bare", "inner")
	git("--git-dir=inner", "config", "filter.y.clean", "touch ran")
	if why := ask("git log -- inner"); !strings.Contains(why, "filter.y.clean") {
		t.Errorf("does not ask about a filter of a bare repository: %q", why)
	}
	hook := filepath.Join(s.room.Root, ".git", "hooks", "post-index-change")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if why := ask("git status"); !strings.Contains(why, hook) {
		t.Errorf("does not ask about a hook that may run: %q", why)
	}
}

// What a command prints costs the daemon no memory: 64 MiB, a part of it in one line, are taken with less than 4 MiB of
// allocations in all.
func TestMemory(t *testing.T) {
	s := newSession(t)
	s.bash("true")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := s.bash("head -c 32M /dev/zero | tr '\\0' x; yes | head -c 32M; touch f")
	runtime.ReadMemStats(&after)
	if a.StdoutBytes != 64<<20 || a.Spill == nil {
		t.Errorf("%d bytes, spill %+v", a.StdoutBytes, a.Spill)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 4<<20 {
		t.Errorf("%d bytes were allocated", spent)
	}
}
