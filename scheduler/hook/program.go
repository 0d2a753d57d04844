// The file of a hook's program. A hook belongs to the project or its user, and calls choose the
// working directory: no file there may replace the hook's program. Only the first word of a shell
// line is examined.

package hook

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/text/ellipsis"
)

// projectDirs stand for the project's directory in the program and the arguments of a hook without
// a shell.
var projectDirs = []string{"${CLAUDE_PROJECT_DIR}", "${TOOLD_PROJECT_DIR}"}

// part is the beginning of a relative path that a shell does not expand.
const part = `[^\s"'$~=;|&()<>\\#*?{}!/` + "`" + `]+/`

// relative finds a relative path as the first word of a shell line, after assignments.
var relative = regexp.MustCompile(`^\s*(?:[A-Za-z_]\w*=[^\s"']*\s+)*("` + part + `[^"]*"|'` + part + `[^']*'|` + part + `[^\s"';|&()<>]*)`)

// adrift returns a clause about a hook program with a relative path, with what was probably meant;
// empty: the path is absolute.
func (h *Hook) adrift() string {
	if script, ok := h.script(); ok {
		words := relative.FindStringSubmatch(script)
		if words == nil {
			return ""
		}
		return fmt.Sprintf("the program %s of the %s hook is relative to the working directory, which may contain any file; \"$CLAUDE_PROJECT_DIR\"/%s is probably meant",
			ellipsis.Bytes(words[1], 80), h.Event, ellipsis.Bytes(strings.TrimPrefix(words[1], "./"), 80))
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
