package main

// The examples of docs/tools.md, run in their order by one session of a real daemon, each result compared word for word. Here is
// how the document writes an example, which servers the examples meet, and which words of a result are others each time. With
// -update the results in the document are written again.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cmd/toold/internal/golden"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

var (
	blockOf = regexp.MustCompile("(?ms)^```(\\S+)(?: ([^\n]+))?\n(.*?)^```$")
	// An example is the block of its input, and those of its result right behind it.
	exampleForm = regexp.MustCompile("(?ms)^```json ([A-Z]\\w+)\n(.*?)^```\n((?:\n```(?:text|json structured|json error)\n.*?^```\n)*)")
)

// filesIn returns the blocks of the document's chapter that shows files, each with the name of its file.
func filesIn(t *testing.T, name string) (names []string, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	for _, block := range blockOf.FindAllStringSubmatch(chapterOf(t, name), -1) {
		if block[2] != "" {
			names = append(names, block[2])
			contents[block[2]] = block[3]
		}
	}
	return names, contents
}

// TestToolsExamples runs them.
func TestToolsExamples(t *testing.T) {
	if _, out := groups(); len(out) > 0 {
		t.Skipf("this build has no %s", strings.Join(out, ", "))
	}
	site := siteOf(t)
	names, files := filesIn(t, "The workspace of the examples")
	settings, err := json.Marshal(map[string]any{
		"permissions": map[string]any{"allow": []string{"WebFetch(domain:127.0.0.1)"}},
		"webSearch":   map[string]any{"backend": "searxng", "url": site},
		"mcpServers":  map[string]any{"kit": map[string]any{"command": kitPath(t)}},
		"lsp":         map[string]any{"go": map[string]any{"command": []string{goplsPath()}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, map[string]string{"config/toold/settings.json": string(settings)})
	root := h.room(t, "demo", files)
	age(t, root, names)
	options := trusted()
	options.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()
	r := &rerun{talk: h.attach(t, in(root, options)), real: strings.NewReplacer("/work/demo", root, "PORT", site[strings.LastIndex(site, ":")+1:])}
	r.shown = normal(h.dir, root, site)
	r.awaitKit()
	ran := map[string]bool{}
	text := content(t, toolsDocument)
	now := exampleForm.ReplaceAllStringFunc(text, func(whole string) string {
		example := exampleForm.FindStringSubmatch(whole)
		ran[example[1]] = true
		if example[1] == "LSP" && goplsPath() == "gopls" {
			return whole // there is none; TestToolsExamplesOfLSP says so
		}
		got := r.run(example[1], example[2])
		if diff := gocmp.Diff(strings.Split(example[3], "\n"), strings.Split(got, "\n")); diff != "" && !golden.Updates() {
			t.Errorf("%s of %s gives (-docs/tools.md +now):\n%s", example[1], example[2], diff)
		}
		return "```json " + example[1] + "\n" + example[2] + "```\n" + got
	})
	now = r.whole(now)
	for _, tool := range toolset(settingsFiles{}) {
		if name := tool.Spec().Name; !ran[name] && name != "BashInput" { // which needs a program that waits: daemon/terminal_test.go has some
			t.Errorf("docs/tools.md has no example of %s", name)
		}
	}
	if golden.Updates() && now != text {
		if err := os.WriteFile(toolsDocument, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitKit returns when the session has the tools of kit. Each answer waits for them a while.
func (r *rerun) awaitKit() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), hangGuard)
	defer cancel()
	for prompt := ""; !strings.Contains(prompt, "mcp__kit__"); {
		list, err := r.house.link.Tools.ListTools(ctx, &tooldv1.ListToolsRequest{SessionId: "demo"})
		if err != nil {
			r.t.Fatal(err)
		}
		prompt = list.GetDeferredPrompt()
	}
}

// wholeForm is the block that has all of the first result.
var wholeForm = regexp.MustCompile("(?ms)^```json whole\n(.*?)^```\n")

// whole compares, and returns the document with what came.
func (r *rerun) whole(text string) string {
	r.t.Helper()
	got := r.first + "\n"
	if told := wholeForm.FindStringSubmatch(text); told == nil || told[1] != got && !golden.Updates() {
		r.t.Errorf("docs/tools.md shows as the first result %q, which is\n%s", told, got)
	}
	return wholeForm.ReplaceAllLiteralString(text, "```json whole\n"+got+"```\n")
}

// age makes the files a minute older each than the one before, the first a day old.
func age(t *testing.T, root string, names []string) {
	t.Helper()
	for i, name := range names {
		when := time.Now().Add(time.Duration(i)*time.Minute - 24*time.Hour)
		if err := os.Chtimes(filepath.Join(root, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
}

// A rerun is the session of the examples.
type rerun struct {
	*talk
	real  *strings.Replacer
	shown func(string) string
	count int
	first string // result, as it comes
	task  string // the last that began in the background
}

const shownTask = "bash_4f0c9a2e"

// run has one call carried out, in a turn of its own, and returns its result as the document writes it. What a language server
// has not finished is asked again, as the result says.
func (r *rerun) run(tool, input string) string {
	r.t.Helper()
	input = r.real.Replace(strings.ReplaceAll(input, shownTask, r.task))
	for {
		r.count++
		id := fmt.Sprintf("use%d", r.count)
		r.use(id, tool, input)
		result := r.finish(id, yes)
		if task, began := result.GetStructured().AsMap()["task_id"].(string); began {
			r.task = task
		}
		if r.count == 1 {
			r.first = r.onTheWire(result)
		}
		if tool != "LSP" || !strings.Contains(textIn(result), "\nIncomplete: ") {
			return r.written(result)
		}
	}
}

// onTheWire is all of a result, but for what it cost.
func (r *rerun) onTheWire(result *tooldv1.ToolResult) string {
	r.t.Helper()
	result = proto.CloneOf(result)
	result.Usage = nil
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(result)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.asJSON(json.RawMessage(text))
}

// fixed puts fixed words in the place of those that are others each time.
func (r *rerun) fixed(text string) string {
	if r.task != "" {
		text = strings.ReplaceAll(text, r.task, shownTask)
	}
	return r.shown(text)
}

// asJSON lays out a value with fixed words.
func (r *rerun) asJSON(v any) string {
	r.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	var fixed any
	if err := json.Unmarshal([]byte(r.fixed(string(text))), &fixed); err != nil {
		r.t.Fatal(err)
	}
	return laidOut(fixed, "")
}

// written is a result in the document's form.
func (r *rerun) written(result *tooldv1.ToolResult) string {
	r.t.Helper()
	var b strings.Builder
	block := func(kind, text string) { fmt.Fprintf(&b, "\n```%s\n%s\n```\n", kind, strings.TrimRight(text, "\n")) }
	block("text", r.fixed(textIn(result)))
	if s := result.GetStructured(); s != nil {
		block("json structured", r.asJSON(s.AsMap()))
	}
	if e := result.GetError(); e != nil {
		said := map[string]any{"outcome": result.GetOutcome().String(), "code": e.GetCode(), "message": e.GetMessage()}
		if e.GetField() != "" {
			said["field"] = e.GetField()
		}
		if e.GetDetails() != nil {
			said["details"] = e.GetDetails().AsMap()
		}
		block("json error", r.asJSON(said))
	}
	return b.String()
}

// laidOut writes JSON so that what fits on a line stands on one.
func laidOut(v any, indent string) string {
	line := inLine(v)
	if len(indent)+len(line) <= 110 {
		return line
	}
	var parts []string
	open, end := "{", "}"
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			parts = append(parts, fmt.Sprintf("%q: %s", key, laidOut(v[key], indent+"  ")))
		}
	case []any:
		open, end = "[", "]"
		for _, entry := range v {
			parts = append(parts, laidOut(entry, indent+"  "))
		}
	default:
		return line
	}
	return open + "\n" + indent + "  " + strings.Join(parts, ",\n"+indent+"  ") + "\n" + indent + end
}

func inLine(v any) string {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			parts = append(parts, fmt.Sprintf("%q: %s", key, inLine(v[key])))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, entry := range v {
			parts = append(parts, inLine(entry))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func sortedKeys(m map[string]any) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// normal returns what puts fixed words in the place of those that are others each time: places, ports, sizes of processes.
func normal(dir, root, site string) func(string) string {
	places := strings.NewReplacer(root, "/work/demo", site, "http://127.0.0.1:PORT", filepath.Join(dir, "state"), "/home/me/.local/state")
	outputs := regexp.MustCompile(`(/home/me/\.local/state/toold/\S*?/)[^/\s"]+(\.out\b)`)
	peak := regexp.MustCompile(`"max_rss_bytes": ?\d+,\s*`) // depends on what the daemon has held
	return func(text string) string {
		text = outputs.ReplaceAllString(places.Replace(text), "${1}ID$2")
		return peak.ReplaceAllString(text, "")
	}
}

// siteOf serves the pages of the document's chapter on servers, and a search engine that finds them.
func siteOf(t *testing.T) (url string) {
	t.Helper()
	_, pages := filesIn(t, "The servers of the examples")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, is := pages[r.URL.Path]
		if !is {
			http.NotFound(w, r)
			return
		}
		kind := "text/html; charset=utf-8"
		if r.URL.Path == "/search" {
			kind = "application/json"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// goplsPath is gopls as make builds it, or the one on PATH; else its name alone.
func goplsPath() string {
	if built, err := filepath.Abs("../../.bin/gopls"); err == nil {
		if _, err := os.Stat(built); err == nil {
			return built
		}
	}
	if found, err := exec.LookPath("gopls"); err == nil {
		return found
	}
	return "gopls"
}

// TestToolsExamplesOfLSP: where they cannot be run, the test is skipped with the reason, or fails in CI.
func TestToolsExamplesOfLSP(t *testing.T) {
	const lacking = `this test needs gopls: run "make servers"`
	switch {
	case goplsPath() != "gopls":
	case os.Getenv("TOOLD_CI") != "":
		t.Fatal(lacking)
	default:
		t.Skip(lacking)
	}
}

func kitPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("kit") // testscript.Main has put it on PATH
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// kit is an MCP server of more tools than a model wants to be told of at once.
func kit() {
	server := mcp.NewServer(&mcp.Implementation{Name: "kit", Version: "1"}, nil)
	type issue struct {
		Number int `json:"number" jsonschema:"number of the issue"`
	}
	type said struct {
		Text string `json:"text" jsonschema:"what is said"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "get_issue", Description: "Gives an issue with its comments."}, answers[issue])
	for i := range 20 {
		mcp.AddTool(server, &mcp.Tool{Name: fmt.Sprintf("tool%02d", i), Description: fmt.Sprintf("Does the thing that has the number %d.", i)}, answers[said])
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// answers returns that the call is done, and what it is traced under.
func answers[In any](_ context.Context, request *mcp.CallToolRequest, _ In) (*mcp.CallToolResult, any, error) {
	said := "done"
	if trace, is := request.Params.Meta["traceparent"].(string); is {
		said += " under " + trace
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, nil
}
