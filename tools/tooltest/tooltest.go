// Package tooltest holds the checks that every tool must pass: its schema and words are fit for a
// model, bad input gets a typed error, a check changes nothing, a read-only call changes nothing, what comes back is
// fit for the wire. It does not know what any tool is for.
package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/background"
	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/spool"
	"github.com/toold/toold/tools/exec/terminal"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/fs/workspace"
)

// Times returns how often a test tries something that takes long: few times, or, with TOOLD_ALL, as often as it is to be tried.
func Times(few, all int) int {
	if os.Getenv("TOOLD_ALL") != "" {
		return all
	}
	return few
}

// A Case is one valid input, and the files that it meets. In Input and in the names and contents of Files, $ROOT
// stands for the workspace's root.
type Case struct {
	Name  string
	Input string
	Files map[string]string // content by path relative to the root
	Seen  []string          // those of Files that the session has read
	Task  string            // a command that runs in the background; $TASK stands for its id in Input
}

// Check runs all checks on a tool. It needs at least one case.
func Check(t *testing.T, tool tools.Tool, cases ...Case) {
	t.Helper()
	t.Run("spec", func(t *testing.T) { checkSpec(t, tool.Spec()) })
	t.Run("bad input", func(t *testing.T) { checkBadInput(t, tool) })
	if len(cases) == 0 {
		t.Error("no case was given")
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { checkCase(t, tool, c) })
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

func checkSpec(t *testing.T, spec tools.Spec) {
	t.Helper()
	if !toolName.MatchString(spec.Name) {
		t.Errorf("name %q: model APIs take letters, digits, _ and -, at most 64", spec.Name)
	}
	if len(strings.Fields(spec.Description)) < 10 {
		t.Errorf("description %q: too short for a model to work from", spec.Description)
	}
	if spec.MaxTime != 0 && spec.MaxTime < spec.TimeLimit {
		t.Errorf("a call may ask for %s at most, less than the %s it gets by itself", spec.MaxTime, spec.TimeLimit)
	}
	var schema node
	if err := json.Unmarshal(spec.InputSchema, &schema); err != nil {
		t.Fatalf("schema: %v in %s", err, spec.InputSchema)
	}
	if schema.Type != "object" {
		t.Errorf("schema: the input is a %v, not an object", schema.Type)
	}
	schema.check(t, "")
}

// node is as much of a JSON Schema as the checks look at.
type node struct {
	Type                 any             `json:"type"`
	Description          string          `json:"description"`
	Properties           map[string]node `json:"properties"`
	Items                *node           `json:"items"`
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
}

func (n node) check(t *testing.T, where string) {
	t.Helper()
	if _, one := n.Type.(string); !one {
		t.Errorf("schema: %s has the type %v; a model needs one", where, n.Type)
	}
	if n.Type == "object" && string(n.AdditionalProperties) != "false" {
		t.Errorf("schema: %s takes unknown fields", where)
	}
	for name, field := range n.Properties {
		if field.Description == "" {
			t.Errorf("schema: %s/%s has no description", where, name)
		}
		field.check(t, where+"/"+name)
	}
	if n.Items != nil {
		n.Items.check(t, where+"/*")
	}
}

// checkBadInput: whatever is no valid input is refused with a typed error, without a panic.
func checkBadInput(t *testing.T, tool tools.Tool) {
	t.Helper()
	for _, input := range []string{
		`null`, `[]`, `"text"`, `1`, `true`, `{`, `{"a":}`, "\xff", `{} {}`, `{"no such field":1}`, strings.Repeat(`{"a":`, 5000),
		strings.Repeat("[", 20000),
	} {
		action, err := tool.Parse(json.RawMessage(input))
		if err == nil {
			t.Errorf("input %.40q gave %T", input, action)
			continue
		}
		checkFault(t, err)
		if found := fault.From(err); found.Kind != fault.Invalid {
			t.Errorf("input %.40q gave %v, want an error of kind Invalid", input, err)
		}
	}
}

func checkFault(t *testing.T, err error) {
	t.Helper()
	var found *fault.Error
	switch {
	case !errors.As(err, &found):
		t.Errorf("%T %v is no fault.Error", err, err)
	case !regexp.MustCompile(`^[a-z][a-z_]*$`).MatchString(found.Code):
		t.Errorf("code %q is not lower_snake_case", found.Code)
	case found.Message == "" || !utf8.ValidString(found.Message):
		t.Errorf("message %q is not fit to be read", found.Message)
	}
}

func checkCase(t *testing.T, tool tools.Tool, c Case) {
	t.Helper()
	room := NewRoom(t)
	for name, content := range c.Files {
		room.Put(room.expand(name), room.expand(content))
	}
	for _, name := range c.Seen {
		room.Read(filepath.Join(room.Root, name))
	}
	input := room.expand(c.Input)
	if c.Task != "" {
		input = strings.ReplaceAll(input, "$TASK", room.Background(c.Task))
	}
	action, err := tool.Parse(json.RawMessage(input))
	if err != nil {
		t.Fatalf("a valid input was refused: %v", err)
	}
	effects := action.Effects()
	if tool.Spec().ReadOnly && !effects.ReadOnly() {
		t.Errorf("the tool says that it only reads, but this call has the effects %+v", effects)
	}
	env := room.Env(action)
	if env.MaxChars = tool.Spec().MaxResultChars; env.MaxChars == 0 {
		env.MaxChars = 30_000
	}
	before := room.snapshot()
	if _, err := action.Check(t.Context(), env); err != nil {
		t.Fatalf("check: %v", err)
	}
	if changed := difference(before, room.snapshot()); changed != "" {
		t.Errorf("the check changed %s", changed)
	}
	result, err := action.Run(t.Context(), env)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	checkResult(t, result)
	if changed := difference(before, room.snapshot()); changed != "" && effects.ReadOnly() {
		t.Errorf("a read-only call changed %s", changed)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone before it began"))
	if _, err := action.Run(gone, room.Env(action)); err != nil && !errors.Is(err, context.Cause(gone)) && !errors.Is(err, context.Canceled) {
		checkFault(t, err)
	}
}

// checkResult: what comes back can be sent as it is.
func checkResult(t *testing.T, result tools.Result) {
	t.Helper()
	if len(result.Content) == 0 {
		t.Error("the result has no content")
	}
	for _, block := range result.Content {
		if !utf8.ValidString(block.Text) {
			t.Errorf("text %.60q is not UTF-8", block.Text)
		}
		if block.Text == "" && block.Image == nil && block.Document == nil && block.Link == nil {
			t.Error("the result has an empty block")
		}
	}
	text, err := json.Marshal(result.Structured)
	if err != nil || len(text) == 0 || text[0] != '{' && string(text) != "null" {
		t.Errorf("structured %s, %v: not a JSON object", text, err)
	}
}

// Main is the whole of TestMain in a package whose tests start processes; what it gives is for os.Exit.
func Main(m *testing.M) int {
	if sandbox.WatcherMain(os.Args) {
		return 0
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a watcher under the race detector would take a second to end
	return m.Run()
}

// A Room is a session for tests: a workspace of one root, and everything else that a call may reach.
type Room struct {
	*Files
	outputs   *spool.Dir
	runner    *sandbox.Runner
	tasks     *background.Set
	languages *language.Set
	memories  *memstore.Set
}

// NewRoom makes a room that is gone with the test. TestMain of a package that uses it is Main.
func NewRoom(t testing.TB) *Room {
	t.Helper()
	state := t.TempDir()
	outputs, err := spool.Open(filepath.Join(state, "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := sandbox.New(filepath.Join(state, "processes"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tasks := background.NewSet(background.Events{})
	files := NewFiles(t, t.TempDir())
	languages := language.NewSet(language.Host{
		Roots: []string{files.Root}, Servers: language.Defaults, Environ: os.Environ,
		Box: func(string) *sandbox.Box { return &sandbox.Box{Runner: runner} },
	})
	t.Cleanup(func() {
		languages.Close()
		tasks.Close()
		if err := runner.Close(); err != nil {
			t.Errorf("ending the processes: %v", err)
		}
	})
	return &Room{Files: files, outputs: outputs, runner: runner, tasks: tasks, languages: languages, memories: memstore.NewSet(filepath.Join(state, "memory"))}
}

// expand puts the root's path in place of $ROOT.
func (r *Room) expand(text string) string { return strings.ReplaceAll(text, "$ROOT", r.Root) }

// Background starts a command in the background and gives the task's id.
func (r *Room) Background(command string) string {
	r.t.Helper()
	output, err := r.outputs.Create("task")
	if err != nil {
		r.t.Fatal(err)
	}
	task, err := r.tasks.Add(background.Origin{Call: "task", Command: command, Output: output}, func() (*sandbox.Process, *terminal.Terminal, error) {
		p, err := r.runner.Start(sandbox.Command{
			ID: "task", Path: "/bin/sh", Args: []string{"sh", "-c", command}, Dir: r.Root, Env: os.Environ(),
			Stdout: output.Writer(spool.Stdout), Stderr: output.Writer(spool.Stderr),
		})
		return p, nil, err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return task.ID
}

// Env is what a call of action may reach: its declared effects, all of them permitted.
func (r *Room) Env(action tools.Action) *tools.Env {
	r.t.Helper()
	grant := workspace.Grant{Dir: r.Root, ReadDenied: r.readDenied}
	effects := action.Effects()
	grant.Reads, grant.Writes = r.grantees(effects.Reads), r.grantees(effects.Writes)
	return &tools.Env{
		CallID: "call-" + filepath.Base(r.t.TempDir()), Dir: r.Root, Environ: os.Environ(), Cursors: map[string]int64{},
		Files: r.places.View(grant, r.memory), Spool: r.outputs, Box: &sandbox.Box{Runner: r.runner}, Tasks: r.tasks, MaxChars: 30_000,
		Languages: r.languages, Memory: r.memories.Of("tester", r.Root),
		Output: func(*spool.Output) {}, Report: func(tools.Step) {}, First: func(string) bool { return true }, Reach: loopback,
		Parts:    func(parts []tools.Part) []tools.PartEnd { return make([]tools.PartEnd, len(parts)) }, // which print nothing
		Deferred: func() []tools.Spec { return nil }, Ports: func(*background.Task) []tools.Port { return nil },
	}
}

func (r *Room) grantees(paths []tools.Path) (grantees []workspace.Grantee) {
	r.t.Helper()
	for _, p := range paths {
		real, err := r.places.Resolve(r.Root, p.Name)
		if err != nil {
			r.t.Fatal(err)
		}
		grantees = append(grantees, workspace.Grantee{Real: real.Real, Tree: p.Tree})
	}
	return grantees
}

// snapshot returns each path below the root with its mode and content.
func (r *Room) snapshot() map[string]string {
	r.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(r.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[path] += info.ModTime().String() + string(text)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// difference names one path in which two snapshots differ; empty: none.
func difference(before, after map[string]string) string {
	for _, snapshot := range []map[string]string{before, after} {
		for path := range snapshot {
			if before[path] != after[path] {
				return path
			}
		}
	}
	return ""
}
