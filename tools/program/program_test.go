package program

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	code := tooltest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const described = "Looks a word up in the glossary of the project and gives what it means."

// shell is a program of a line for a shell.
func shell(line string) Program {
	return Program{
		Name: "Lookup", Description: described, Command: []string{"sh", "-c", line}, Origin: "/settings.json:3",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string","description":"the word"}},"additionalProperties":false}`),
	}
}

func must(t testing.TB, p Program) tools.Tool {
	t.Helper()
	tool, err := Tool(p)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func parse(t testing.TB, tool tools.Tool, input string) tools.Action {
	t.Helper()
	action, err := tool.Parse([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	return action
}

// A told is what a program said of its progress.
type told struct {
	mu    sync.Mutex
	steps []string
}

func (o *told) add(step tools.Step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.steps = append(o.steps, step.Message)
}

// run runs a program once.
func run(t testing.TB, p Program, input string) (tools.Result, []string, error) {
	t.Helper()
	action := parse(t, must(t, p), input)
	env := tooltest.NewRoom(t).Env(action)
	var heard told
	env.Report = heard.add
	result, err := action.Run(t.Context(), env)
	return result, heard.steps, err
}

func text(r tools.Result) string {
	var all strings.Builder
	for _, b := range r.Content {
		all.WriteString(b.Text)
	}
	return all.String()
}

func TestContract(t *testing.T) {
	tooltest.Check(t, must(t, shell("cat")), tooltest.Case{Name: "echoes", Input: `{"word":"x"}`})
	p := shell("echo done")
	p.InputSchema = nil
	tooltest.Check(t, must(t, p), tooltest.Case{Name: "no fields", Input: `{}`})
	p = shell("")
	p.Command = []string{"/bin/cat", "/dev/null"}
	tooltest.Check(t, must(t, p), tooltest.Case{Name: "by its path", Input: `{}`})
}

// picture1x1 is the smallest PNG.
const picture1x1 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

// TestRuns: what programs print, say and end with, and what is told of it.
func TestRuns(t *testing.T) {
	for _, test := range []struct {
		name, line, input string
		want              string // of the text: this is in it
		code              string // of the error; empty: there is none
		steps             string // the last step
	}{
		{"input", `cat`, `{"word": "a b"}`, `{"word":"a b"}`, "", ""},
		{"no input", `cat`, ``, `{}`, "", ""},
		{"silent", `true`, `{}`, "(no output)", "", ""},
		{"progress", `echo one >&2; printf 'two \033[31mred\033[0m\n' >&2; echo out`, `{}`, "out", "", "two red"},
		{"half a line", `printf half >&2`, `{}`, "(no output)", "", "half"},
		{"failed", `echo so far; echo "it is broken" >&2; exit 3`, `{}`, "Exit code 3\nso far\nOn standard error:\nit is broken\n", "exit_code", "it is broken"},
		{"a signal", `kill -9 $$`, `{}`, "Ended by signal SIGKILL", "exit_code", ""},
		{"not UTF-8", `printf 'a\377b'`, `{}`, "a\ufffdb", "", ""},
		{"an escape", `printf 'a\033[2Jb'`, `{}`, "ab", "", ""},
		{"stdout closed", `exec >&-; echo end >&2`, `{}`, "(no output)", "", "end"},
		{"everything closed", `exec <&- >&- 2>&-; exit 0`, `{}`, "(no output)", "", ""},
		{"a list", `printf '[{"type":"text","text":"one"},{"type":"text","text":""},{"type":"text","text":"two"}]'`, `{}`, "onetwo", "", ""},
		{"a list and a failure", `printf '[{"type":"text","text":"one"}]'; exit 1`, `{}`, "Exit code 1\n[{", "exit_code", ""},
		{"an empty list", `printf '[]'`, `{}`, "[]", "", ""},
		{"another list", `printf '[{"type":"function"}]'`, `{}`, `[{"type":"function"}]`, "", ""},
		{"garbage", `printf '[{"type":"text",'`, `{}`, `[{"type":"text",`, "", ""},
		{"a text without text", `printf '[{"type":"text"}]'`, `{}`, `[{"type":"text"}]`, "bad_result", ""},
		{"bad base64", `printf '[{"type":"document","mediaType":"a/b","data":"***"}]'`, `{}`, `[{`, "bad_result", ""},
		{"no image", `printf '[{"type":"image","mediaType":"image/png","data":"AAAA"}]'`, `{}`, `[{`, "bad_result", ""},
		{"an unknown image", `printf '[{"type":"image","mediaType":"image/x","data":"AAAA"}]'`, `{}`, `[{`, "bad_result", ""},
		{"where it is", `echo "$TOOLD_PROJECT_DIR" | grep -c "^$PWD$"`, `{}`, "1\n", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			result, steps, err := run(t, shell(test.line), test.input)
			code := ""
			if err != nil {
				code = fault.From(err).Code
			}
			if code != test.code || !strings.Contains(text(result), test.want) {
				t.Errorf("%q, %v; want %q with %q", text(result), err, test.want, test.code)
			}
			if last := append([]string{""}, steps...); last[len(last)-1] != test.steps {
				t.Errorf("progress %q, want %q at last", steps, test.steps)
			}
		})
	}
}

// TestBlocks: every kind of block that can be printed.
func TestBlocks(t *testing.T) {
	t.Parallel()
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4"))
	line := fmt.Sprintf(`printf '%%s' '[{"type":"text","text":"t"},{"type":"image","mimeType":"image/png","data":"%s"},
		{"type":"document","mediaType":"application/pdf","data":"%s"},{"type":"link","uri":"file:///x","name":"x"},{"type":"resource_link","uri":"y"}]'`, picture1x1, pdf)
	result, _, err := run(t, shell(line), `{}`)
	if err != nil || len(result.Content) != 5 {
		t.Fatalf("%+v, %v; want five blocks", result, err)
	}
	c := result.Content
	switch {
	case c[0].Text != "t":
		t.Errorf("text %q", c[0].Text)
	case c[1].Image == nil || c[1].Image.MediaType != "image/png" || len(c[1].Image.Data) == 0:
		t.Errorf("image %+v", c[1])
	case c[2].Document == nil || c[2].Document.MediaType != "application/pdf" || string(c[2].Document.Data) != "%PDF-1.4":
		t.Errorf("document %+v", c[2])
	case c[3].Link == nil || *c[3].Link != tools.Link{URI: "file:///x", Name: "x"} || c[4].Link == nil || c[4].Link.URI != "y":
		t.Errorf("links %+v", c[3:])
	}
}

// TestFlood: much output costs no memory and is all there, with what the text leaves out.
func TestFlood(t *testing.T) {
	t.Parallel()
	result, steps, err := run(t, shell(`yes a line of some length | head -200000; yes noise 2>/dev/null | head -300000 >&2`), `{}`)
	if err != nil || result.Spill == nil {
		t.Fatalf("%v, %+v", err, result.Spill)
	}
	s := result.Structured.(Structured)
	if s.StdoutBytes != 200000*22 || s.StderrBytes != 300000*6 || s.OmittedBytes == 0 || len(text(result)) > 31_000 {
		t.Errorf("%+v, %d bytes of text", s, len(text(result)))
	}
	if info, err := os.Stat(s.OutputPath); err != nil || info.Size() != s.StdoutBytes {
		t.Errorf("the whole output: %v, %v", info, err)
	}
	if len(steps) == 0 || len(steps) > 50_000 {
		t.Errorf("%d steps of progress", len(steps))
	}
	result, _, err = run(t, shell(`yes 'why it failed' | head -50000 >&2; exit 1`), `{}`)
	if said := text(result); err == nil || len(said) > 6000 || !strings.Contains(said, "bytes that are left out:\nwhy it failed\n") {
		t.Errorf("%v, %.200q", err, said)
	}
	result, _, err = run(t, shell(`printf '[ '; head -c 20000000 /dev/zero | tr '\0' ' '; printf ']'`), `{}`)
	if err != nil || result.Structured.(Structured).StdoutBytes != 20000003 {
		t.Errorf("a list without an end: %v, %+v", err, result.Structured)
	}
	result, steps, err = run(t, shell(`head -c 3000000 /dev/zero | tr '\0' x >&2`), `{}`)
	if err != nil || len(steps) != 1 || len(steps[0]) != maxLine+3 {
		t.Errorf("a line without an end: %v, %q", err, steps)
	}
}

// TestInputIsNotWaitedFor: a program that reads nothing holds nobody, however long its input is.
func TestInputIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	input := `{"word":"` + strings.Repeat("x", 2<<20) + `"}`
	if _, _, err := run(t, shell(`exit 0`), input); err != nil {
		t.Error(err)
	}
	if result, _, err := run(t, shell(`wc -c`), input); err != nil || strings.TrimSpace(text(result)) != fmt.Sprint(len(input)+1) {
		t.Errorf("%q, %v", text(result), err)
	}
}

// TestStopEndsEverything: a program that ignores SIGTERM, and its children, are gone when the call is. It runs by itself, since
// orphans are told apart only within one runner.
func TestStopEndsEverything(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "pids")
	line := fmt.Sprintf(`trap '' TERM; (trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ >>%s; while :; do sleep 1; done') & echo $$ >>%s; echo ready >&2; while :; do sleep 1; done`, mark, mark)
	for _, why := range []error{errors.New("somebody has had enough"), tools.ErrTimeout} {
		ctx, cancel := context.WithCancelCause(t.Context())
		action := parse(t, must(t, shell(line)), `{}`)
		env := tooltest.NewRoom(t).Env(action)
		env.Report = func(tools.Step) { cancel(why) }
		if _, err := action.Run(ctx, env); !errors.Is(err, why) {
			t.Errorf("%v, want %v", err, why)
		}
	}
	data, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(data)) {
		// A zombie has ended, and is collected a moment later.
		if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil && !strings.Contains(string(status), "State:\tZ") {
			t.Errorf("the process %s is still there:\n%s", pid, status)
		}
	}
}

