// The part of a session that is on the disk: a workspace, and the read state in it.

package tooltest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/workspace"
)

// Files are a session for tests of tools that start no processes: a workspace of one root.
type Files struct {
	Root       string // real path
	t          testing.TB
	places     *workspace.Workspace
	memory     *workspace.ReadState
	readDenied func(real string) string
}

// NewFiles returns a session of the existing directory root, with an empty read state; hidden are
// directories that it must not see.
func NewFiles(t testing.TB, root string, hidden ...string) *Files {
	t.Helper()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	places, err := workspace.Open([]string{root}, workspace.NewLocks())
	if err != nil {
		t.Fatal(err)
	}
	if places, err = places.Admit(workspace.Places{Hidden: hidden}); err != nil {
		t.Fatal(err)
	}
	return &Files{Root: root, t: t, places: places, memory: workspace.NewReadState()}
}

// Another returns a second session of the same workspace, with an empty read state.
func (f *Files) Another() *Files {
	return &Files{Root: f.Root, t: f.t, places: f.places, memory: workspace.NewReadState(), readDenied: f.readDenied}
}

// Rule is the sentence of Bar's rule.
const Rule = "The rule Read(it) in /settings.json:7 denies reading it."

// Bar adds a rule that denies reading what lies at the names, relative to the root, and below. It
// applies to views and environments that are made afterwards.
func (f *Files) Bar(names ...string) {
	f.readDenied = func(real string) string {
		for _, name := range names {
			if pathname.Within(filepath.Join(f.Root, name), real) {
				return Rule
			}
		}
		return ""
	}
}

// View returns the view of a call that may read and write the root, and read the directories
// elsewhere.
func (f *Files) View(elsewhere ...string) *workspace.View {
	root := workspace.Grantee{Real: f.Root, Tree: true}
	grant := workspace.Grant{Dir: f.Root, Reads: []workspace.Grantee{root}, Writes: []workspace.Grantee{root}, ReadDenied: f.readDenied}
	for _, dir := range elsewhere {
		grant.Reads = append(grant.Reads, workspace.Grantee{Real: dir, Tree: true})
	}
	return f.places.View(grant, f.memory)
}

// loopback allows servers of the test, by their address.
var loopback = tools.Reach{Allowed: []string{"127.0.0.1"}}

// Env returns the environment of a call that starts no processes. It has its own View, and may
// reach servers on 127.0.0.1.
func (f *Files) Env() *tools.Env {
	return &tools.Env{
		CallID: "call", Dir: f.Root, Environ: []string{"HOME=" + f.Root}, Files: f.View(), Report: func(tools.Step) {}, First: func(string) bool { return true }, Reach: loopback,
	}
}

// Put writes a file, by its path relative to the root, makes its directories, and returns its
// absolute path.
func (f *Files) Put(name, content string) string {
	f.t.Helper()
	file := filepath.Join(f.Root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return file
}

// Read reads a whole file in the session.
func (f *Files) Read(file string) {
	f.t.Helper()
	v := f.View()
	c, err := v.Look(file)
	if err != nil {
		f.t.Fatal(err)
	}
	state := c.State
	state.Text, state.Whole = c.Data, true
	v.Record(c.Path.Real, state)
	f.Learn(v)
}

// Call parses, checks and runs, as the pipeline does, and merges the read state. The check must
// return the same error as the run.
func (f *Files) Call(tool tools.Tool, input any) (tools.Preview, tools.Result, error) {
	f.t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		f.t.Fatal(err)
	}
	action, err := tool.Parse(data)
	if err != nil {
		return tools.Preview{}, tools.Result{}, err
	}
	env := f.Env()
	preview, checked := action.Check(f.t.Context(), env)
	result, err := action.Run(f.t.Context(), env)
	if Code(checked) != Code(err) {
		f.t.Errorf("the check says %v, the run %v", checked, err)
	}
	f.Learn(env.Files)
	return preview, result, err
}

// Code returns the code of a tool's error; empty for none.
func Code(err error) string {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

// Learn merges the read state of a call.
func (f *Files) Learn(v *workspace.View) { f.memory.Merge(v.ReadState()) }

// Known returns the session's read state of the file at a real path.
func (f *Files) Known(file string) (workspace.State, bool) { return f.memory.Lookup(file) }
