package bash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	os.Exit(tooltest.Main(m))
}

func TestContract(t *testing.T) {
	tooltest.Check(t, Tool(),
		tooltest.Case{Name: "reads", Input: `{"command":"cat a.txt | head -1"}`, Files: map[string]string{"a.txt": "one\ntwo\n"}},
		tooltest.Case{Name: "writes", Input: `{"command":"touch b","description":"Makes an empty file","timeout":1000}`},
		tooltest.Case{Name: "background", Input: `{"command":"sleep 1000","run_in_background":true}`},
	)
	tooltest.Check(t, primed{OutputTool()}, tooltest.Case{Name: "output", Input: `{"bash_id":"ID"}`})
	tooltest.Check(t, primed{KillTool()}, tooltest.Case{Name: "kill", Input: `{"task_id":"ID"}`})
}

// A primed tool has a background task to act on, whose id takes the place of "ID" in its input.
type primed struct{ tools.Tool }

func (p primed) Parse(input json.RawMessage) (tools.Action, error) {
	action, err := p.Tool.Parse(input)
	if err != nil {
		return nil, err
	}
	return primedAction{action, p.Tool, string(input)}, nil
}

type primedAction struct {
	tools.Action
	tool  tools.Tool
	input string
}

func (p primedAction) Run(ctx context.Context, env *tools.Env) (tools.Result, error) {
	start, err := Tool().Parse([]byte(`{"command":"sleep 1000","run_in_background":true}`))
	if err != nil {
		return tools.Result{}, err
	}
	started, err := start.Run(context.WithoutCancel(ctx), env)
	if err != nil {
		return tools.Result{}, err
	}
	action, err := p.tool.Parse([]byte(strings.Replace(p.input, "ID", started.Changes.Task, 1)))
	if err != nil {
		return tools.Result{}, err
	}
	return action.Run(ctx, env)
}

// A session is what outlives one call in these tests: what the daemon keeps.
type session struct {
	t       testing.TB
	room    *tooltest.Room
	dir     string
	environ []string
	cursors map[string]int64
	calls   int
	change  func(*tools.Env) // of the next calls' Env
}

func newSession(t testing.TB) *session {
	room := tooltest.NewRoom(t)
	return &session{t: t, room: room, dir: room.Root, environ: os.Environ(), cursors: map[string]int64{}, change: func(*tools.Env) {}}
}

type answer struct {
	tools.Result
	Structured
	text  string
	fault *fault.Error
	err   error
}

func (s *session) call(ctx context.Context, tool tools.Tool, in any) answer {
	s.t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	action, err := tool.Parse(text)
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	env := s.room.Env(action)
	s.calls++
	env.CallID = fmt.Sprintf("call%d", s.calls)
	env.Environ, env.Cursors = s.environ, s.cursors
	env.Dir, env.Gone = tools.WorkingDir(s.dir, []string{s.room.Root}, func(path string) string { return path })
	s.change(env)
	result, err := action.Run(ctx, env)
	if result.Changes.Dir != "" {
		s.dir = result.Changes.Dir
	}
	if result.Changes.Exports != nil {
		s.environ = nil
		for name, value := range result.Changes.Exports {
			s.environ = append(s.environ, name+"="+value)
		}
	}
	if c := result.Changes.Cursor; c != nil {
		s.cursors[c.Task] = c.Offset
	}
	a := answer{Result: result, err: err}
	a.Structured, _ = result.Structured.(Structured)
	if len(result.Content) > 0 {
		a.text = result.Content[0].Text
	}
	errors.As(err, &a.fault)
	return a
}

func (s *session) bash(command string) answer {
	s.t.Helper()
	return s.call(s.t.Context(), Tool(), input{Command: command})
}

