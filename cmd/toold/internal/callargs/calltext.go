package callargs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	"github.com/toold/toold/daemon/dialect"
)

// A blank is a tool's input with a gap for the one value that a person writes; what else the tool wants is filled in.
type blank struct {
	input string // JSON with %s
	path  bool   // the value is a path; a relative one is meant from where the person is
	// lacks is what stands in input as an example only, so that the call can be explained and not run.
	lacks string
}

var blanks = map[string]blank{
	"ApplyPatch":   {input: `{"patch":%s}`},
	"Bash":         {input: `{"command":%s}`},
	"BashInput":    {`{"bash_id":"bash_0","chars":%s}`, false, "bash_id"},
	"BashOutput":   {input: `{"bash_id":%s}`},
	"Edit":         {`{"file_path":%s,"old_string":"old","new_string":"new"}`, true, "old_string and new_string"},
	"Glob":         {input: `{"pattern":%s}`},
	"Grep":         {input: `{"pattern":%s}`},
	"KillShell":    {input: `{"shell_id":%s}`},
	"LS":           {input: `{"path":%s}`, path: true},
	"MultiEdit":    {`{"file_path":%s,"edits":[{"old_string":"old","new_string":"new"}]}`, true, "edits"},
	"NotebookEdit": {`{"notebook_path":%s,"cell_id":"cell-0","new_source":"new"}`, true, "cell_id and new_source"},
	"Read":         {input: `{"file_path":%s}`, path: true},
	"Shell":        {input: `{"commands":[%s]}`},
	"WebFetch":     {input: `{"url":%s,"prompt":"What does the page say?"}`},
	"WebSearch":    {input: `{"query":%s}`},
	"Write":        {`{"file_path":%s,"content":"new\n"}`, true, "content"},
}

// written matches a tool with the value of its main field, which may hold parentheses and newlines.
var written = regexp.MustCompile(`(?s)^([A-Za-z0-9_.-]+)(\(.*\))?$`)

// Parse reads one call, with paths relative to dir.
func Parse(text, dir string) (turn.Use, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		var message dialect.Reader
		uses, err := message.Feed([]byte(text))
		if err == nil {
			var rest []dialect.Use
			rest, _, err = message.End()
			uses = append(uses, rest...)
		}
		switch {
		case err != nil:
			return turn.Use{}, cli.Misused("the tool use cannot be read: %v", err)
		case len(uses) != 1:
			return turn.Use{}, cli.Misused("this holds %s, and one call is explained at a time", terminal.Count(len(uses), "tool use"))
		}
		return turn.UsesOf(uses, dialect.Silent)[0], nil
	}
	parts := written.FindStringSubmatch(text)
	if parts == nil {
		return turn.Use{}, cli.Misused("%q is not a call: write a tool and its value in parentheses, such as 'Bash(git push)', or a tool use as JSON", text)
	}
	name, value := parts[1], parts[2]
	if value == "" {
		return turn.Use{Name: name, Input: "{}"}, nil
	}
	form, known := blanks[name]
	value = value[1 : len(value)-1]
	if !known {
		return turn.Use{}, cli.Misused("which field of %s is meant by %q is not known: give the tool use as JSON, {\"name\":%q,\"input\":{...}}. A value in parentheses will do for %s",
			name, value, name, strings.Join(slices.Sorted(maps.Keys(blanks)), ", "))
	}
	if form.path {
		value = pathFrom(dir, value)
	}
	input, err := json.Marshal(value)
	return turn.Use{Name: name, Input: fmt.Sprintf(form.input, input)}, err
}

// pathFrom makes a path absolute as a shell in dir would have done, had it not been in quotes.
func pathFrom(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
