package main

// toold stdio, as the program that starts it sees it.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/toold/toold/gen/toold/v1" // the services
)

// A lineClient speaks to toold stdio.
type lineClient struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stdout  *os.File
	environ []string
	root    string
	seen    []string
}

// A line is any line of the bridge.
type line struct {
	ID     any
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct{ Status, Reason string }
	}
	Method string
	Params struct {
		ID      any
		State   string
		Epoch   string
		Message json.RawMessage
		Error   struct{ Message string }
	}
	text string
}

func speakLines(t *testing.T) *lineClient {
	t.Helper()
	environ, root := home(t)
	c := &lineClient{t: t, environ: environ, root: root}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c.cmd = self(t, ctx, environ, root, "stdio")
	var stderr bytes.Buffer
	c.cmd.Stderr = &stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.stdout, c.out = write, read, bufio.NewReader(read)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close() // the process has it
	t.Cleanup(func() {
		_ = c.in.Close() // again, perhaps
		_ = c.stdout.Close()
		_ = c.cmd.Wait()
		if stderr.Len() > 0 || t.Failed() {
			t.Logf("lines %q\nstderr %s", c.seen[max(0, len(c.seen)-20):], &stderr)
		}
	})
	return c
}

func (c *lineClient) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// request writes a request; method without an id is a notification.
func (c *lineClient) request(id any, method, params string) {
	c.t.Helper()
	if id == nil {
		c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
		return
	}
	text, err := json.Marshal(id)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, text, method, params))
}

// next reads a line.
func (c *lineClient) next() line {
	c.t.Helper()
	text, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	c.seen = append(c.seen, text[:min(len(text), 300)])
	l := line{text: text}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	return l
}

// until reads up to a line that has what.
func (c *lineClient) until(what string) line {
	c.t.Helper()
	for {
		if l := c.next(); strings.Contains(l.text, what) {
			return l
		}
	}
}

// answered reads up to the response to a request.
func (c *lineClient) answered(id string) line {
	c.t.Helper()
	for {
		if l := c.next(); l.Method == "" && fmt.Sprint(l.ID) == id {
			return l
		}
	}
}

// fails wants a response with that code.
func (c *lineClient) fails(id string, code int, part string) {
	c.t.Helper()
	l := c.answered(id)
	if l.Error == nil || l.Error.Code != code || !strings.Contains(l.Error.Message, part) {
		c.t.Errorf("%s, want the code %d and %q", l.text, code, part)
	}
}

// execute begins an Execute stream in the client's folder, in which nothing is asked.
func (c *lineClient) execute(id any) {
	c.t.Helper()
	c.request(id, "ToolService/Execute", fmt.Sprintf(`{"attach":{"roots":[%q],"options":{"permissionMode":"PERMISSION_MODE_BYPASS_PERMISSIONS"}}}`, c.root))
	c.until(`"state":"attached"`)
}

// use sends a tool use.
func (c *lineClient) use(id any, name, input string) {
	c.t.Helper()
	stream, err := json.Marshal(id)
	if err != nil {
		c.t.Fatal(err)
	}
	c.request(nil, "$/send", fmt.Sprintf(`{"id":%s,"message":{"tool_use":{"id":"call","name":%q,"input_json":%q}}}`, stream, name, input))
}

// TestStdioBeginsWhereItIs: a session for which the client names no folder begins in the bridge's, wherever the daemon was started.
func TestStdioBeginsWhereItIs(t *testing.T) {
	t.Parallel()
	c := speakLines(t)
	elsewhere := filepath.Join(c.root, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := self(t, t.Context(), c.environ, elsewhere, "start").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	where := func(line string) {
		t.Helper()
		if want := c.root + `\n`; !strings.Contains(line, want) {
			t.Errorf("it begins elsewhere than in %s: %s", c.root, line)
		}
	}
	c.request(1, "ToolService/RunTool", `{"name":"Bash","input":{"command":"pwd"}}`)
	where(c.until(`"tool_result"`).text)
	c.request(2, "ToolService/Execute", `{"attach":{}}`)
	c.use(2, "Bash", `{"command":"pwd"}`)
	where(c.until(`"tool_result"`).text)
	c.request(3, "ToolService/Execute", `{"tool_use":{"id":"call","name":"Bash","input":{"command":"pwd"}}}`)
	where(c.until(`"tool_result"`).text)
}

// TestStdioServesEveryMethod asks for each method of the contract with nothing. Whatever comes, the method is known, and the bridge
// goes on.
func TestStdioServesEveryMethod(t *testing.T) {
	t.Parallel()
	c := speakLines(t)
	var methods []string
	protoregistry.GlobalFiles.RangeFilesByPackage("toold.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				methods = append(methods, fmt.Sprintf("%s/%s", s.Name(), s.Methods().Get(j).Name()))
			}
		}
		return true
	})
	if len(methods) < 19 {
		t.Fatalf("%d methods", len(methods))
	}
	for _, method := range methods {
		if method == "DaemonService/Shutdown" || method == "DaemonService/Upgrade" { // which end what is asked
			continue
		}
		c.request(method, method, "{}")
		if method == "SessionService/WatchSessions" { // which goes on
			c.request(nil, "$/cancel", fmt.Sprintf(`{"id":%q}`, method))
		}
		if method == "ToolService/Execute" {
			c.request(nil, "$/end", fmt.Sprintf(`{"id":%q}`, method))
		}
		l := c.answered(method)
		if l.Error != nil && (l.Error.Code < 0 || l.Error.Data.Status == "" || l.Error.Code == 12) {
			t.Errorf("%s: %s", method, l.text)
		}
	}
	c.request("last", "DaemonService/Shutdown", `{}`)
	if l := c.answered("last"); l.Error != nil {
		t.Error(l.text)
	}
	for len(processesOf(c.root+"\x00")) > 0 { // it ends after its answer
		<-time.After(10 * time.Millisecond)
	}
}