func TestResults(t *testing.T) {
	s := newSession(t)
	s.room.Put("a.txt", "one\ntwo\n")
	tests := []struct{ name, command, text string }{
		{"nothing", "true", "(no output)"},
		{"output", "cat a.txt", "one\ntwo\n"},
		{"exit code", "echo no; exit 3", "Exit code 3\nno\n"},
		{"no match", "grep three a.txt", "Exit code 1\n(no match)\n"},
		{"signal", "kill -9 $$", "Ended by signal SIGKILL\n"},
		{"both channels", "echo err >&2; sleep 0.3; echo out", "err\nout\n"},
		{"escapes", `printf '\033[1;31mred\033[0m \033]0;title\007x\n'`, "red x\n"},
		{"not UTF-8", `printf 'a\377b\n'`, "a\uFFFDb\n"},
		{"no line end", "printf x", "x"},
		{"verbatim", `printf '%s|' "a  b" 'c"d' \; "#" '\'; echo "$#" "${1-unset}" "$0"`, "a  b|c\"d|;|#|\\|0 unset bash\n"},
		{"verbatim in a serial call", `touch f; printf '%s|' "a  b" 'c"d' \; "#" '\'; echo "$#" "${1-unset}" "$0"`, "a  b|c\"d|;|#|\\|0 unset bash\n"},
		{"nothing of ours to be seen", `touch f; { set; env; trap -p; } | grep -ci 'prelude\|BASH_ENV\|toold_name=\|report'; exit 0`, "1\n"},
		{"heredoc", "cat <<'E'\n$x `y`\nE", "$x `y`\n"},
		{"here is a comment", "echo a # b", "a\n"},
		{"stdin is empty", "touch f; cat; read x || echo end", "end\n"},
		{"no variable of ours", "touch f; echo ${BASH_ENV-unset} ${TERM} ${NO_COLOR} ${PAGER} ${GIT_PAGER} ${GIT_TERMINAL_PROMPT} ${DEBIAN_FRONTEND}", "unset dumb 1 cat cat 0 noninteractive\n"},
		{"line numbers", "touch f\nnosuchprogram", "Exit code 127\nbash: line 2: nosuchprogram: command not found\n"},
		{"errexit", "set -e; touch f; false; echo not", "Exit code 1\n"},
		{"tracing ends with the command", "touch f; set -x; :", "+ :\n"},
		{"nounset", "set -u; touch f; echo a", "a\n"},
		{"its own trap", "trap 'echo bye' EXIT; touch f", "bye\n"},
		{"a left-over", "echo 'sleep 1000 &' > f; sh f; echo started", "started\n[Still running when the command had ended, and stopped: PID (sleep 1000). Use run_in_background, or & in the command itself, for processes that must continue.]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.t = t
			a := s.bash(tt.command)
			want := tt.text
			if len(a.LeftBehind) == 1 {
				want = strings.Replace(want, "PID", fmt.Sprint(a.LeftBehind[0].PID), 1)
			}
			if a.text != want {
				t.Errorf("%s\n got %q\nwant %q", tt.command, a.text, want)
			}
			failed := (strings.HasPrefix(want, "Exit code ") && a.Interpretation == "") || strings.HasPrefix(want, "Ended by")
			if (a.fault != nil && a.fault.Code == "exit_code") != failed {
				t.Errorf("%s: error %v", tt.command, a.err)
			}
		})
	}
}