// TestLeftBehind: what a program has started and not ended is ended with it, and named. It runs by itself, as the test above.
func TestLeftBehind(t *testing.T) {
	for _, line := range []string{`sleep 1000 & echo done`, `sleep 1000 & printf '[{"type":"text","text":"done"}]'`} {
		result, _, err := run(t, shell(line), `{}`)
		if err != nil || !strings.HasPrefix(text(result), "done") || !strings.Contains(text(result), "(sleep 1000)") {
			t.Errorf("%q, %v", text(result), err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	action := parse(t, must(t, shell(`env`)), `{}`)
	env := tooltest.NewRoom(t).Env(action)
	env.Environ = []string{"PATH=" + env.Dir, "MINE=1", "SOME_TOKEN=secret", "LD_PRELOAD=x.so"}
	result, err := action.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text(result), "\n")
	for _, want := range []string{"PATH=" + os.Getenv("PATH"), "MINE=1", "NO_COLOR=1"} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not in %q", want, lines)
		}
	}
	if strings.Contains(text(result), "secret") || strings.Contains(text(result), "x.so") {
		t.Errorf("%q", lines)
	}
}

// confined returns the environment of a call as the pipeline confines it to reading.
func confined(t *testing.T, action tools.Action) *tools.Env {
	t.Helper()
	env := tooltest.NewRoom(t).Env(action)
	env.Box.Policy = sandbox.Policy{Tier: sandbox.Fast, Strict: true, Places: []sandbox.Place{{Path: env.Dir, Access: sandbox.Read}}}
	if c, err := env.Box.Runner.Confinement(env.Box.Policy); err != nil || c.Tier == sandbox.None {
		skip(t, "nothing can confine a process here")
	}
	return env
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// TestReadOnly: a program that is said to change nothing cannot, and where nothing holds it to that it is not started.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	p := shell(`cat a.txt; echo x >made || echo refused`)
	p.ReadOnly = true
	action := parse(t, must(t, p), `{}`)
	if e := action.Effects(); !e.ReadOnly() || !e.Concurrent() {
		t.Errorf("effects %+v", e)
	}
	free := tooltest.NewRoom(t).Env(action)
	if _, err := action.Check(t.Context(), free); err == nil || fault.From(err).Code != "sandbox_unavailable" {
		t.Errorf("unconfined it is checked: %v", err)
	}
	if _, err := action.Run(t.Context(), free); err == nil || fault.From(err).Code != "sandbox_unavailable" {
		t.Errorf("unconfined it runs: %v", err)
	}
	env := confined(t, action)
	if err := os.WriteFile(filepath.Join(env.Dir, "a.txt"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := action.Run(t.Context(), env)
	if err != nil || text(result) != "content\nrefused\n" {
		t.Errorf("%q, %v", text(result), err)
	}
	if _, err := os.Stat(filepath.Join(env.Dir, "made")); err == nil {
		t.Error("it has written")
	}
}

// TestReadOnlyProgramOfTheUser: the files that the entry names can be started and read where nothing else of the user's can,
// unless they are hidden.
func TestReadOnlyProgramOfTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"lookup": "#!/bin/sh\ncat \"$1\"; cat " + dir + "/other 2>/dev/null || echo closed\n", "table": "named\n", "other": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := shell("")
	p.Command, p.ReadOnly = []string{filepath.Join(dir, "lookup"), filepath.Join(dir, "table")}, true
	action := parse(t, must(t, p), `{}`)
	result, err := action.Run(t.Context(), confined(t, action))
	if err != nil || text(result) != "named\nclosed\n" {
		t.Errorf("%q, %v", text(result), err)
	}
	env := confined(t, action)
	env.Box.Policy.Places = append(env.Box.Policy.Places, sandbox.Place{Path: dir, Access: sandbox.Hidden})
	if result, err := action.Run(t.Context(), env); err == nil {
		t.Errorf("hidden, and yet %q", text(result))
	}
}

// TestWrites: a program that may write does so where the call may, and nowhere else; it is started though it lies where every
// process has a directory of its own.
func TestWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // below /tmp, as a rule
	name := filepath.Join(dir, "deploy")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(here, "made")
	t.Cleanup(func() { _ = os.Remove(outside) })
	script := "#!/bin/sh\necho x >made && cat made; echo x >" + outside + " 2>/dev/null || echo refused\n"
	if err := os.WriteFile(name, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := shell("")
	p.Command = []string{name}
	action := parse(t, must(t, p), `{}`)
	if e := action.Effects(); e.ReadOnly() || e.Concurrent() || e.External != "the program `"+name[:min(len(name), 80)]+strings.Repeat("...", min(1, max(0, len(name)-80)))+"`" {
		t.Errorf("effects %+v", e)
	}
	env := confined(t, action)
	env.Box.Policy = sandbox.Policy{Tier: sandbox.Full, Places: []sandbox.Place{{Path: env.Dir, Access: sandbox.Write}, {Path: "/tmp", Access: sandbox.Write, Source: t.TempDir()}}}
	if c, err := env.Box.Runner.Confinement(env.Box.Policy); err != nil || c.Tier != sandbox.Full {
		skip(t, "there are no namespaces here")
	}
	result, err := action.Run(t.Context(), env)
	if err != nil || text(result) != "x\nrefused\n" {
		t.Errorf("%q, %v", text(result), err)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("it has written beside the root")
	}
}

// TestCacheTTL: the same input gives the same result, of what only reads alone.
func TestCacheTTL(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{true, false} {
		count := filepath.Join(t.TempDir(), "count")
		p := shell(`echo $(($(cat ` + count + `) + 1))`)
		p.ReadOnly, p.CacheTTL = readOnly, time.Hour
		tool := must(t, p)
		var seen []string
		for i := range 2 {
			if err := os.WriteFile(count, fmt.Append(nil, i), 0o600); err != nil {
				t.Fatal(err)
			}
			action := parse(t, tool, `{"word":"a"}`)
			env := tooltest.NewRoom(t).Env(action)
			if readOnly {
				env = confined(t, action)
				env.Box.Policy.Places = append(env.Box.Policy.Places, sandbox.Place{Path: filepath.Dir(count), Access: sandbox.Read})
			}
			env.Dir = filepath.Dir(count) // what is kept is for one directory
			result, err := action.Run(t.Context(), env)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, text(result))
		}
		if same := seen[0] == seen[1]; same != readOnly {
			t.Errorf("only reads %v: %q", readOnly, seen)
		}
	}
}