// daemon returns the daemon's process id.
func (c *lineClient) daemon() int {
	c.t.Helper()
	c.request("info", "DaemonService/GetInfo", `{}`)
	var info struct{ PID int }
	if err := json.Unmarshal(c.answered("info").Result, &info); err != nil || info.PID == 0 {
		c.t.Fatalf("%d, %v", info.PID, err)
	}
	return info.PID
}

// TestStdioSurvivesGarbage: what is not a request is answered as JSON-RPC wants, and everything else goes on.
func TestStdioSurvivesGarbage(t *testing.T) {
	t.Parallel()
	c := speakLines(t)
	for text, code := range map[string]int{
		"junk": -32700, `{"jsonrpc":"2.0","id":1,"method":"DaemonService/GetInfo"`: -32700, "[]": -32600, "7": -32600, `"x"`: -32600, "null": -32600,
		`{"id":1}`: -32600, `{"jsonrpc":"1.0","id":1,"method":"x"}`: -32600, `{"jsonrpc":"2.0","id":{},"method":"x"}`: -32600, `{"jsonrpc":"2.0","id":1}`: -32600,
		`{"jsonrpc":"2.0","id":1,"method":"x"}`: -32601, `{"jsonrpc":"2.0","id":1,"method":"ToolService/Nope"}`: -32601, `{"jsonrpc":"2.0","id":1,"method":"ToolUse/x"}`: -32601,
		`{"jsonrpc":"2.0","id":1,"method":"ToolService/RunTool","params":{"nome":"x"}}`: -32602, `{"jsonrpc":"2.0","id":1,"method":"ToolService/RunTool","params":[]}`: -32602,
		strings.Repeat("x", 17<<20): -32600, "\xff\xfe": -32700,
	} {
		c.write(text)
		if l := c.next(); l.Error == nil || l.Error.Code != code {
			t.Errorf("%.60s is answered by %s, want the code %d", text, l.text, code)
		}
	}
	for _, text := range []string{`{"jsonrpc":"2.0","method":"$/unknown"}`, `{"jsonrpc":"2.0","method":"$/cancel","params":{"id":9}}`, "", "  "} {
		c.write(text) // without effect
	}
	for _, params := range []string{`{"id":9,"message":{}}`, `[]`} {
		c.request(nil, "$/send", params)
		if l := c.next(); l.Method != "$/error" || l.Params.Error.Message == "" {
			t.Errorf("%s is answered by %s", params, l.text)
		}
	}
	large := fmt.Sprintf(`{"todos":[{"content":%q,"status":"pending"}]}`, strings.Repeat("x", 1<<20))
	c.request(1, "ToolService/RunTool", fmt.Sprintf(`{"name":"TodoWrite","input":%s}`, large))
	if l := c.until(`"tool_result"`); !strings.Contains(l.text, strings.Repeat("x", 1000)) && !strings.Contains(l.text, `"outcome":`) {
		t.Errorf("%.300s", l.text)
	}
	if l := c.answered("1"); l.Error != nil {
		t.Error(l.text)
	}
}

