//go:build !no_mcp

// Servers for tests: this test binary itself, started with a mode. They speak the protocol line by line, without the SDK, so
// that they can speak it badly.

package mcp_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toold/toold/tools/exec/sandbox"
)

// fakeMode is the variable that makes this binary a server, fakeDir a folder in which it leaves notes.
const (
	fakeMode = "MCP_TEST_MODE"
	fakeDir  = "MCP_TEST_DIR"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	if mode := os.Getenv(fakeMode); mode != "" {
		serveFake(mode)
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	goleak.VerifyTestMain(m)
}

// A fake is a server.
type fake struct {
	mode string
	out  *bufio.Writer
}

// A wire is a message.
type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Cursor    string         `json:"cursor"`
		RequestID json.Number    `json:"requestId"`
		Meta      map[string]any `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

func serveFake(mode string) {
	f := &fake{mode: mode, out: bufio.NewWriter(os.Stdout)}
	f.note("pid", strconv.Itoa(os.Getpid()))
	f.note("starts", f.read("starts")+"x")
	f.note("environ", strings.Join(os.Environ(), "\n"))
	fmt.Fprintln(os.Stderr, "the fake server says hello")
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			f.note("ended", "its input was closed")
			return
		}
		var m wire
		if err := json.Unmarshal(line, &m); err != nil {
			panic(err)
		}
		f.handle(m)
		_ = f.out.Flush()
	}
}

// note leaves a file in the test's folder.
func (f *fake) note(name, text string) {
	if dir := os.Getenv(fakeDir); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
	}
}

func (f *fake) noted(name string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv(fakeDir), name))
	return err == nil
}

func (f *fake) say(format string, args ...any) { fmt.Fprintf(f.out, format+"\n", args...) }

func (f *fake) result(id json.RawMessage, format string, args ...any) {
	f.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", ""))
}

// stop crashes, or hangs for ever, in a mode that says so.
func (f *fake) stop(stage string) {
	switch f.mode {
	case "crash-" + stage:
		_ = f.out.Flush()
		fmt.Fprintln(os.Stderr, "crashed at", stage)
		os.Exit(3)
	case "crash-once-" + stage:
		if !f.noted("crashed") {
			f.note("crashed", "once")
			os.Exit(3)
		}
	case "crash-again-" + stage:
		if f.noted("crashed") {
			os.Exit(3)
		}
		f.note("crashed", "not yet")
	case "hang-" + stage:
		_ = f.out.Flush()
		<-time.After(time.Hour)
	}
}

func (f *fake) handle(m wire) {
	switch m.Method {
	case "initialize":
		f.stop("initialize")
		if f.mode == "sick" && !f.noted("healed") {
			os.Exit(3)
		}
		if f.mode == "deaf" {
			for i := range 100_000 {
				f.say(`{"jsonrpc":"2.0","id":"deaf%d","method":"roots/list"}`, i)
			}
			<-time.After(time.Hour)
		}
		if f.mode == "malformed" {
			for _, line := range malformed() {
				f.say("%s", line)
			}
		}
		if f.mode == "junk" {
			f.say("Server listening on stdin!\n\n{\"level\":\"info\"}\n\x1b[31m[1,2,\xff")
			f.say(`{"jsonrpc":"2.0","method":}`)
		}
		f.result(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	case "ping":
		f.ping(m)
	case "logging/setLevel":
		f.result(m.ID, `{}`)
	case "tools/list":
		f.stop("list")
		f.list(m)
	case "tools/call":
		f.stop("call")
		f.call(m)
	case "notifications/cancelled":
		f.note("cancelled", m.Params.RequestID.String())
	case "":
		f.note("answer-"+strings.Trim(string(m.ID), `"`), string(m.Result))
		f.answered(m)
	}
}

func (f *fake) ping(m wire) {
	f.note("pinged", "")
	switch f.mode {
	case "refuse-ping":
		f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	case "ignore-ping":
	default:
		f.result(m.ID, `{}`)
	}
}

