// The file of a hook's program. A hook belongs to the project or its user, and calls choose the
// working directory: no file there may replace the hook's program. Only the first word of a shell
// line is examined.

package hook

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/text/ellipsis"
)

// projectDirs stand for the project's directory in the program and the arguments of a hook without
// a shell.
var projectDirs = []string{"${CLAUDE_PROJECT_DIR}", "${TOOLD_PROJECT_DIR}"}

// adrift returns a clause about a hook program with a relative path, with what was probably meant;
// empty: the path is absolute.
func (h *Hook) adrift() string {
	if script, ok := h.script(); ok {
		program := shell.Program(script)
		top, _, below := strings.Cut(program, "/")
		if !below || top == "" || strings.ContainsAny(top, "$~`*?[{!") {
			return ""
		}
		meant := ellipsis.Bytes(strings.TrimPrefix(program, "./"), 80)
		if strings.ContainsAny(program, " \t\n'\"\\;|&()<>") {
			meant = strconv.Quote(ellipsis.Bytes(program, 80))
		}
		return fmt.Sprintf("the program %s of the %s hook is relative to the working directory, which may contain any file; \"$CLAUDE_PROJECT_DIR\"/%s is probably meant",
			ellipsis.Bytes(program, 80), h.Event, meant)
	}
	anchored := func(dir string) bool { return strings.HasPrefix(h.Command, dir) }
	if !strings.Contains(h.Command, "/") || filepath.IsAbs(h.Command) || slices.ContainsFunc(projectDirs, anchored) {
		return ""
	}
	meant := "an absolute path" // without a shell nothing would expand the variable
	if !strings.ContainsAny(h.Command[:1], "~$") {
		meant = projectDirs[0] + "/" + ellipsis.Bytes(strings.TrimPrefix(h.Command, "./"), 80)
	}
	return fmt.Sprintf("the program %s of the %s hook is relative, and looked for in the project's directory; %s is probably meant", ellipsis.Bytes(h.Command, 80), h.Event, meant)
}

// script returns the line for the shell.
func (h *Hook) script() (line string, ok bool) {
	switch {
	case h.Args == nil:
		return h.Command, true
	case (h.Command == "sh" || h.Command == "bash") && len(h.Args) > 1 && h.Args[0] == "-c":
		return h.Args[1], true
	}
	return "", false
}
