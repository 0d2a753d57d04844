// The flags for the session in which a call is to be run or judged: its name, its roots, and how it behaves.

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/cmd/toold/internal/callargs"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// turnFlags choose the session in which a turn runs.
type turnFlags struct {
	session string
	place   placeFlags
	only    string // the one tool that is called; empty: it is not known
	format  string // of the message, if it is said; empty: detected
	turn    string // the turn's name; empty: the message's, if it has one
	order   string // which calls wait for which; empty: as the session has it
	aside   bool   // a session that ends with the turn is said to

	interrupt string // what Ctrl-C does
}

// What Ctrl-C does to a turn.
const (
	interruptHard = "hard"
	interruptSoft = "soft"
)

func (f *turnFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.session, "session", "", "run in the session of this name, which is made if need be and stays (default: on a terminal that of this directory and terminal, else one that ends with the turn)")
	f.place.add(cmd)
}

// orders are the words for the orders of calls.
var orders = map[string]tooldv1.Ordering{"batched": tooldv1.Ordering_ORDERING_BATCHED, "dependency": tooldv1.Ordering_ORDERING_DEPENDENCY}

// addTurn adds what only a command has that runs a turn itself.
func (f *turnFlags) addTurn(cmd *cobra.Command) {
	f.add(cmd)
	cli.AddChoice(cmd, &f.order, "ordering", "", "which calls wait for which: batched runs neighbours that only read together, dependency lets a call wait only for those that it conflicts with (default: as the session has it)", slices.Sorted(maps.Keys(orders))...)
	f.interrupt = interruptHard
	cli.AddChoice(cmd, &f.interrupt, "interrupt", "", "what Ctrl-C does: hard stops every call, soft lets those finish whose tool should not be interrupted, such as Bash", interruptHard, interruptSoft)
}

// placeFlags are what a session works on, and what it may do there.
type placeFlags struct {
	roots    []string
	mode     string
	settings string // a file
	trust    bool
}

func (f *placeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.roots, "root", nil, "a directory that the calls may use, or through a cluster's gateway workspace:NAME or workspace:NAME/PATH; the first is the working directory; may be repeated (default: the current directory)")
	cli.AddChoice(cmd, &f.mode, "mode", "", "what happens to calls that would have to ask: "+strings.Join(terminal.ModeNames(), ", ")+" (default: as the session has it)", terminal.ModeNames()...)
	flags.StringVar(&f.settings, "settings", "", "a settings file that counts for the session alone, and above those of user and workspace")
	flags.BoolVar(&f.trust, "trust", false, "trust the roots' own settings files in this session, whatever \"toold trust\" has remembered")
	_ = cmd.MarkFlagDirname("root")
	_ = cmd.MarkFlagFilename("settings", "json")
}

// workspacePrefix begins a root that is a workspace of a cluster. A directory of such a name is written with ./ before it.
const workspacePrefix = "workspace:"

// mountPoint is where a workspace of a cluster is, as its calls see it.
const mountPoint = "/workspace"

// isElsewhere reports whether the calls run in a workspace of a cluster.
func (f *placeFlags) isElsewhere() bool {
	return len(f.roots) > 0 && strings.HasPrefix(f.roots[0], workspacePrefix)
}

// inside returns the path of a root as its calls see it.
func inside(root string) string {
	rest, is := strings.CutPrefix(root, workspacePrefix)
	if !is {
		return root
	}
	_, below, _ := strings.Cut(rest, "/")
	return path.Join(mountPoint, below)
}

// checkWorkspace returns an error for a root that names no workspace of a cluster, or leads out of one.
func checkWorkspace(root string) error {
	name, below, _ := strings.Cut(strings.TrimPrefix(root, workspacePrefix), "/")
	switch {
	case name == "" || name == "." || name == "..":
		return cli.Misused("--root %q has no name of a workspace: write workspace:NAME or workspace:NAME/PATH", root)
	case slices.Contains(strings.Split(below, "/"), ".."):
		return cli.Misused("--root %q leads through \"..\": name a path inside of the workspace", root)
	}
	return nil
}

// callPlace is where a call of "toold call" runs. A gateway lists the tools of sessions only, so for a workspace the tools are those
// of this program.
func (f *turnFlags) callPlace() (at callargs.Place, err error) {
	at.Session = f.session
	if !f.place.isElsewhere() {
		at.Dir, err = os.Getwd()
		return at, err
	}
	at.Dir = inside(f.place.roots[0])
	at.Schema = func(tool string) json.RawMessage {
		for _, t := range toolset(settingsFiles{}) {
			if t.Spec().Name == tool {
				return t.Spec().InputSchema
			}
		}
		return nil
	}
	return at, nil
}

// read returns the roots, absolute, and what the flags ask of the session. What no flag names stays unset.
func (f *placeFlags) read() (roots []string, o *tooldv1.Options, err error) {
	roots, o = slices.Clone(f.roots), &tooldv1.Options{}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for i, root := range roots {
		if strings.HasPrefix(root, workspacePrefix) {
			if err := checkWorkspace(root); err != nil {
				return nil, nil, err
			}
			continue
		}
		if roots[i], err = filepath.Abs(root); err != nil {
			return nil, nil, cli.Misused("the root %s cannot be found: %v", root, err)
		}
	}
	if f.mode != "" {
		o.PermissionMode = terminal.Modes[f.mode].Enum()
	}
	if f.settings != "" {
		text, err := os.ReadFile(f.settings)
		if err != nil {
			return nil, nil, cli.Misused("the session's settings cannot be read: %v", err)
		}
		if !utf8.Valid(text) {
			return nil, nil, cli.Misused("the session's settings in %s are not UTF-8", f.settings)
		}
		o.SettingsJson = proto.String(string(text))
	}
	if f.trust {
		o.Trusted = proto.Bool(true)
	}
	return roots, o, nil
}

// attach is what a turn begins with. The environment is this process's own, so that a call sees the PATH of the shell
// that makes it and not that of the process that started the daemon.
func (f *turnFlags) attach() (*tooldv1.Attach, error) {
	roots, options, err := f.place.read()
	if err != nil {
		return nil, err
	}
	if f.order != "" {
		options.Ordering = orders[f.order].Enum()
	}
	if f.session == "" && strings.HasPrefix(f.only, "mcp__") { // so that it is not deferred
		options.Tools = &tooldv1.ToolList{Names: []string{f.only}}
	}
	env := environment()
	if f.place.isElsewhere() {
		env = nil // a node has programs and directories of its own
	}
	return &tooldv1.Attach{
		SessionId: f.session, Roots: roots, Env: env, Options: options,
		Client:       &tooldv1.ClientInfo{Name: "toold", Version: version},
		Capabilities: &tooldv1.Capabilities{},
	}, nil
}

// environment leaves out what the wire cannot carry, which is text that is not UTF-8.
func environment() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && utf8.ValidString(entry) {
			env[name] = value
		}
	}
	return env
}