const fakeTools = `{"name":"echo","description":"Gives its text back.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"annotations":{"readOnlyHint":true}},
{"name":"write","description":"Changes something.","inputSchema":{"type":"object"}},
{"name":"wait","description":"Never answers.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
{"name":"progress","description":"Tells of progress.","inputSchema":{"type":"object"}},
{"name":"ask","description":"Asks.","inputSchema":{"type":"object"}},
{"name":"roots","description":"Asks for roots.","inputSchema":{"type":"object"}},
{"name":"blocks","description":"All kinds.","inputSchema":{"type":"object"}},
{"name":"fail","description":"Fails.","inputSchema":{"type":"object"}},
{"name":"refuse","description":"Refuses.","inputSchema":{"type":"object"}},
{"name":"odd","description":"Answers with nonsense.","inputSchema":{"type":"object"}},
{"name":"large","description":"Gives much.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"},"where":{"enum":["first","last"]}}}},
{"name":"die","description":"Ends the server.","inputSchema":{"type":"object"}},
{"name":"grow","description":"Adds a tool.","inputSchema":{"type":"object"}},
{"name":"log","description":"Logs.","inputSchema":{"type":"object"}},
{"name":"consent","description":"Wants consent.","inputSchema":{"type":"object"},"_meta":{"anthropic/requiresUserInteraction":true,"anthropic/maxResultSizeChars":9000000}}`

// fakeLies are tools that are not what they should be, with one that is.
const fakeLies = `{"name":"no-object","inputSchema":{"type":"string"}},
{"name":"no-schema","inputSchema":{"type":"object","properties":{"a":{"type":"strnig"}}}},
{"name":"file","inputSchema":{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}},
{"name":"web","inputSchema":{"$ref":"http://127.0.0.1:1/schema.json"}},
{"name":"","inputSchema":{"type":"object"}},
{"name":"good","description":"a\u202eb\u0007\udb40\udc41 hidden","inputSchema":{"type":"object"}},
{"name":"good","description":"twice","inputSchema":{"type":"object"}},
{"name":"a.b","inputSchema":{"type":"object"}},
{"name":"a b","inputSchema":{"type":"object"}},
{"name":"a_b","inputSchema":{"type":"object"}},
{"name":"%s","inputSchema":{"type":"object"}},
{"name":"laughs","inputSchema":%s},
{"name":"choices","inputSchema":{"oneOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"}},"required":["name"]}]}}`

func (f *fake) list(m wire) {
	switch f.mode {
	case "pages":
		n, _ := strconv.Atoi(m.Params.Cursor)
		f.result(m.ID, `{"tools":[{"name":"tool%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, n, n+1)
	case "circle":
		f.result(m.ID, `{"tools":[{"name":"tool%s","inputSchema":{"type":"object"}}],"nextCursor":"1"}`, m.Params.Cursor)
	case "many":
		var all []string
		for i := range 2000 {
			all = append(all, fmt.Sprintf(`{"name":"tool%d","inputSchema":{"type":"object"}}`, i))
		}
		f.result(m.ID, `{"tools":[%s]}`, strings.Join(all, ","))
	case "nulls":
		f.result(m.ID, `null`)
	case "no-list":
		f.result(m.ID, `{"tools":"x"}`)
	case "lies":
		f.result(m.ID, `{"tools":[`+strings.ReplaceAll(fakeLies, "\n", "")+`]}`, strings.Repeat("x", 100), laughs())
	case "flood":
		for i := range 5_000 {
			f.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"flood %d"}}`, i)
			f.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			if i%100 == 0 {
				f.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":%d}}`, i)
			}
		}
		fallthrough
	default:
		more := ""
		if f.noted("grown") {
			more = `,{"name":"grown","inputSchema":{"type":"object"}}`
		}
		f.result(m.ID, `{"tools":[%s%s]}`, strings.ReplaceAll(fakeTools, "\n", ""), more)
	}
}

// laughs is a short schema that would be held against one value 2^60 times.
func laughs() string {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return `{"type":"object","$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d60":{}}}`
}