// TestStdioResumes: the daemon is killed under a stream. The client sees that the stream was resumed and how its call has ended, and the
// next call has a new daemon. What else was under way fails, and the next request works.
func TestStdioResumes(t *testing.T) {
	t.Parallel()
	c := speakLines(t)
	c.execute(1)
	c.use(1, "Bash", `{"command":"echo begun; sleep 600"}`)
	c.until("begun")
	c.request("w", "SessionService/Watch", `{"session_id":"none"}`)
	c.answered("w")
	if err := syscall.Kill(c.daemon(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	resumed := c.until(`"state":"resumed"`)
	if resumed.Params.Epoch == "" {
		t.Errorf("no epoch: %s", resumed.text)
	}
	c.until(`"outcome":"OUTCOME_INTERRUPTED"`)
	c.request(nil, "$/send", `{"id":1,"message":{"tool_use":{"id":"more","name":"Bash","input":{"command":"echo alive"}}}}`)
	c.until(`alive`)
	for range 2 { // the connection of the first may be the old one
		c.request("again", "DaemonService/GetInfo", `{}`)
		if l := c.answered("again"); l.Error == nil {
			break
		}
	}
	c.request(nil, "$/end", `{"id":1}`)
	if l := c.answered("1"); l.Error != nil {
		t.Error(l.text)
	}
}

// TestStdioCancels: every request can be given up, and its id be used again.
func TestStdioCancels(t *testing.T) {
	t.Parallel()
	c := speakLines(t)
	c.request("r", "ToolService/RunTool", fmt.Sprintf(`{"name":"Bash","input":{"command":"echo begun; sleep 600"},"roots":[%q],"options":{"permission_mode":"PERMISSION_MODE_BYPASS_PERMISSIONS"}}`, c.root))
	c.until("begun")
	c.request("r", "DaemonService/GetInfo", `{}`)
	c.fails("r", -32600, "is under way")
	c.request(nil, "$/send", `{"id":"r","message":{}}`)
	c.until("takes no more messages")
	c.request(nil, "$/cancel", `{"id":"r"}`)
	c.fails("r", 1, "")
	c.execute("r")
	c.use("r", "Bash", `{"command":"echo begun; sleep 600"}`)
	c.until("begun")
	c.request(nil, "$/send", `{"id":"r","message":{"attach":{}}}`)
	c.until("may only be the first message")
	c.request(nil, "$/cancel", `{"id":"r"}`)
	c.fails("r", 1, "")
}

// TestStdioEnds: the end of the client's output lets its calls end; the end of its input does not.
func TestStdioEnds(t *testing.T) {
	t.Parallel()
	t.Run("stdin", func(t *testing.T) {
		t.Parallel()
		c := speakLines(t)
		c.execute(1)
		c.use(1, "Bash", `{"command":"while [ ! -e go ]; do sleep 0.01; done; echo done"}`)
		if err := c.in.Close(); err != nil {
			t.Fatal(err)
		}
		c.until(`"started"`)
		if err := os.WriteFile(filepath.Join(c.root, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.until(`"outcome":"OUTCOME_OK"`)
		if l := c.answered("1"); l.Error != nil {
			t.Error(l.text)
		}
		if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v after the last answer", rest, err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("stdout", func(t *testing.T) {
		t.Parallel()
		c := speakLines(t)
		c.execute(1)
		c.use(1, "Bash", `{"command":"echo begun; sleep 600"}`)
		c.until("begun")
		if err := c.stdout.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestStdioOfReaderThatStops: a client that does not read takes no more memory than what is on its way, and nothing is lost.
func TestStdioOfReaderThatStops(t *testing.T) {
	t.Parallel()
	c := speakLines(t)
	c.execute(1)
	c.use(1, "Bash", fmt.Sprintf(`{"command":"head -c %d /dev/zero | tr '\\0' x > large; cat large; touch written"}`, 64<<20))
	for { // the command ends although nobody reads
		if _, err := os.Stat(filepath.Join(c.root, "written")); err == nil {
			break
		}
		if c.cmd.ProcessState != nil {
			t.Fatal("it has ended")
		}
		<-time.After(10 * time.Millisecond)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	var peak int
	if _, after, found := strings.Cut(string(status), "VmHWM:"); err == nil && found {
		_, _ = fmt.Sscan(after, &peak)
	}
	if peak > 256<<10 {
		t.Errorf("the bridge took %d KiB", peak)
	}
	c.until(`"outcome":"OUTCOME_OK"`)
}

// TestLineClients runs the examples: a shell script with jq, and a client in Lua.
func TestLineClients(t *testing.T) {
	t.Parallel()
	environ, root := home(t)
	lines, err := filepath.Abs("../../examples/clients/lines")
	if err != nil {
		t.Fatal(err)
	}
	for program, c := range map[string]struct {
		args []string
		want string
	}{
		"jq":  {[]string{"sh", filepath.Join(lines, "client.sh"), "Bash", `{"command":"echo a \"b\""}`}, "a b\n"},
		"lua": {[]string{"lua", filepath.Join(lines, "client.lua"), `printf 'one\n'; echo "t\\wo"`}, "one\nt\\wo\nended as OK\n"},
	} {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, program+" is not installed (Debian: jq, lua5.4)")
		}
		cmd := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...)
		cmd.Dir, cmd.Env = root, append(environ, "PWD="+root)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || string(out) != c.want {
			t.Errorf("%s prints %q (%v), want %q\n%s", program, out, err, c.want, &stderr)
		}
	}
}
