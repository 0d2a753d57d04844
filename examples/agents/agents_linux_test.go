// Package agents_test starts the agents that npm serves with the configurations of this folder, and looks at the tools that each
// then offers to its model. It does so in a network of its own, so that nothing reaches any other machine.
package agents_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/clients/clienttest"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// An agent is how one is started. Paths are relative to the folder in which it runs.
type agent struct {
	name    string
	program func(t *testing.T) []string
	config  string // the file of this folder
	at      string // where the agent looks for it, below HOME if it begins with ~/
	more    string // is written in front of it, for the test alone
	user    string // a file of the user's for the test alone: its path below HOME, ": ", and its text
	args    []string
	environ []string
	tools   []string // what the model is offered beside toold's tools, in order
}

var agents = []agent{
	{
		name: "claude-code", program: native("@anthropic-ai/claude-code-*/claude"), config: "claude-code/mcp.json", at: "mcp.json",
		args:    []string{"-p", "hello", "--tools", "", "--strict-mcp-config", "--mcp-config", "mcp.json", "--allowedTools", "mcp__toold"},
		environ: []string{"ANTHROPIC_BASE_URL=MODEL", "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
	},
	{
		name: "codex", program: native("@openai/codex-*/vendor/*/bin/codex"), config: "codex/config.toml", at: "~/.codex/config.toml",
		more: "model = \"m\"\nmodel_provider = \"fake\"\nmodel_providers.fake = { name = \"fake\", base_url = \"MODEL/v1\", env_key = \"KEY\", request_max_retries = 0, stream_max_retries = 0 }\n",
		args: []string{"exec", "--skip-git-repo-check", "hello"}, environ: []string{"KEY=x"},
		tools: []string{
			"create_goal", "get_goal", "list_mcp_resource_templates", "list_mcp_resources", "multi_agent_v1", "read_mcp_resource", "request_user_input", "update_goal", "view_image",
		},
	},
	{
		name: "gemini-cli", program: script("@google/gemini-cli"), config: "gemini-cli/settings.json", at: ".gemini/settings.json",
		user: `.gemini/settings.json: {"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
		args: []string{"--skip-trust", "-p", "hello"}, environ: []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=MODEL", "GEMINI_CLI_TRUST_WORKSPACE=true"},
		tools: []string{"enter_plan_mode", "invoke_agent", "update_topic"},
	},
	{
		name: "opencode", program: native("opencode-*/bin/opencode"), config: "opencode/opencode.json", at: "opencode.json",
		user:  `.config/opencode/opencode.json: {"autoupdate":false,"model":"fake/m","provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"MODEL/v1","apiKey":"x"},"models":{"m":{"name":"m"}}}}}`,
		args:  []string{"run", "hello"},
		tools: []string{"skill"},
	},
}

func TestAgents(t *testing.T) {
	if _, err := os.Stat("node_modules"); err != nil && !ownspace.Inside(t) {
		clienttest.Lacking(t, `the agents, which "make clients" installs in examples/agents (1.1 GB)`)
	}
	if !ownspace.InNetwork(t) {
		return
	}
	env := clienttest.Place(t)
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) { a.offers(t, env) })
	}
}

// offers starts the agent with a task, and looks at what its model is offered.
func (a agent) offers(t *testing.T, env []string) {
	model := newModel()
	defer model.Close()
	fill := strings.NewReplacer("MODEL", model.URL)
	folder, home := t.TempDir(), valueOf(env, "HOME")
	text, err := os.ReadFile(a.config)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(folder, a.at)
	if rest, is := strings.CutPrefix(a.at, "~/"); is {
		at = filepath.Join(home, rest)
	}
	write(t, at, fill.Replace(a.more)+string(text))
	if path, text, is := strings.Cut(a.user, ": "); is {
		write(t, filepath.Join(home, path), fill.Replace(text))
	}
	program := a.program(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], append(program[1:], a.args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = folder, append(slices.Clone(env), "PWD="+folder, "XDG_CONFIG_HOME="+filepath.Join(home, ".config")), time.Second
	for _, variable := range a.environ {
		cmd.Env = append(cmd.Env, fill.Replace(variable))
	}
	out, _ := cmd.CombinedOutput() // it fails, since its model does not answer
	offered := model.offered()
	var others []string
	ours := 0
	for _, name := range offered {
		if strings.Contains(name, "toold") {
			ours++
		} else {
			others = append(others, name)
		}
	}
	if ours < 10 || !slices.Equal(others, a.tools) {
		t.Errorf("the model is offered %q; want toold's tools and %q\n%s", offered, a.tools, out)
	}
}

// A fakeModel is an API of a model that refuses every request, and remembers the tools in the longest list.
type fakeModel struct {
	*httptest.Server
	mu    sync.Mutex
	tools []string
}

func newModel() *fakeModel {
	m := &fakeModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Tools any }
		text, err := io.ReadAll(r.Body)
		if err == nil && json.Unmarshal(text, &request) == nil {
			m.mu.Lock()
			if names := namesIn(request.Tools, ""); len(names) > len(m.tools) {
				m.tools = names
			}
			m.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"this model only looks at what it is offered"}}`)
	}))
	return m
}

func (m *fakeModel) offered() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.tools)
	return slices.DeleteFunc(m.tools, func(name string) bool { return name == "DeferredToolPlaceholder" }) // Claude Code's own way to load a tool later
}

// namesIn returns the names of definitions, in whichever form an API has them. Those in a group have its name in front.
func namesIn(definitions any, group string) (names []string) {
	list, _ := definitions.([]any)
	for _, entry := range list {
		definition, _ := entry.(map[string]any)
		if inner, is := definition["function"].(map[string]any); is {
			definition = inner
		}
		name, _ := definition["name"].(string)
		switch inner, is := definition["tools"].([]any); {
		case is && strings.Contains(name, "toold"):
			names = append(names, namesIn(inner, name+"__")...)
		case definition["functionDeclarations"] != nil:
			names = append(names, namesIn(definition["functionDeclarations"], group)...)
		case name == "":
			kind, _ := definition["type"].(string)
			names = append(names, kind)
		default:
			names = append(names, group+name)
		}
	}
	return names
}

// native finds a program that a package ships for this machine.
func native(pattern string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
		found, err := filepath.Glob("node_modules/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if strings.Contains(path, runtime.GOOS+"-"+arch+"/") {
				path, err = filepath.Abs(path)
				if err != nil {
					t.Fatal(err)
				}
				return []string{path}
			}
		}
		clienttest.Lacking(t, "a program for this machine at node_modules/"+pattern)
		return nil
	}
}

// script finds a program that runs in Node.
func script(name string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		text, err := os.ReadFile("node_modules/" + name + "/package.json")
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Bin map[string]string }
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		for _, file := range p.Bin {
			path, err := filepath.Abs(filepath.Join("node_modules", name, file))
			if err != nil {
				t.Fatal(err)
			}
			return []string{"node", path}
		}
		t.Fatalf("%s has no program", name)
		return nil
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func valueOf(env []string, name string) (value string) {
	for _, variable := range env {
		if text, is := strings.CutPrefix(variable, name+"="); is {
			value = text
		}
	}
	return value
}