const fakeImage = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (f *fake) call(m wire) {
	switch m.Params.Name {
	case "echo":
		f.note("echoes", f.read("echoes")+"x")
		text, _ := json.Marshal(m.Params.Arguments["text"])
		f.result(m.ID, `{"content":[{"type":"text","text":%s}]}`, text)
	case "write", "consent":
		f.note("calls", f.read("calls")+"x")
		f.result(m.ID, `{"content":[{"type":"text","text":"%s"}]}`, f.read("calls"))
	case "wait":
		f.note("waiting", "")
	case "progress":
		for i := range 3 {
			token, _ := json.Marshal(m.Params.Meta["progressToken"])
			f.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":3,"message":"step %d"}}`, token, i+1, i+1)
		}
		f.result(m.ID, `{"content":[]}`)
	case "ask":
		f.say(`{"jsonrpc":"2.0","id":"q%s","method":"elicitation/create","params":{"message":"Which color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}}}`, m.ID)
	case "roots":
		f.say(`{"jsonrpc":"2.0","id":"q%s","method":"roots/list"}`, m.ID)
	case "fail":
		f.result(m.ID, `{"content":[{"type":"text","text":"no such thing"}],"isError":true}`)
	case "refuse":
		f.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"I will not"}}`, m.ID)
	case "odd":
		f.result(m.ID, "%s", m.Params.Arguments["answer"])
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		<-time.After(time.Hour)
	case "grow":
		f.note("grown", "")
		f.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		f.result(m.ID, `{"content":[]}`)
	case "log":
		f.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"small talk"}}`)
		f.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"disk","data":{"full":true}}}`)
		f.result(m.ID, `{"content":[]}`)
	case "blocks":
		data := base64.StdEncoding.EncodeToString([]byte("RIFF"))
		f.result(m.ID, `{"content":[{"type":"text","text":"words"},{"type":"image","mimeType":"image/png","data":"%s"},
			{"type":"audio","mimeType":"audio/wav","data":"%s"},{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"inside"}},
			{"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"application/x-a","blob":"%s"}},
			{"type":"resource_link","uri":"https://example.com/","name":"there"},{"type":"image","mimeType":"image/png","data":"%s"}],"structuredContent":{"n":7}}`,
			fakeImage, data, data, data)
	case "large":
		size, _ := m.Params.Arguments["bytes"].(float64)
		text := strings.Repeat("long ", int(size)/5)
		if m.Params.Arguments["where"] == "last" {
			f.say(`{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`, text, m.ID)
		} else {
			f.result(m.ID, `{"content":[{"type":"text","text":"%s"}]}`, text)
		}
	}
}

// malformed are messages that are none, or that say less than they should: nothing here may break on one.
func malformed() (all []string) {
	methods := []string{
		"notifications/message", "notifications/progress", "notifications/tools/list_changed", "notifications/cancelled", "notifications/initialized",
		"notifications/elicitation/complete", "notifications/resources/updated", "notifications/subscriptions/acknowledged", "notifications/x",
		"elicitation/create", "roots/list", "sampling/createMessage", "ping", "tools/list", "initialize", "tasks/get", "server/discover", "",
	}
	params := []string{"", `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":"x"`, `,"params":{"requestId":null}`, `,"params":{"requestId":{}}`, `,"params":{"progressToken":{},"progress":"x"}`, `,"params":{"_meta":1}`, `,"params":{"mode":"url","url":"x","elicitationId":"1","message":"x"}`, `,"params":{"requestedSchema":{"type":"object","properties":{"a":null,"b":1}}}`, `,"params":{"requestedSchema":1}`}
	for i, method := range methods {
		for j, p := range params {
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q%s}`, method, p), fmt.Sprintf(`{"jsonrpc":"2.0","id":"m%d-%d","method":%q%s}`, i, j, method, p))
		}
	}
	return append(
		all, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":98}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","id":94,"result":{}}`,
		`{"jsonrpc":"2.0","id":97,"result":1,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":96,"error":null}`, `{"jsonrpc":"2.0","id":93.5,"result":{}}`, `[{"jsonrpc":"2.0","id":95,"result":{}},{"jsonrpc":"2.0","method":"ping","id":"b"}]`,
		`{"jsonrpc":"2.0","method":"ping","id":"twice"}`, `{"jsonrpc":"2.0","method":"ping","id":"twice"}`, `[]`, `[1]`, `{}`, strings.Repeat("[", 100_000),
	)
}

// answered: what came to a question of the server is the result of the call that it belongs to.
func (f *fake) answered(m wire) {
	if !strings.HasPrefix(string(m.ID), `"q`) {
		return
	}
	call := strings.TrimPrefix(strings.Trim(string(m.ID), `"`), "q")
	text, _ := json.Marshal(string(m.Result))
	f.result(json.RawMessage(call), `{"content":[{"type":"text","text":%s}]}`, text)
}

func (f *fake) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(os.Getenv(fakeDir), name))
	return string(text)
}
