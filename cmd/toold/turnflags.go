// The flags that run and call share, and what they say to the daemon: which session, which roots, which permission
// mode, and how results are printed.

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// turnFlags say in which session a turn runs.
type turnFlags struct {
	session string
	roots   []string
	mode    string
}

func (f *turnFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "run in the session of this name, which is made if need be and stays (default: a session that ends with the turn)")
	flags.StringArrayVar(&f.roots, "root", nil, "a directory that the calls may use; the first is the working directory; may be repeated (default: the current directory)")
	flags.StringVar(&f.mode, "mode", "", "what happens to calls that would have to ask: "+strings.Join(modeNames(), ", ")+" (default: as the session has it)")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modeNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("root")
}

var modes = map[string]tooldv1.PermissionMode{
	"default":           tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT,
	"acceptEdits":       tooldv1.PermissionMode_PERMISSION_MODE_ACCEPT_EDITS,
	"plan":              tooldv1.PermissionMode_PERMISSION_MODE_PLAN,
	"dontAsk":           tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK,
	"bypassPermissions": tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS,
}

func modeNames() []string { return slices.Sorted(maps.Keys(modes)) }

// attach is what a turn begins with. The environment is this process's own, so that a call sees the PATH of the person
// who makes it and not that of whoever started the daemon.
func (f *turnFlags) attach() (*tooldv1.Attach, error) {
	roots, err := absolute(f.roots)
	if err != nil {
		return nil, err
	}
	a := &tooldv1.Attach{
		SessionId: f.session, Roots: roots, Env: environment(),
		Client:       &tooldv1.ClientInfo{Name: "toold", Version: version},
		Capabilities: &tooldv1.Capabilities{},
	}
	if f.mode != "" {
		mode, ok := modes[f.mode]
		if !ok {
			return nil, misused("the mode %q is not known: choose one of %s", f.mode, strings.Join(modeNames(), ", "))
		}
		a.Options = &tooldv1.Options{PermissionMode: &mode}
	}
	return a, nil
}

func absolute(roots []string) ([]string, error) {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	found := make([]string, len(roots))
	for i, root := range roots {
		path, err := filepath.Abs(root)
		if err != nil {
			return nil, misused("the root %s cannot be found: %v", root, err)
		}
		found[i] = path
	}
	return found, nil
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

// Forms in which results are printed.
const (
	formText      = "text"
	formJSON      = "json"
	formAnthropic = "anthropic"
	formOpenAI    = "openai"
)

func checkForm(form string, forms ...string) error {
	if slices.Contains(forms, form) {
		return nil
	}
	return misused("the output %q is not known: choose one of %s", form, strings.Join(forms, ", "))
}

// count is a number with its noun: "1 call", "2 calls".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
