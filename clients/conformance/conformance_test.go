package conformance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestConformance holds the library of each language against the cases of cases.txt, with a daemon of its own behind a proxy.
func TestConformance(t *testing.T) {
	cases := readCases(t)
	streams := map[string][]json.RawMessage{}
	text, err := os.ReadFile("testdata/streams.json")
	if err == nil {
		err = json.Unmarshal(text, &streams)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]func(*testing.T) []string{
		"go":             func(*testing.T) []string { return []string{os.Args[0]} },
		"typescript":     typescriptDriver,
		"python-asyncio": func(t *testing.T) []string { return pythonDriver(t, "asyncio") },
		"python-sync":    func(t *testing.T) []string { return pythonDriver(t, "sync") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, command(t), streams)
			defer r.close()
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { r.run(t, c) })
			}
		})
	}
}

func typescriptDriver(t *testing.T) []string {
	program, dir := node(t)
	driver := filepath.Join(dir, "driver.mjs")
	text, err := os.ReadFile("drivers/driver.js")
	if err == nil {
		err = os.WriteFile(driver, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{program, driver}
}

func pythonDriver(t *testing.T, face string) []string {
	program, path := python(t)
	driver, err := filepath.Abs("drivers/driver.py")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", "PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1", program, driver, face}
}

// A testCase is a part of cases.txt, for one of the values of its variable.
type testCase struct {
	name  string
	n     int
	steps []string
}

var heading = regexp.MustCompile(`^== (.*?)(?: \| N in (?:(\d+)\.\.(\d+)|random (\d+) (\d+)))?$`)

// readCases reads cases.txt, which describes its form.
func readCases(t *testing.T) (cases []testCase) {
	text, err := os.ReadFile("cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	numbers := rand.New(rand.NewPCG(1, 2))
	for _, part := range strings.Split(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		found := heading.FindStringSubmatch(lines[0])
		switch {
		case found == nil:
			continue
		case found[2] != "":
			for n := number(t, found[2]); n <= number(t, found[3]); n++ {
				cases = append(cases, testCase{fmt.Sprintf("%s/%d", found[1], n), n, lines[1:]})
			}
		case found[4] != "":
			for range number(t, found[4]) {
				n := 1 + numbers.IntN(number(t, found[5]))
				cases = append(cases, testCase{fmt.Sprintf("%s/%d", found[1], n), n, lines[1:]})
			}
		default:
			cases = append(cases, testCase{found[1], 0, lines[1:]})
		}
	}
	return cases
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A runner runs cases for one library.
type runner struct {
	*home
	t       *testing.T // of the case
	streams map[string][]json.RawMessage
	proxy   *proxy
	command []string  // of the driver
	driver  *exec.Cmd // nil: it does not run
	in      io.Writer // of the driver
	out     *bufio.Reader
	pid     int               // of the daemon
	top     string            // the directory of the cases' directories
	vars    map[string]string // what stands for $NAME in steps
}

// patience bounds what a driver may take for one step. Ours.
const patience = 30 * time.Second

func newRunner(t *testing.T, command []string, streams map[string][]json.RawMessage) *runner {
	r := &runner{home: newHome(t), t: t, command: command, streams: streams}
	r.top = r.home.root
	r.start()
	p, err := newProxy(filepath.Join(r.dir, "proxy.sock"), r.daemonSocket())
	if err != nil {
		t.Fatal(err)
	}
	r.proxy = p
	return r
}

func (r *runner) close() {
	r.proxy.close()
	r.stopDriver()
}

// startDriver starts the driver, with a parent of its own: a program beside a client may not answer its questions.
func (r *runner) startDriver() {
	r.driver = exec.Command("sh", append([]string{"-c", `"$@"; exit $?`, "sh"}, r.command...)...)
	token := filepath.Join(r.dir, "token")
	if err := os.WriteFile(token, []byte("ours 0123456789012345678901234567890123456789\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.driver.Env = append(r.env, driverVariable+"=1", "TOOLD_ADDRESS=unix:"+r.dir+"/proxy.sock", "TOOLD_TOKEN_FILE="+token)
	r.driver.Dir, r.driver.WaitDelay, r.driver.Stderr = r.top, time.Second, os.Stderr
	r.driver.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := r.driver.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := r.driver.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.driver.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.in, r.out = in, bufio.NewReader(out)
}

// stopDriver kills the driver, if it runs.
func (r *runner) stopDriver() {
	if r.driver != nil {
		_ = syscall.Kill(-r.driver.Process.Pid, syscall.SIGKILL)
		_ = r.driver.Wait() // that it was killed
		r.driver = nil
	}
}

// start starts the daemon, and waits until it listens.
func (r *runner) start() {
	var status struct{ PID int }
	if err := json.Unmarshal([]byte(r.home.run(built(r.t), "start", "--json")), &status); err != nil {
		r.t.Fatal(err)
	}
	r.pid = status.PID
}

func (r *runner) daemonSocket() string {
	var status struct{ Listeners []struct{ Address string } }
	if err := json.Unmarshal([]byte(r.home.run(built(r.t), "start", "--json")), &status); err != nil || len(status.Listeners) == 0 {
		r.t.Fatalf("the daemon has no listener: %v", err)
	}
	return strings.TrimPrefix(status.Listeners[0].Address, "unix:")
}

// run runs a case in a directory of its own.
func (r *runner) run(t *testing.T, c testCase) {
	r.t, r.home.t = t, t
	if r.driver == nil {
		r.startDriver()
	}
	var err error
	if r.root, err = os.MkdirTemp(r.top, "case"); err != nil {
		t.Fatal(err)
	}
	r.vars = map[string]string{"ROOT": r.root, "N": strconv.Itoa(c.n), "CASE": filepath.Base(r.root)}
	defer func() {
		r.proxy.set(func() { r.proxy.left, r.proxy.held, r.proxy.small, r.proxy.delay = -1, false, 0, 0 })
		if r.driver != nil {
			r.ask("reset", nil, nil)
		}
	}()
	for _, step := range c.steps {
		if strings.HasPrefix(step, "#") {
			continue
		}
		step = os.Expand(step, func(name string) string { return r.vars[name] })
		asked, want, _ := strings.Cut(step, " => ")
		got := strings.TrimSpace(strings.ReplaceAll(r.do(asked), "\n", `\n`))
		if got = strings.TrimSuffix(got, `\n`); got != want {
			t.Fatalf("%s: %q, want %q", asked, got, want)
		}
	}
}

// do does a step, and returns what it has come to as text.
func (r *runner) do(step string) string {
	words, with := take(step)
	var object map[string]any
	if with != "" {
		if err := json.Unmarshal([]byte(with), &object); err != nil {
			r.t.Fatalf("%s: %v", step, err)
		}
	}
	verb, args := words[0], words[1:]
	switch verb {
	case "session":
		options := map[string]any{"mode": "bypassPermissions", "roots": []string{r.root}}
		maps.Copy(options, object)
		if options["roots"] == "none" {
			options["roots"] = []string{}
		}
		client, ok := options["client"].(string)
		if !ok {
			client = "main"
		}
		delete(options, "client")
		return r.ask(verb, append(args[:1:1], client), options)
	case "call", "run":
		return r.ask(verb, args, map[string]any{"value": object})
	case "feed":
		events := r.streams[args[1]]
		if len(args) == 4 {
			events = events[number(r.t, args[2]):number(r.t, args[3])]
		}
		return r.ask(verb, args[:1], map[string]any{"value": events})
	case "keep":
		r.vars[args[1]] = r.ask("id_of", args[:1], nil)
		return ""
	}
	if f := own[verb]; f != nil {
		return f(r, args)
	}
	return r.ask(verb, args, object)
}

// take splits a step into words, of which some are quoted, and the object at its end.
func take(step string) (words []string, object string) {
	for step = strings.TrimSpace(step); step != ""; step = strings.TrimSpace(step) {
		if strings.HasPrefix(step, "{") {
			return words, step
		}
		word, rest, _ := strings.Cut(step, " ")
		if quoted, err := strconv.QuotedPrefix(step); err == nil {
			word, _ = strconv.Unquote(quoted)
			rest = step[len(quoted):]
		}
		words, step = append(words, word), rest
	}
	return words, ""
}

// ask has the driver do something.
func (r *runner) ask(verb string, args []string, with map[string]any) string {
	asked := map[string]any{"do": verb, "args": append([]string{}, args...)}
	if with != nil {
		asked["with"] = with
	}
	request, err := json.Marshal(asked)
	if err != nil {
		r.t.Fatal(err)
	}
	type said struct {
		line []byte
		err  error
	}
	answer := make(chan said, 1)
	go func() {
		if _, err := r.in.Write(append(request, '\n')); err != nil {
			answer <- said{nil, err}
			return
		}
		line, err := r.out.ReadBytes('\n')
		answer <- said{line, err}
	}()
	var is said
	select {
	case is = <-answer:
	case <-time.After(patience):
		is.err = os.ErrDeadlineExceeded
	}
	var given struct{ Answer any }
	if is.err == nil {
		is.err = json.Unmarshal(is.line, &given)
	}
	if is.err != nil {
		r.stopDriver()
		r.t.Fatalf("%s: the driver: %v", request, is.err)
	}
	if text, ok := given.Answer.(string); ok {
		return text
	}
	return summary(given.Answer)
}

// summary returns the ids and texts of items of any API.
func summary(items any) string {
	switch v := items.(type) {
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, summary(item))
		}
		return strings.Join(parts, " ")
	case map[string]any:
		for _, field := range []string{"tool_use_id", "tool_call_id", "call_id"} {
			if id, ok := v[field].(string); ok {
				return id + ":" + strings.TrimSpace(summary(v["content"])+summary(v["output"]))
			}
		}
		return summary(v["content"]) + summary(v["text"]) + summary(v["stdout"])
	case string:
		return v
	}
	return ""
}