// TestPython: a program in another language, as people write them.
func TestPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		skip(t, "python3 is not installed")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "lookup.py")
	if err := os.WriteFile(script, []byte("import json, sys\nword = json.load(sys.stdin)['word']\nprint('looking', file=sys.stderr)\njson.dump([{'type': 'text', 'text': word.upper()}], sys.stdout)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := shell("")
	p.Command = []string{"python3", script}
	result, steps, err := run(t, p, `{"word":"ünï"}`)
	if err != nil || text(result) != "ÜNÏ" || !slices.Equal(steps, []string{"looking"}) {
		t.Errorf("%q, %q, %v", text(result), steps, err)
	}
	const system = "/usr/bin/python3" // one of a version manager's lies where nothing can be read
	if _, err := os.Stat(system); err != nil {
		skip(t, system+" is not installed")
	}
	p.Command[0], p.ReadOnly = system, true
	action := parse(t, must(t, p), `{"word":"a"}`)
	if result, err := action.Run(t.Context(), confined(t, action)); err != nil || text(result) != "A" {
		t.Errorf("only reading: %q, %v", text(result), err)
	}
}

// TestWrongPrograms: what cannot be a tool says why and where it is named, and a program that is gone is no mistake of the model's.
func TestWrongPrograms(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Program){
		"no command":        func(p *Program) { p.Command = nil },
		"relative":          func(p *Program) { p.Command = []string{"./x"} },
		"no schema":         func(p *Program) { p.InputSchema = json.RawMessage(`{"type": 3}`) },
		"not an object":     func(p *Program) { p.InputSchema = json.RawMessage(`{"type": "string"}`) },
		"loads a file":      func(p *Program) { p.InputSchema = json.RawMessage(`{"$ref": "file:///etc/passwd"}`) },
		"is no JSON at all": func(p *Program) { p.InputSchema = json.RawMessage(`x`) },
	} {
		p := shell("true")
		change(&p)
		if _, err := Tool(p); err == nil || !strings.Contains(err.Error(), "/settings.json:3") || !strings.Contains(err.Error(), `"Lookup"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, gone := range []string{"no-such-program-anywhere", filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		p := shell("")
		p.Command = []string{gone}
		tool := must(t, p)
		if why := tool.Spec().Available(nil); !strings.Contains(why, gone) {
			t.Errorf("%s is available: %q", gone, why)
		}
		if _, _, err := run(t, p, `{}`); err == nil || fault.From(err).Code != "program_not_found" {
			t.Errorf("%s: %v", gone, err)
		}
	}
	if _, err := must(t, shell("true")).Parse([]byte(`{"word": 1}`)); err == nil || fault.From(err).Code != "invalid_input" {
		t.Errorf("a number for a text: %v", err)
	}
}

// FuzzPrinted: nothing that a program prints or says breaks what is made of it.
func FuzzPrinted(f *testing.F) {
	for _, text := range []string{"", "text", "[]", `[{"type":"text","text":"a"}]`, `[{"type":"image","mediaType":"image/png","data":"` + picture1x1 + `"}]`, "[[[[", "\xff\n\x1b[31m\r\n", `[{"type":"link","uri":""}]`} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, printed []byte, at int) {
		at = min(max(at, 0), len(printed))
		var l listing
		var heard told
		s := speech{report: heard.add}
		for _, piece := range [][]byte{printed[:at], printed[at:]} {
			_, _ = l.Write(piece)
			_, _ = s.Write(piece)
		}
		s.end()
		content, is, err := l.blocks(t.Context())
		if err != nil && !is || err == nil && is && !strings.Contains(string(printed), "[") {
			t.Errorf("%q: %v %v", printed, is, err)
		}
		for _, b := range content {
			if b.Text == "" && b.Image == nil && b.Document == nil && b.Link == nil {
				t.Errorf("%q gives an empty block", printed)
			}
		}
		for _, step := range append(heard.steps, s.last()) {
			if strings.ContainsAny(step, "\x1b\r\x00") || len([]rune(step)) > maxTail+200 {
				t.Errorf("%q is told of %q", step, printed)
			}
		}
	})
}