func TestStateLasts(t *testing.T) {
	s := newSession(t)
	s.environ = append(s.environ, "FROM_CLIENT=c", "odd.name=o", "CLIENT_TOKEN=secret")
	s.room.Put("sub dir/x", "")
	steps := []struct{ command, text string }{
		{"cd 'sub dir' && export A=1 B=$'two\\nlines' C= && D=local", "(no output)"},
		{`echo "$PWD|$A|$B|$C|${D-unset}|$FROM_CLIENT" | sed "s#$A@##"; pwd`, s.room.Root + "/sub dir|1|two\nlines||unset|c\n" + s.room.Root + "/sub dir\n"},
		{"unset A FROM_CLIENT; export -n B; set -u; IFS=A; touch y", "(no output)"},
		{"touch y; echo ${A-unset} ${B-unset} ${C-unset}. ${FROM_CLIENT-unset}; env | grep -c odd.name", "unset unset . unset\n1\n"},
		{"f() { echo; }; export -f f; alias g=h; shopt -s extglob; mkdir -p deep; ln -s deep link; cd link", "(no output)"},
		{"touch z; pwd; type f 2>&1", "Exit code 1\n(not found)\n" + s.room.Root + "/sub dir/deep\nbash: line 1: type: f: not found\n"},
		{"cd /", "(no output)\n\n[The working directory is " + s.room.Root + "/sub dir/deep again: / is outside the roots of the session.]"},
		{"export E=5; mkdir e; cd e; exec true", "(no output)"},
		{"touch z; pwd; echo ${E-unset}", s.room.Root + "/sub dir/deep\nunset\n"},
		{"export E=6; trap 'echo mine' EXIT", "mine\n"},
		{"touch z; echo ${E-unset} ${CLIENT_TOKEN-unset}", "unset unset\n\n[Removed from the environment of commands: CLIENT_TOKEN. Variables that look like credentials, or change what programs run, reach no command, unless sandbox.environment.keep in the user's settings lists them.]"},
		{"export E=7; false", "Exit code 1\n"},
		{"export MY_TOKEN=x; exit 0", "(no output)\n\n[Not kept for later commands: MY_TOKEN. Variables that look like credentials, or change what programs run, are not passed on; set them in the command that needs them.]"},
		{"touch z; echo $E ${MY_TOKEN-unset}; exec 3>f 4>&3 5>&3; echo three >&3; cat f", "7 unset\nthree\n"},
		{"printf() { echo mine; }; builtin() { echo mine; }; touch z", "(no output)"},
	}
	for _, step := range steps {
		if a := s.bash(step.command); a.text != step.text {
			t.Errorf("%s\n got %q\nwant %q", step.command, a.text, step.text)
		}
	}
	if !slices.Contains(s.environ, "CLIENT_TOKEN=secret") {
		t.Error("what the client has set and no child sees is gone from the session")
	}
}

func TestVanishedDirectory(t *testing.T) {
	s := newSession(t)
	s.bash("mkdir d && cd d")
	if a := s.bash("rmdir ../d; echo gone"); a.text != "gone\n" || a.err != nil {
		t.Errorf("%q, %v", a.text, a.err)
	}
	gone := filepath.Join(s.room.Root, "d")
	want := s.room.Root + "\n\n[The working directory " + gone + " no longer exists. The command ran in " + s.room.Root + ".]"
	if a := s.bash("pwd; touch x"); a.text != want {
		t.Errorf("got %q, want %q", a.text, want)
	}
	if s.dir != s.room.Root {
		t.Errorf("the session is still in %s", s.dir)
	}
}

// A call gets the same variables whether it only reads or not.
func TestEveryCallSeesTheSame(t *testing.T) {
	s := newSession(t)
	s.environ = append(s.environ, "FOO=bar", "GIT_SSH=x", "NPM_TOKEN=x")
	for _, command := range []string{"env", "env; touch f"} {
		if a := s.bash(command); !strings.Contains(a.text, "FOO=bar") || !strings.Contains(a.text, "GIT_SSH=x") || strings.Contains(a.text, "NPM_TOKEN") {
			t.Errorf("the environment of %s: %s", command, a.text)
		}
	}
}

func TestEffects(t *testing.T) {
	tests := []struct {
		in                  input
		concurrent, opaque  bool
		reads               []string
		interrupt, failures bool
	}{
		{in: input{Command: "ls"}, concurrent: true, reads: []string{"."}},
		{in: input{Command: "cd src && ls"}, reads: []string{"src", "src"}},
		{in: input{Command: "make"}, opaque: true},
		{in: input{Command: "sleep 1", RunInBackground: true}},
		{in: input{Command: "cat $F"}, concurrent: true, reads: []string{"/"}},
		{in: input{Command: "cat ~/x"}, concurrent: true, reads: []string{os.Getenv("HOME") + "/x"}},
		{in: input{Command: "if"}, opaque: true},
		{in: input{Command: "ls", Unconfined: true}, concurrent: true},
	}
	for _, tt := range tests {
		text, err := json.Marshal(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		action, err := Tool().Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		e := action.Effects()
		var reads []string
		for _, p := range e.Reads {
			reads = append(reads, p.Name)
		}
		if e.Concurrent() != tt.concurrent || e.Opaque != tt.opaque || tt.reads != nil && !slices.Equal(reads, tt.reads) {
			t.Errorf("%s: concurrent %v, opaque %v, reads %v", tt.in.Command, e.Concurrent(), e.Opaque, reads)
		}
		if e.Unconfined != tt.in.Unconfined {
			t.Errorf("%s: unconfined %v", tt.in.Command, e.Unconfined)
		}
		if !e.Concurrent() && e.Reason == "" {
			t.Errorf("%s: no reason", tt.in.Command)
		}
	}
}

// Rules are matched against paths one by one, so each says which part of the script names it.
func TestEffectsSayWhoseTheyAre(t *testing.T) {
	tests := []struct{ command, reads, writes, hidden string }{ // hidden: how it begins
		{"ls src && cat a < b", "< b:b ls src#1:src(names) cat a#2:a", "", ""},
		{"npm test", "npm test#1:/", "", ""},
		{"timeout 5 rm -r x > log 2>&1", "", "> log:log rm -r x#2:x", ""},
		{"mv a b && make", "make#2:/", "mv a b#1:a mv a b#1:b/a mv a b#1:b", ""},
		{"cat $F", "cat $F#1:/", "", ""},
		{"git log", "git log#1:.(names)", "", ""},
		{"cat base64:YQ==", "cat base64:YQ==#1:./base64:YQ==", "", ""},
		{"sudo rm /x", "sudo rm /x#1:/", "rm /x#2:/x", ""},
		{"echo a > $x", "", "", "`> $x` opens a file that is not literal"},
		{"cat < *.txt", "", "", "`< *.txt` opens a file that is not literal"},
		{"cd $x; ls > o", "cd $x#1:/ ls#2:/", "", "`> o` opens a file that is not literal"},
		{"echo $((x))", "", "", "of `$((x))`: arithmetic on a value can run commands"},
		{"ls\nls )", "ls#1:.(names)", "", "the script does not parse as bash: "},
		{"mkdir a", "", "mkdir a#1:a", ""},
	}
	for _, tt := range tests {
		e := effects(input{Command: tt.command, analysis: shell.Analyze(tt.command)})
		if reads, writes := spell(e.Reads), spell(e.Writes); reads != tt.reads || writes != tt.writes || !strings.HasPrefix(e.Unknown.Cause, tt.hidden) || (tt.hidden == "") != (e.Unknown.Cause == "") {
			t.Errorf("%s\n reads  %s\n writes %s\n hidden %s", tt.command, reads, writes, e.Unknown.Cause)
		}
	}
}

// spell returns paths as "part#by:name", with what else is said of them.
func spell(paths []tools.Path) string {
	var all []string
	for _, p := range paths {
		text := p.Part
		if p.By > 0 {
			text += fmt.Sprintf("#%d", p.By)
		}
		if text += ":" + p.Name; p.Names {
			text += "(names)"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// A command that goes by the home directory is asked about where an earlier call has put another in its place.
func TestAnotherHomeIsAskedAbout(t *testing.T) {
	s := newSession(t)
	own, other := os.Getenv("HOME"), s.room.Root
	for _, c := range []struct {
		command, home string
		asks          bool
	}{
		{"cat ~/x", own, false},
		{"cat ~/x", other, true},
		{`cat "$HOME/x"`, other, true},
		{"rm ~/x", other, true},
		{"git status", other, true},
		{"ls", other, false},
	} {
		text, err := json.Marshal(input{Command: c.command})
		if err != nil {
			t.Fatal(err)
		}
		action, err := Tool().Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		env := s.room.Env(action)
		env.Environ = append(env.Environ, "HOME="+c.home)
		preview, err := action.Check(t.Context(), env)
		if err != nil || (preview.Ask != "" || len(preview.Steered) > 0) != c.asks {
			t.Errorf("%s with HOME=%s: %q, %v", c.command, c.home, preview.Ask, err)
		}
	}
}
